// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether what a path gets does harm: then it is taken back, and the path is left alone for a time.

use crate::estimate::Estimate;
use crate::evidence::{Evidence, Loss, Under};
use crate::profile::{Law, Profile};
use fatpath_statistics::quantile;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Too many segments sent again: this share of them, and so many times what the path had before.
const MUCH_RETRANSMITTED: f64 = 0.05;
const TIMES_BEFORE: f64 = 3.0;

/// In so many segments, of one flow that lasted so long or of as many flows as are judged together: the start of a single
/// flow, which looks for the path's rate, loses more than the rest of it.
const LEAST_PKTS: u64 = 1_000;
const LEAST_TIME_US: i64 = 10_000_000;

/// `fp_bbr` is kept for so long at least: it begins with a start, and a path that looks now like this and now like that would
/// have nothing else. A flow that loses segments without a queue gets it at once. Where the queue is short it ends as soon as it has found the
/// rate, unless it took the place of a pace within this time.
pub(crate) const LAW_KEPT_US: i64 = 15_000_000;

/// Too slow: the median of so many flows below this share of what the path had before.
const JUDGED_FLOWS: usize = 5;
const LEAST_GOODPUT: f64 = 2.0 / 3.0;

/// How long a path is left alone: the first time, the second, and from then on.
const QUARANTINES_US: [i64; 3] = [3_600_000_000, 86_400_000_000, 7 * 86_400_000_000];

/// The trial of what a path gets, and what came of those before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Guard {
    trial: Option<Trial>,
    quarantine: Option<Quarantine>,
    taken_back: u32,
    /// When the law on trial became it, µs since 1970.
    #[serde(default)]
    law_since_us: i64,
    /// When the law on trial took the place of a pace, µs since 1970.
    #[serde(default)]
    unpaced_us: Option<i64>,
    /// Flows start by slow start until then, µs since 1970.
    #[serde(default)]
    no_start_until_us: i64,
}

/// A path is left alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quarantine {
    /// Until then, µs since 1970.
    pub until_us: i64,
    /// What it had been given did.
    pub reason: TakenBack,
}

/// What harm was seen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TakenBack {
    /// Shares of segments sent again, before and since.
    Retransmitted {
        /// Before.
        before: f64,
        /// Since.
        since: f64,
    },
    /// Bits a second, before and since.
    Slower {
        /// Before.
        before_bps: f64,
        /// Since.
        since_bps: f64,
    },
}

impl fmt::Display for TakenBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TakenBack::Retransmitted { before, since } => write!(
                f,
                "taken back: {:.2} % of the segments were sent again, {:.2} % before",
                since * 100.0,
                before * 100.0
            ),
            TakenBack::Slower {
                before_bps,
                since_bps,
            } => write!(
                f,
                "taken back: flows had {:.1} Mb/s, {:.1} before",
                since_bps / 1e6,
                before_bps / 1e6
            ),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Trial {
    profile: Profile,
    since_us: i64,
    retransmitted_share_before: f64,
    bps_before: Option<f64>,
    /// Of flows that began since, the latest.
    flows: Vec<Evidence>,
}

impl Guard {
    /// The flows of the path get this from now on; an empty profile ends the trial.
    pub fn begin(&mut self, profile: &Profile, known: &Estimate, now_us: i64) {
        let is_same = |trial: &Trial| trial.profile == *profile;
        if profile.is_empty() {
            self.trial = None;
        } else if !self.trial.as_ref().is_some_and(is_same) {
            let is_paced = |profile: &Profile| profile.pacing_rate_bps.is_some();
            let last = self.trial.take();
            if last.as_ref().and_then(|last| last.profile.law) != profile.law {
                self.law_since_us = now_us;
            }
            if last.as_ref().is_some_and(|last| is_paced(&last.profile)) && !is_paced(profile) {
                self.unpaced_us = Some(now_us);
            }
            // Flows that were paced before tell the same as those that begin now.
            let paced_since_us = last
                .as_ref()
                .filter(|last| is_paced(&last.profile) && is_paced(profile))
                .map(|last| last.since_us);
            // A larger buffer than the last one is judged by what the path had before both.
            let (retransmitted_share_before, bps_before) = match last {
                // The start of a first flow may have lost more than the rest of it.
                Some(last) => (
                    last.retransmitted_share_before
                        .min(known.retransmitted_share),
                    last.bps_before,
                ),
                None => (
                    known.retransmitted_share,
                    known.rate.map(|rate| rate.bps.value),
                ),
            };
            self.trial = Some(Trial {
                profile: profile.clone(),
                since_us: paced_since_us.unwrap_or(now_us),
                retransmitted_share_before,
                bps_before,
                flows: Vec::new(),
            });
        }
    }

