// SPDX-License-Identifier: MIT OR Apache-2.0
//! One path: the latest evidence, and since when it is as it is.

use crate::choose::{Choice, Host, Trust, choose};
use crate::estimate::{Estimate, has_one_distance};
use crate::evidence::{Evidence, Loss};
use crate::gain::gain;
use crate::guard::Guard;
use serde::{Deserialize, Serialize};

/// Flows that an estimate rests on, the latest.
const MOST_FLOWS: usize = 20;

/// Kinds of loss that are remembered, the latest.
const MOST_LOSSES: usize = 10;

/// So many flows in a row that are off begin a new epoch.
const OFF_FLOWS: usize = 5;

/// Off is what differs by more than this share.
const OFF: f64 = 0.25;

/// What is older than a day is a prior, worth so many flows.
const PRIOR_AFTER_US: i64 = 86_400_000_000;
const PRIOR_FLOWS: usize = 5;

/// What a flow told of losses is worth so long: flows of a law that does not answer to them tell of a queue alone, so a path
/// that has become better would never show it.
const TOLD_FOR_US: i64 = 3_600_000_000;

/// A kind of loss, and when a flow told of it, µs since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct SeenLoss {
    loss: Loss,
    at_us: i64,
}

/// What is known of one path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Path {
    /// Usable flows so far.
    pub flows: u64,
    /// How often it has become another path.
    pub epochs: u32,
    evidence: Vec<Evidence>,
    losses: Vec<SeenLoss>,
    /// When a flow was last held back by a buffer that its program set, µs since 1970: flows whose buffers are replaced do not
    /// tell of them.
    #[serde(default)]
    small_buffers_us: Option<i64>,
    /// Whether what it gets does harm.
    pub guard: Guard,
}

impl Path {
    /// Takes what a flow showed. Answers whether it was usable.
    pub fn learn(&mut self, mut seen: Evidence) -> bool {
        if !seen.is_usable() {
            return false;
        }
        self.age(seen.seen_us);
        let known = self.evidence.iter().position(|one| one.flow == seen.flow);
        let before = known.map(|place| self.evidence.remove(place));
        seen.under = self.guard.under(&seen).after(before.as_ref());
        seen.heed_pacing();
        let told_run_pkts = before.as_ref().and_then(|before| before.paced_run_pkts);
        seen.paced_run_pkts = seen.paced_run_pkts.max(told_run_pkts);
        self.guard.learn(&seen);
        self.flows += u64::from(before.is_none());
        let told_before = before.and_then(|before| before.loss);
        self.note_loss(told_before, seen.loss, seen.seen_us);
        seen.loss = seen.loss.or(told_before);
        if seen.is_of_small_buffer() {
            self.small_buffers_us = self.small_buffers_us.max(Some(seen.seen_us));
        }
        self.evidence.push(seen);
        keep_latest(&mut self.evidence, MOST_FLOWS);
        self.begin_epoch_where_off();
        true
    }

    /// What is known; none before the first usable flow.
    pub fn estimate(&self) -> Option<Estimate> {
        let losses: Vec<Loss> = self.losses.iter().map(|told| told.loss).collect();
        let known = Estimate::of(&self.evidence, &losses)?;
        let is_recent = |us: i64| known.seen_us.saturating_sub(us) <= PRIOR_AFTER_US;
        Some(Estimate {
            has_small_buffers: self.small_buffers_us.is_some_and(is_recent),
            ..known
        })
    }

    /// Bandwidth-delay product, bytes, where nothing but the path held its flows back, and its peers are at one distance.
    pub(crate) fn certain_bdp_bytes(&self, known: &Estimate) -> Option<f64> {
        let is_certain = known.rate?.limit.is_none() && has_one_distance(&self.evidence);
        is_certain.then(|| known.bdp_bytes())?
    }

