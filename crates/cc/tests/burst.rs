// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bound on bursts, whatever the law.

use fatpath_cc::{Control, Law, PathNow, Start, Window};
use proptest::prelude::*;

proptest! {
    #[test]
    fn it_bounds_what_leaves_and_gives_back_what_it_held(
        cwnd in 1u32..1 << 20, most in 0u32..1 << 16, in_flight in any::<u32>(), again in any::<u32>(),
    ) {
        let mut control = Control::new(Law::RENO, Start::default());
        let mut window = Window::new(cwnd);
        control.bound_burst(&mut window, most, in_flight);
        let leaves = window.cwnd_pkts.saturating_sub(in_flight);
        prop_assert!(window.cwnd_pkts <= cwnd);
        prop_assert!(most == 0 || leaves <= most);
        prop_assert!(most > 0 || window.cwnd_pkts == cwnd);
        control.bound_burst(&mut window, most, again);
        let is_held = window.cwnd_pkts < cwnd;
        prop_assert_eq!(control.end_burst_bound(&mut window), is_held);
        prop_assert_eq!(window.cwnd_pkts, cwnd);
        prop_assert!(!control.end_burst_bound(&mut window));
    }
}

#[test]
fn a_paced_start_is_no_burst() {
    let start = Start {
        initial_rate_bps: 100_000_000,
        ..Start::default()
    };
    let mut control = Control::new(Law::RENO, start);
    let mut window = Window::new(10);
    control.begin(&mut window);
    let path = PathNow {
        srtt_us: 100_000,
        mss_bytes: 1448,
    };
    assert!(control.transmission_starts(&mut window, &path).is_some());
    let opened = window.cwnd_pkts;
    control.bound_burst(&mut window, 4, 0);
    assert_eq!(window.cwnd_pkts, opened);
}