    /// Whether the path would leave `fp_bbr` too soon.
    pub(crate) fn keeps_law(&self, chosen: &Profile, known: &Estimate, now_us: i64) -> bool {
        let now = self.profile().and_then(|profile| profile.law);
        let leaves = now == Some(Law::Bbr) && chosen.law != now && !chosen.is_empty();
        let is_within = |us: i64| (0..LAW_KEPT_US).contains(&now_us.saturating_sub(us));
        // It would fill a queue that an AQM keeps short for others.
        let may_end =
            known.loss == Some(Loss::ShortQueue) && !self.unpaced_us.is_some_and(is_within);
        leaves && !may_end && is_within(self.law_since_us)
    }

    /// Why the path is left alone at a time; none where it is not.
    pub fn quarantine(&self, now_us: i64) -> Option<&Quarantine> {
        let quarantine = self.quarantine.as_ref();
        quarantine.filter(|quarantine| now_us < quarantine.until_us)
    }

    /// Whether flows that start at the path's rate lost too much lately.
    pub(crate) fn forbids_starts(&self, now_us: i64) -> bool {
        now_us < self.no_start_until_us
    }

    /// Whether the path is on trial with other than the host's settings.
    pub fn profile(&self) -> Option<&Profile> {
        self.trial.as_ref().map(|trial| &trial.profile)
    }

    /// What a flow tells by its law and its settings; of those on trial nothing where it is older than these, or a rule of the
    /// policy file gave it others. What it lost since it is paced, it lost under the pace, however old it is.
    pub(crate) fn under(&self, seen: &Evidence) -> Under {
        let trial = self.trial.as_ref().filter(|trial| trial.judges(seen));
        let of_trial = trial.and_then(|trial| trial.profile.pacing_rate_bps);
        let of_file = seen.paced_bps.filter(|_| !seen.is_given);
        let is_paced = seen.is_given && seen.paced_bps.is_some();
        let without_queue = matches!(seen.loss, Some(Loss::Random | Loss::Policed));
        Under {
            found_rate: seen.law == Some(Law::Bbr)
                && seen.excess_share.is_some()
                && seen.path_rate_bps().is_some(),
            paced_bps: of_trial.or(of_file),
            lost_paced: (of_trial.is_some() || is_paced) && without_queue,
        }
    }

    /// What is known, without what the law on trial itself sends again where losses meet no queue: whether that is too much is judged here, and would
    /// otherwise end the trial and begin it anew for ever.
    pub(crate) fn without_trial(&self, known: &Estimate) -> Estimate {
        let is_for_losses =
            |profile: &Profile| profile.law == Some(Law::Bbr) || profile.pacing_rate_bps.is_some();
        Estimate {
            retransmitted_share: match self.profile().is_some_and(is_for_losses) {
                true => 0.0,
                false => known.retransmitted_share,
            },
            ..known.clone()
        }
    }

    /// What a flow showed.
    pub(crate) fn learn(&mut self, seen: &Evidence) {
        let Some(trial) = &mut self.trial else {
            return;
        };
        if !trial.judges(seen) {
            return;
        }
        if trial.profile.initial_rate_bps.is_some() && seen.is_start_lossy() {
            self.no_start_until_us = seen.seen_us.saturating_add(QUARANTINES_US[0]);
        }
        trial.flows.retain(|flow| flow.flow != seen.flow);
        trial.flows.push(seen.clone());
        let old = trial.flows.len().saturating_sub(JUDGED_FLOWS);
        trial.flows.drain(..old);
        if let Some(reason) = trial.harm() {
            self.take_back(reason, seen.seen_us);
        }
    }

    fn take_back(&mut self, reason: TakenBack, now_us: i64) {
        let place = (self.taken_back as usize).min(QUARANTINES_US.len() - 1);
        self.taken_back = self.taken_back.saturating_add(1);
        self.trial = None;
        self.quarantine = Some(Quarantine {
            until_us: now_us.saturating_add(QUARANTINES_US[place]),
            reason,
        });
    }
}

impl Trial {
    /// The flow began with what is on trial.
    fn judges(&self, seen: &Evidence) -> bool {
        seen.is_given && seen.begin_us >= self.since_us
    }

