// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the evidence of a path amounts to.

use crate::evidence::{Evidence, Limit, Loss};
use fatpath_statistics::{quantile, spread};
use serde::{Deserialize, Serialize};

/// Peers whose least round-trip times differ more, by the standard deviation of their logarithms, share no path.
const ONE_PATH_SPREAD: f64 = 0.3;

/// Of fewer flows the spread says nothing.
const LEAST_SPREAD_FLOWS: usize = 5;

/// Doubt of what fewer than this many flows say.
const FEW: usize = 3;
const DOUBT_OF_FEW: f64 = 0.5;
const LEAST_DOUBT: f64 = 0.02;

/// Best rates of flows that the path held back differ by less than this.
const SAME_RATE: f64 = 1.1;

/// Paced flows that tell whether losses come of exceeding the rate: so many of the latest. One that shows that they do has sent so
/// much from one congestion signal to the next.
const PACED_FLOWS: usize = 3;
const LEAST_CLEAN_PKTS: u64 = 20_000;

/// A share of 1 % is told from less in so many segments.
const LEAST_GIVEN_PKTS: u64 = 1_000;

/// What is known of a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Flows that it rests on.
    pub flows: usize,
    /// When the latest of them was seen, µs since 1970.
    pub seen_us: i64,
    /// Round-trip time without queues, µs: the 10th percentile of the flows' least.
    pub base_rtt_us: Value,
    /// Round-trip time with queues, µs: the 90th percentile of the flows' mean.
    pub high_rtt_us: f64,
    /// What the path carries; none while no flow lasted long enough.
    pub rate: Option<Rate>,
    /// When segments are lost; none while it cannot be told.
    pub loss: Option<Loss>,
    /// Whether a flow under a law that does not answer to losses found the rate.
    pub is_found: bool,
    /// Whether flows that never sent faster than the path carries lost segments without a queue.
    pub loses_paced: bool,
    /// Segments sent again, of those sent.
    pub retransmitted_share: f64,
    /// The same of flows that began with what was learned of the path; none while these sent too little to tell.
    pub given_retransmitted_share: Option<f64>,
    /// Whether buffers that programs set held flows back in the last day.
    pub has_small_buffers: bool,
    /// Whether the peers of the prefix are at different distances, so that no one setting suits them.
    pub is_mixed: bool,
    /// Segment size, bytes.
    pub mss_bytes: u32,
}

/// A number with its doubt.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// The number.
    pub value: f64,
    /// Standard error, as a share of the number.
    pub doubt: f64,
}

/// Rate of a path's bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// Bits of payload a second: the 90th percentile of the flows' best.
    pub bps: Value,
    /// What held back the flows that say so: then the path may carry more.
    pub limit: Option<Limit>,
}

impl Estimate {
    /// From the evidence, and the kinds of loss of the flows that could tell. What flows told that are replaced since is not
    /// known here.
    pub(crate) fn of(evidence: &[Evidence], losses: &[Loss]) -> Option<Estimate> {
        let least_rtts = || evidence.iter().map(|flow| flow.min_rtt_us);
        Some(Estimate {
            flows: evidence.len(),
            seen_us: evidence.iter().map(|flow| flow.seen_us).max()?,
            base_rtt_us: value(least_rtts(), 0.1)?,
            high_rtt_us: quantile(evidence.iter().map(|flow| flow.mean_rtt_us), 0.9)?,
            rate: rate(evidence),
            loss: most_frequent(losses),
            is_found: evidence.iter().any(|flow| flow.under.found_rate),
            loses_paced: loses_paced(evidence),
            retransmitted_share: retransmitted_share(evidence.iter(), 1).unwrap_or_default(),
            given_retransmitted_share: retransmitted_share(
                evidence.iter().filter(|flow| flow.is_given),
                LEAST_GIVEN_PKTS,
            ),
            has_small_buffers: false,
            is_mixed: evidence.len() >= LEAST_SPREAD_FLOWS
                && spread(least_rtts()) > ONE_PATH_SPREAD,
            mss_bytes: evidence.last()?.mss_bytes,
        })
    }

