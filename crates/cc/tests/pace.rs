// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a host that sends late is told, so that it sends what the law wants.

use fatpath_cc::Pace;
use proptest::prelude::*;

const MOST: f64 = 1.125;

/// A host that sends `part` of what it is told, and acknowledgements a millisecond apart, for 3 s; what it sent in the
/// last of them, of what the law wanted.
fn sent_of_wanted(part: f64, bytes_per_s: u64, is_held: bool) -> f64 {
    let mut pace = Pace::default();
    let (mut sent, mut before_last) = (0.0, 0.0);
    for now_us in (1_000..3_000_000).step_by(1_000) {
        if now_us == 2_000_000 {
            before_last = sent;
        }
        pace.note(now_us, bytes_per_s, sent as u64, is_held);
        sent += pace.rate(bytes_per_s) as f64 * part / 1_000.0;
    }
    (sent - before_last) / bytes_per_s as f64
}

proptest! {
    #[test]
    fn a_late_host_sends_what_is_wanted(part in 0.9f64..1.0, bytes_per_s in 1_000_000u64..50_000_000_000) {
        let sent = sent_of_wanted(part, bytes_per_s, false);
        prop_assert!((0.995..1.01).contains(&sent), "{}", sent);
    }

    #[test]
    fn no_more_than_an_eighth_is_added(part in 0.1f64..0.85, bytes_per_s in 1_000_000u64..50_000_000_000) {
        let sent = sent_of_wanted(part, bytes_per_s, false);
        prop_assert!((sent / part - MOST).abs() < 0.01, "{}", sent / part);
    }

    #[test]
    fn a_flow_that_something_else_holds_is_not_hurried(part in 0.1f64..1.0) {
        let sent = sent_of_wanted(part, 125_000_000, true);
        prop_assert!((sent - part).abs() < 1e-3, "{}", sent);
    }

    /// Whatever the clock and the counters do.
    #[test]
    fn what_is_told_stays_within_bounds(
        steps in prop::collection::vec((0u64..1 << 40, any::<u64>(), any::<u64>(), any::<bool>()), 1..200),
        wanted in 0u64..1 << 40,
    ) {
        let mut pace = Pace::default();
        let mut now_us = 0u64;
        for (passed_us, bytes_per_s, sent_bytes, is_held) in steps {
            now_us += passed_us % 200_000;
            pace.note(now_us, bytes_per_s, sent_bytes, is_held);
            let told = pace.rate(wanted);
            prop_assert!(told >= wanted && told as f64 <= wanted as f64 * MOST + 1.0);
        }
    }
}

/// A second without an acknowledgement, in which nothing left, is no lateness.
#[test]
fn a_pause_is_no_lateness() {
    let (mut pace, rate) = (Pace::default(), 125_000_000);
    let mut sent = 0;
    for step in 0..20 {
        pace.note(1 + step * 1_000_000, rate, sent, false);
        sent += 1_000;
    }
    assert_eq!(pace.rate(rate), rate);
}