    fn harm(&self) -> Option<TakenBack> {
        let sum = |of: fn(&Evidence) -> u64| self.judged().map(of).sum::<u64>();
        let sent = sum(|flow| flow.sent_pkts);
        let before = self.retransmitted_share_before;
        let since = sum(|flow| flow.retransmitted_pkts) as f64 / sent.max(1) as f64;
        let is_much = since > MUCH_RETRANSMITTED.max(TIMES_BEFORE * before);
        if sent >= LEAST_PKTS && is_much {
            return Some(TakenBack::Retransmitted { before, since });
        }
        let rates = self.flows.iter().filter_map(Evidence::path_rate_bps);
        let are_enough = rates.clone().count() >= JUDGED_FLOWS;
        let (before_bps, since_bps) = (self.bps_before?, quantile(rates, 0.5)?);
        let is_slow = are_enough && since_bps < before_bps * LEAST_GOODPUT;
        is_slow.then_some(TakenBack::Slower {
            before_bps,
            since_bps,
        })
    }

    /// All flows where they are enough, and before that those that have got over their start.
    fn judged(&self) -> impl Iterator<Item = &Evidence> {
        let are_enough = self.flows.len() >= JUDGED_FLOWS;
        let is_long = |flow: &&Evidence| flow.seen_us - flow.begin_us >= LEAST_TIME_US;
        let flows = self.flows.iter();
        flows.filter(move |flow| are_enough || is_long(flow))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::tests::{flow, path_of_flows};

    fn on_trial() -> (Guard, i64) {
        let path = path_of_flows((0..5).map(|number| flow(number, 1e8)));
        let mut guard = Guard::default();
        let profile = Profile {
            send_buffer_bytes: Some(1 << 24),
            ..Profile::default()
        };
        let now_us = path.seen_us();
        guard.begin(&profile, &path.estimate().unwrap(), now_us);
        (guard, now_us)
    }

    fn lossy(number: u64) -> Evidence {
        Evidence {
            retransmitted_pkts: 60_000,
            ..flow(number, 1e8)
        }
    }

    #[test]
    fn many_retransmissions_take_it_back_for_an_hour_a_day_and_a_week() {
        let (mut guard, _) = on_trial();
        let (known, mut number) = (path_of_flows([flow(0, 1e8)]).estimate().unwrap(), 10);
        for hours in [1, 24, 7 * 24, 7 * 24] {
            let profile = Profile {
                send_buffer_bytes: Some(number),
                ..Profile::default()
            };
            guard.begin(&profile, &known, flow(number, 1e8).begin_us);
            guard.learn(&lossy(number));
            let now_us = lossy(number).seen_us;
            let until_us = guard.quarantine(now_us).unwrap().until_us;
            assert_eq!(until_us - now_us, hours * 3_600_000_000);
            assert_eq!(guard.quarantine(until_us), None);
            assert_eq!(guard.profile(), None);
            number += 1;
        }
    }

    #[test]
    fn the_start_of_one_flow_is_not_judged() {
        let starting = |number| {
            let all = lossy(number);
            Evidence {
                seen_us: all.begin_us + 2_000_000,
                ..all
            }
        };
        let (mut guard, _) = on_trial();
        (10..14).for_each(|number| guard.learn(&starting(number)));
        assert!(guard.profile().is_some());
        guard.learn(&starting(14));
        assert!(guard.quarantine(starting(14).seen_us).is_some());
    }

    #[test]
    fn flows_that_began_before_are_not_judged() {
        let (mut guard, now_us) = on_trial();
        guard.learn(&lossy(1));
        assert_eq!(guard.quarantine(now_us), None);
    }

    #[test]
    fn a_path_that_always_lost_much_is_not_taken_back() {
        let path = path_of_flows((0..5).map(lossy));
        let mut guard = Guard::default();
        let profile = Profile {
            law: Some(crate::Law::Bbr),
            ..Profile::default()
        };
        guard.begin(&profile, &path.estimate().unwrap(), path.seen_us());
        guard.learn(&lossy(10));
        assert_eq!(guard.quarantine(lossy(10).seen_us), None);
    }

    #[test]
    fn five_flows_that_are_a_third_slower_take_it_back() {
        let (mut guard, _) = on_trial();
        (10..14).for_each(|number| guard.learn(&flow(number, 6e7)));
        assert!(guard.profile().is_some());
        guard.learn(&flow(14, 6e7));
        let quarantine = guard.quarantine(flow(14, 6e7).seen_us).unwrap();
        let slower = TakenBack::Slower {
            before_bps: 1e8,
            since_bps: 6e7,
        };
        assert_eq!(quarantine.reason, slower);
    }

    #[test]
    fn flows_as_before_leave_it() {
        let (mut guard, _) = on_trial();
        (10..30).for_each(|number| guard.learn(&flow(number, 9e7)));
        assert!(guard.profile().is_some());
    }
}