    /// Whether fewer than three flows told its rate: the first window of a flow may have less than later ones.
    pub(crate) fn has_rate_of_few(&self) -> bool {
        self.rate.is_some_and(|rate| rate.bps.doubt >= DOUBT_OF_FEW)
    }

    /// Bandwidth-delay product, bytes.
    pub fn bdp_bytes(&self) -> Option<f64> {
        Some(self.rate?.bps.value * self.base_rtt_us.value / 8e6)
    }
}

/// Whether paced flows lose segments without a queue all the same: of the latest that tell, most do. One may have met others whose queue an
/// AQM keeps short.
fn loses_paced(evidence: &[Evidence]) -> bool {
    let run_pkts = |flow: &Evidence| {
        let told = flow.paced_run_pkts.filter(|_| flow.is_given);
        told.or(flow.under.paced_bps.map(|_| flow.sent_pkts))
    };
    let has_lost = |flow: &Evidence| match flow.under.lost_paced {
        true => Some(true),
        false => (run_pkts(flow) >= Some(LEAST_CLEAN_PKTS)).then_some(false),
    };
    let latest = evidence.iter().rev().filter_map(has_lost);
    let (lost, clean): (Vec<bool>, Vec<bool>) = latest.take(PACED_FLOWS).partition(|lost| *lost);
    lost.len() > clean.len()
}

/// Whether the peers are at one distance, so that a flow can tell a queue from a longer way: three of four least round-trip times differ
/// from the base by less than what flows take for a queue, `cc_hystart_threshold_us()`.
pub(crate) fn has_one_distance(evidence: &[Evidence]) -> bool {
    let least_rtt_us = |share| quantile(evidence.iter().map(|flow| flow.min_rtt_us), share);
    let (Some(base_us), Some(most_us)) = (least_rtt_us(0.1), least_rtt_us(0.75)) else {
        return false;
    };
    most_us < base_us + (base_us / 8.0).clamp(4_000.0, 16_000.0)
}

/// None of flows that sent less than `least_pkts` in all.
fn retransmitted_share<'e>(
    flows: impl Iterator<Item = &'e Evidence> + Clone,
    least_pkts: u64,
) -> Option<f64> {
    let sent: u64 = flows.clone().map(|flow| flow.sent_pkts).sum();
    let again: u64 = flows.map(|flow| flow.retransmitted_pkts).sum();
    (sent >= least_pkts).then(|| again as f64 / sent as f64)
}

fn value(numbers: impl Iterator<Item = f64> + Clone, share: f64) -> Option<Value> {
    let n = numbers.clone().count();
    let doubt = match n < FEW {
        true => DOUBT_OF_FEW,
        false => (spread(numbers.clone()) / (n as f64).sqrt()).max(LEAST_DOUBT),
    };
    let value = quantile(numbers, share)?;
    Some(Value { value, doubt })
}

/// Of the flows that the path held back. A flow that something else held back counts where it was faster than these:
/// the path carries at least its rate, and perhaps more where that is well above theirs.
fn rate(evidence: &[Evidence]) -> Option<Rate> {
    let free = evidence.iter().filter_map(Evidence::path_rate_bps);
    let of_path = value(free, 0.9);
    let limited = |flow: &Evidence| Some((flow.rate_bps?, flow.limit?));
    let fastest = evidence.iter().filter_map(limited);
    let fastest = fastest.max_by(|(one, _), (other, _)| one.total_cmp(other));
    match (of_path, fastest) {
        (Some(bps), Some((limited_bps, limit))) if limited_bps > bps.value => {
            let is_more = limited_bps > SAME_RATE * bps.value;
            Some(Rate {
                bps: Value {
                    value: limited_bps,
                    ..bps
                },
                limit: is_more.then_some(limit),
            })
        }
        (Some(bps), _) => Some(Rate { bps, limit: None }),
        (None, Some((value, limit))) => Some(Rate {
            bps: Value {
                value,
                doubt: DOUBT_OF_FEW,
            },
            limit: Some(limit),
        }),
        (None, None) => None,
    }
}