    /// What its flows would get now; none where nothing is known.
    pub fn choice(&self, host: &Host, trust: Trust) -> Option<Choice> {
        let known = self.estimate()?;
        let mut choice = choose(&self.guard.without_trial(&known), host, trust);
        if choice.profile.initial_rate_bps.is_some() && self.guard.forbids_starts(self.seen_us()) {
            choice.profile.initial_rate_bps = None;
            let reason = "flows that started at its rate lost segments: none does for an hour";
            choice.reasons.push(reason.to_owned());
        }
        Some(choice)
    }

    /// The flows that the estimate rests on, oldest first.
    pub fn evidence(&self) -> impl Iterator<Item = &Evidence> {
        self.evidence.iter()
    }

    /// What learned settings bring its flows; see [`gain`].
    pub fn gain(&self) -> Option<f64> {
        gain(&self.evidence)
    }

    /// When a flow was last seen, µs since 1970.
    pub fn seen_us(&self) -> i64 {
        let seen = self.evidence.iter().map(|flow| flow.seen_us);
        seen.max().unwrap_or_default()
    }

    fn age(&mut self, now_us: i64) {
        if now_us.saturating_sub(self.seen_us()) > PRIOR_AFTER_US {
            keep_latest(&mut self.evidence, PRIOR_FLOWS);
        }
    }

    /// A live flow tells again and again: it counts once. One whose law changed may be unable to tell any more, and what
    /// it told before stays for its time.
    fn note_loss(&mut self, before: Option<Loss>, now: Option<Loss>, at_us: i64) {
        let place = self
            .losses
            .iter()
            .rposition(|told| Some(told.loss) == before);
        let earlier = place.map(|place| self.losses.remove(place));
        let told = now.map(|loss| SeenLoss { loss, at_us }).or(earlier);
        self.losses.extend(told);
        let is_old = |told: &SeenLoss| at_us.saturating_sub(told.at_us) > TOLD_FOR_US;
        self.losses.retain(|told| !is_old(told));
        keep_latest(&mut self.losses, MOST_LOSSES);
    }

    /// The path became another one where the latest flows agree with each other, and not with those before.
    fn begin_epoch_where_off(&mut self) {
        let before = self.evidence.len().saturating_sub(OFF_FLOWS);
        let (older, latest) = self.evidence.split_at(before);
        let Some(known) = Estimate::of(older, &[]) else {
            return;
        };
        let rtts_are_off = latest
            .iter()
            .all(|flow| is_off(flow.min_rtt_us, known.base_rtt_us.value));
        // What held flows back was not the path: that a flow is faster without it makes no other path of it.
        let of_path = known.rate.filter(|rate| rate.limit.is_none());
        let known_bps = of_path.map(|rate| rate.bps.value);
        let rates_are_off = latest
            .iter()
            .all(|flow| match (flow.path_rate_bps(), known_bps) {
                (Some(bps), Some(known)) => is_off(bps, known),
                _ => false,
            });
        if rtts_are_off || rates_are_off {
            keep_latest(&mut self.evidence, OFF_FLOWS);
            let told = |flow: &Evidence| {
                let at_us = flow.seen_us;
                flow.loss.map(|loss| SeenLoss { loss, at_us })
            };
            self.losses = self.evidence.iter().filter_map(told).collect();
            self.epochs += 1;
        }
    }
}

fn keep_latest<T>(all: &mut Vec<T>, most: usize) {
    let old = all.len().saturating_sub(most);
    all.drain(..old);
}

