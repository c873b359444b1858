// SPDX-License-Identifier: MIT OR Apache-2.0
//! What learned settings bring, as far as flows with and without them tell.

use crate::evidence::{Evidence, Limit};
use fatpath_statistics::quantile;

/// The median rate of flows that began under learned settings, as a multiple of that of the others; none without flows of
/// both. What a program held back tells of the program.
pub(crate) fn gain<'a>(flows: impl IntoIterator<Item = &'a Evidence>) -> Option<f64> {
    let told = flows
        .into_iter()
        .filter(|flow| flow.limit != Some(Limit::Application));
    let rates = told.filter_map(|flow| Some((flow.is_given, flow.rate_bps?)));
    let (with, without): (Vec<_>, Vec<_>) = rates.partition(|(is_given, _)| *is_given);
    let median = |rates: Vec<(bool, f64)>| quantile(rates.into_iter().map(|(_, bps)| bps), 0.5);
    Some(median(with)? / median(without)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Under;

    fn flow(is_given: bool, rate_bps: Option<f64>, limit: Option<Limit>) -> Evidence {
        Evidence {
            flow: 1,
            begin_us: 0,
            seen_us: 10_000_000,
            bytes: 1 << 20,
            sent_pkts: 1000,
            retransmitted_pkts: 0,
            min_rtt_us: 20e3,
            mean_rtt_us: 20e3,
            rate_bps,
            limit,
            loss: None,
            mss_bytes: 1448,
            excess_share: None,
            paced_bps: None,
            paced_run_pkts: None,
            law: None,
            is_given,
            under: Under::default(),
        }
    }

    #[test]
    fn it_takes_flows_with_and_without() {
        let slow = flow(false, Some(1e7), Some(Limit::Loss));
        let fast = [8e7, 9e7, 2e7].map(|bps| flow(true, Some(bps), None));
        assert_eq!(gain([&slow]), None);
        assert_eq!(gain(&fast), None);
        assert_eq!(gain(fast.iter().chain([&slow])), Some(8.0));
    }

    #[test]
    fn flows_that_tell_no_rate_of_the_path_are_left_out() {
        let slow = flow(false, Some(1e7), None);
        let fast = flow(true, Some(5e7), None);
        let short = flow(true, None, None);
        let idle = flow(true, Some(1e3), Some(Limit::Application));
        assert_eq!(gain([&slow, &fast, &short, &idle]), Some(5.0));
        assert_eq!(gain([&slow, &short, &idle]), None);
    }
}