/// First whether losses hold back a law that answers to them, then the kind. Of what is equally frequent the latest.
fn most_frequent(losses: &[Loss]) -> Option<Loss> {
    let count = |is_so: &dyn Fn(&Loss) -> bool| losses.iter().filter(|loss| is_so(loss)).count();
    let by_holding = |kind: &&Loss| count(&|loss| loss.holds_back() == kind.holds_back());
    let holds_back = losses.iter().max_by_key(by_holding)?.holds_back();
    let kinds = losses.iter().filter(|loss| loss.holds_back() == holds_back);
    kinds
        .max_by_key(|kind| count(&|loss| loss == *kind))
        .copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::tests::flow;

    fn estimate(evidence: &[Evidence]) -> Estimate {
        Estimate::of(evidence, &[]).unwrap()
    }

    #[test]
    fn a_slow_program_says_nothing_of_the_paths_rate() {
        let mut slow = flow(1, 100e6);
        slow.limit = Some(Limit::Application);
        let both = estimate(&[flow(0, 900e6), slow.clone()]);
        assert_eq!(both.rate.unwrap().bps.value, 900e6);
        assert_eq!(both.rate.unwrap().limit, None);
        let alone = estimate(&[slow]);
        assert_eq!(alone.rate.unwrap().limit, Some(Limit::Application));
    }

    #[test]
    fn a_limited_flow_that_was_faster_is_a_lower_bound() {
        let mut fast = flow(1, 900e6);
        fast.limit = Some(Limit::OwnBuffer);
        let rate = estimate(&[flow(0, 500e6), fast]).rate.unwrap();
        assert_eq!(
            (rate.bps.value, rate.limit),
            (900e6, Some(Limit::OwnBuffer))
        );
    }

    #[test]
    fn a_limited_flow_that_was_as_fast_as_free_ones_leaves_the_rate_known() {
        let mut held = flow(0, 193e6);
        held.limit = Some(Limit::OwnBuffer);
        let rate = estimate(&[held, flow(1, 186e6)]).rate.unwrap();
        assert_eq!((rate.bps.value, rate.limit), (193e6, None));
    }

    #[test]
    fn peers_at_different_distances_share_no_path() {
        let at = |rtt_us: f64| Evidence {
            min_rtt_us: rtt_us,
            mean_rtt_us: rtt_us,
            ..flow(0, 1e9)
        };
        assert!(estimate(&[at(1e3), at(1e5), at(1e3), at(1e5), at(1e3)]).is_mixed);
        assert!(!estimate(&[at(9e4), at(1e5), at(1e5), at(1.1e5), at(1e5)]).is_mixed);
    }

    #[test]
    fn flows_with_learned_settings_tell_what_these_lose() {
        let first = Evidence {
            retransmitted_pkts: 70_000,
            is_given: false,
            ..flow(0, 1e9)
        };
        let alone = estimate(std::slice::from_ref(&first));
        assert_eq!(alone.retransmitted_share, 0.1);
        assert_eq!(alone.given_retransmitted_share, None);
        let short = Evidence {
            sent_pkts: 900,
            ..flow(1, 1e9)
        };
        let of_short = estimate(&[first.clone(), short]);
        assert_eq!(of_short.given_retransmitted_share, None);
        let both = estimate(&[first, flow(1, 1e9)]);
        assert!(both.retransmitted_share > 0.05);
        assert_eq!(both.given_retransmitted_share, Some(1e-4));
    }

    #[test]
    fn the_most_frequent_loss_counts_and_then_the_latest() {
        let of = most_frequent;
        assert_eq!(
            of(&[Loss::Queue, Loss::Queue, Loss::Random]),
            Some(Loss::Queue)
        );
        assert_eq!(of(&[Loss::Queue, Loss::Random]), Some(Loss::Random));
        let held = [Loss::Random, Loss::ShortQueue, Loss::ShortQueue];
        let both = [&held[..], &[Loss::Queue, Loss::Queue]].concat();
        assert_eq!(of(&both), Some(Loss::ShortQueue));
        assert_eq!(of(&[]), None);
    }
}