fn is_off(value: f64, known: f64) -> bool {
    (value / known - 1.0).abs() > OFF
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::evidence::{Limit, Under};
    use crate::profile::Law;
    use proptest::prelude::*;

    pub(crate) fn flow(number: u64, rate_bps: f64) -> Evidence {
        let begin_us = number as i64 * 60_000_000;
        Evidence {
            flow: number,
            begin_us,
            seen_us: begin_us + 30_000_000,
            bytes: 1 << 30,
            sent_pkts: 700_000,
            retransmitted_pkts: 70,
            min_rtt_us: 100e3,
            mean_rtt_us: 120e3,
            rate_bps: Some(rate_bps),
            limit: None,
            loss: Some(Loss::Queue),
            mss_bytes: 1448,
            excess_share: None,
            paced_bps: None,
            paced_run_pkts: None,
            law: None,
            is_given: true,
            under: Under::default(),
        }
    }

    pub(crate) fn path_of_flows(flows: impl IntoIterator<Item = Evidence>) -> Path {
        let mut path = Path::default();
        for flow in flows {
            path.learn(flow);
        }
        path
    }

    #[test]
    fn flows_that_carried_nothing_move_nothing() {
        let mut path = path_of_flows([flow(0, 1e9)]);
        let before = path.clone();
        for unusable in [
            Evidence {
                bytes: 100,
                ..flow(1, 1e12)
            },
            Evidence {
                min_rtt_us: 0.0,
                ..flow(1, 1e9)
            },
            Evidence {
                mean_rtt_us: f64::NAN,
                ..flow(1, 1e9)
            },
            flow(1, f64::INFINITY),
            flow(1, -1.0),
        ] {
            assert!(!path.learn(unusable));
        }
        assert_eq!(path, before);
    }

    #[test]
    fn a_live_flow_counts_once() {
        let mut path = path_of_flows([flow(7, 1e8)]);
        for part in 1..50 {
            let seen_us = path.seen_us() + 1_000_000;
            path.learn(Evidence {
                seen_us,
                ..flow(7, 1e8 + f64::from(part))
            });
        }
        let estimate = path.estimate().unwrap();
        assert_eq!((path.flows, estimate.flows, path.losses.len()), (1, 1, 1));
        assert_eq!(estimate.rate.unwrap().bps.value, 1e8 + 49.0);
    }

    #[test]
    fn a_flow_that_can_no_longer_tell_its_losses_has_told_them() {
        let with_loss = |loss| Evidence {
            loss,
            ..flow(1, 1e9)
        };
        let mut path = path_of_flows([with_loss(Some(Loss::Random))]);
        (0..30).for_each(|_| assert!(path.learn(with_loss(None))));
        assert_eq!(path.estimate().unwrap().loss, Some(Loss::Random));
        path.learn(with_loss(Some(Loss::Queue)));
        assert_eq!(path.estimate().unwrap().loss, Some(Loss::Queue));
        assert_eq!(path.losses.len(), 1);
    }

    /// As a daemon does: what the path gets follows what each flow told.
    fn follow(path: &mut Path, seen: Evidence) -> Option<Law> {
        let now_us = seen.seen_us;
        path.learn(seen);
        let host = Host {
            law: "cubic".into(),
            send_autotuned_bytes: 4 << 20,
            receive_autotuned_bytes: 6 << 20,
            most_buffer_bytes: 256 << 20,
            overrides: false,
            private: Vec::new(),
        };
        let (chosen, known) = (path.choice(&host, Trust::Shared)?.profile, path.estimate()?);
        path.guard.begin(&chosen, &known, now_us);
        chosen.law
    }

    /// Of CUBIC, then of `fp_bbr`, which finds 400 Mb/s.
    fn path_whose_rate_is_found(loss: Loss) -> Path {
        let mut path = Path::default();
        let lossy = Evidence {
            loss: Some(loss),
            limit: Some(Limit::Loss),
            ..flow(0, 1e8)
        };
        assert_eq!(follow(&mut path, lossy), Some(Law::Bbr));
        let starting = Evidence {
            loss: None,
            law: Some(Law::Bbr),
            ..flow(1, 4e8)
        };
        let found = Evidence {
            excess_share: Some(0.001),
            ..starting.clone()
        };
        assert_eq!(follow(&mut path, starting), Some(Law::Bbr));
        assert_eq!(follow(&mut path, found), Some(Law::Cubic));
        path
    }

    fn pace_of(path: &Path) -> Option<u64> {
        path.guard.profile()?.pacing_rate_bps
    }

    #[test]
    fn once_its_rate_is_found_flows_stay_below_it_and_look_again_after_twenty() {
        let mut path = path_whose_rate_is_found(Loss::Policed);
        let pace = pace_of(&path).unwrap();
        assert!((384_000_000..=388_000_000).contains(&pace), "{pace}");
        let below = |number| Evidence {
            loss: Some(Loss::None),
            ..flow(number, 3.7e8)
        };
        for number in 2..20 {
            assert_eq!(follow(&mut path, below(number)), Some(Law::Cubic));
            assert_eq!(pace_of(&path), Some(pace), "it does not sink");
        }
        let mut later = (20..23).map(|number| follow(&mut path, below(number)));
        assert!(later.any(|law| law == Some(Law::Bbr)));
        assert_eq!(path.estimate().unwrap().loss, Some(Loss::Policed));
    }

    #[test]
    fn a_path_whose_losses_nobody_sees_any_more_is_asked_again_after_an_hour() {
        let mut path = Path::default();
        let lossy = Evidence {
            loss: Some(Loss::Random),
            limit: Some(Limit::Loss),
            ..flow(0, 4e8)
        };
        assert_eq!(follow(&mut path, lossy), Some(Law::Bbr));
        // Each ends before its start is over.
        let clean = |number| Evidence {
            loss: None,
            law: Some(Law::Bbr),
            ..flow(number, 4e8)
        };
        // One flow a minute.
        for number in 1..=60 {
            assert_eq!(follow(&mut path, clean(number)), Some(Law::Bbr), "{number}");
        }
        assert_eq!(follow(&mut path, clean(61)), Some(Law::Cubic));
    }

    #[test]
    fn flows_of_the_policys_rules_do_not_tell_what_is_on_trial() {
        let mut path = path_whose_rate_is_found(Loss::Policed);
        let pace = pace_of(&path);
        let by_a_rule = |number| Evidence {
            loss: Some(Loss::Random),
            retransmitted_pkts: 350_000,
            is_given: false,
            ..flow(number, 3.7e8)
        };
        path.learn(by_a_rule(2));
        assert!(!path.estimate().unwrap().loses_paced);
        assert_eq!(pace_of(&path), pace, "it is not taken back");
    }

    #[test]
    fn a_paced_flow_that_loses_segments_shows_that_any_rate_does() {
        for loss in [Loss::Policed, Loss::Random] {
            let mut path = path_whose_rate_is_found(loss);
            let lossy = Evidence {
                loss: Some(Loss::Random),
                ..flow(2, 5e7)
            };
            assert_eq!(follow(&mut path, lossy), Some(Law::Bbr));
            for number in 3..20 {
                let found_again = Evidence {
                    loss: None,
                    law: Some(Law::Bbr),
                    excess_share: Some(0.001),
                    ..flow(number, 4e8)
                };
                assert_eq!(follow(&mut path, found_again), Some(Law::Bbr));
            }
        }
    }

    /// A flow that comes late beside others at a queue that CoDel keeps short loses segments at any rate.
    #[test]
    fn behind_a_paced_flow_that_lost_nothing_it_takes_two_that_do() {
        let paced = |number, loss, run_pkts| Evidence {
            loss,
            law: Some(Law::Cubic),
            paced_run_pkts: Some(run_pkts),
            ..flow(number, 3.8e8)
        };
        let lossy = |number| paced(number, Some(Loss::Random), 300_000);
        // The flow that found the rate tells as much as one that began under the pace.
        for clean in [1, 2] {
            let mut path = path_whose_rate_is_found(Loss::Random);
            let clean = paced(clean, None, 300_000);
            assert_eq!(follow(&mut path, clean), Some(Law::Cubic));
            assert_eq!(follow(&mut path, lossy(3)), Some(Law::Cubic));
            assert_eq!(follow(&mut path, lossy(4)), Some(Law::Bbr));
        }
        // One that sent little tells nothing.
        let mut path = path_whose_rate_is_found(Loss::Random);
        assert_eq!(follow(&mut path, paced(2, None, 19_999)), Some(Law::Cubic));
        assert_eq!(follow(&mut path, lossy(3)), Some(Law::Bbr));
    }

    #[test]
    fn a_flow_that_lost_segments_since_it_is_paced_shows_it_too() {
        let mut path = path_whose_rate_is_found(Loss::Random);
        let since_paced = Evidence {
            paced_bps: pace_of(&path),
            law: Some(Law::Cubic),
            loss: Some(Loss::Random),
            ..flow(1, 4e8)
        };
        assert_eq!(follow(&mut path, since_paced), Some(Law::Bbr));
        assert!(path.estimate().unwrap().loses_paced);
    }

    #[test]
    fn five_flows_in_a_row_that_are_off_begin_an_epoch() {
        let far = |number| Evidence {
            min_rtt_us: 150e3,
            mean_rtt_us: 170e3,
            ..flow(number, 1e9)
        };
        let mut path = path_of_flows((0..10).map(|number| flow(number, 1e9)));
        (10..14).for_each(|number| assert!(path.learn(far(number))));
        assert_eq!(path.epochs, 0);
        assert!(path.estimate().unwrap().base_rtt_us.value < 101e3);
        path.learn(far(14));
        assert_eq!(path.epochs, 1);
        assert_eq!(path.estimate().unwrap().base_rtt_us.value, 150e3);
    }

    #[test]
    fn a_slower_path_is_learned_within_five_flows() {
        let mut path = path_of_flows((0..15).map(|number| flow(number, 1e9)));
        (15..20).for_each(|number| assert!(path.learn(flow(number, 2e8))));
        let rate = path.estimate().unwrap().rate.unwrap();
        assert_eq!(rate.bps.value, 2e8);
    }

    #[test]
    fn after_a_day_an_estimate_is_a_prior() {
        let mut path = path_of_flows((0..20).map(|number| flow(number, 1e9)));
        let mut late = flow(20, 1e9);
        late.begin_us += 2 * PRIOR_AFTER_US;
        late.seen_us += 2 * PRIOR_AFTER_US;
        path.learn(late);
        assert_eq!(path.estimate().unwrap().flows, PRIOR_FLOWS + 1);
    }

    proptest! {
        /// A peer that lies moves the estimate no further than what flows of this host saw, whatever it claims.
        #[test]
        fn an_estimate_lies_within_its_evidence(
            flows in proptest::collection::vec((1e3..1e7_f64, 1.0..4.0_f64, 1e5..1e11_f64), 1..60)
        ) {
            let flows = flows.into_iter().enumerate().map(|(number, (rtt_us, queue, bps))| Evidence {
                min_rtt_us: rtt_us,
                mean_rtt_us: rtt_us * queue,
                ..flow(number as u64, bps)
            });
            let path = path_of_flows(flows);
            let estimate = path.estimate().unwrap();
            let kept: Vec<&Evidence> = path.evidence().collect();
            prop_assert!(kept.len() <= MOST_FLOWS && estimate.flows == kept.len());
            let within = |value: f64, of: fn(&Evidence) -> f64| {
                let all = || kept.iter().map(|flow| of(flow));
                let (least, most) = (all().fold(f64::MAX, f64::min), all().fold(0.0, f64::max));
                value >= least * 0.999 && value <= most * 1.001
            };
            prop_assert!(within(estimate.base_rtt_us.value, |flow| flow.min_rtt_us));
            prop_assert!(within(estimate.high_rtt_us, |flow| flow.mean_rtt_us));
            prop_assert!(within(estimate.rate.unwrap().bps.value, |flow| flow.rate_bps.unwrap()));
        }
    }
}
