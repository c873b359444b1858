// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a flow keeps of a phase of its program while it is in another.

use fatpath_cc::{Control, Kept, Law, PathNow, Start, Window, window_laws};
use proptest::prelude::*;

const INITIAL_PKTS: u32 = 10;

fn control(start: Start) -> Control {
    Control::new(Law::RENO, start)
}

/// A flow that has sent, with this window.
fn flow(cwnd: u32, ssthresh: u32) -> Window {
    let mut window = Window::new(cwnd);
    window.ssthresh_pkts = ssthresh;
    window
}

proptest! {
    #[test]
    fn what_was_kept_comes_back(
        cwnd in 2u32..1 << 20, ssthresh in 2u32..1 << 20, acked in 0u32..1000, other in 2u32..1 << 20,
    ) {
        let mut control = control(Start::default());
        let mut window = flow(cwnd, ssthresh);
        control.acked(&mut window, acked);
        let before = window;
        let mut kept = Kept::default();
        control.change_phase(&mut window, &mut kept, 0, u32::MAX, INITIAL_PKTS);
        window.cwnd_pkts = other;
        control.ssthresh(&mut window, other);
        control.change_phase(&mut window, &mut kept, 0, u32::MAX, INITIAL_PKTS);
        prop_assert_eq!(window.cwnd_pkts, before.cwnd_pkts);
        prop_assert_eq!(window.ssthresh_pkts, before.ssthresh_pkts);
        // The law goes on from there as it would have.
        let mut unchanged = before;
        for one in [&mut window, &mut unchanged] {
            control.acked(one, 100);
        }
        prop_assert_eq!(window.cwnd_pkts, unchanged.cwnd_pkts);
        prop_assert_eq!(control.ssthresh(&mut window, 5), control.ssthresh(&mut unchanged, 5));
    }

    /// A phase may have another law than the rule: each finds its own memory when it comes back.
    #[test]
    fn a_law_finds_its_memory_after_another_ones_phase(
        law in 0usize..5, other in 0usize..5, cwnd in 2u32..1 << 16, acked in 0u32..3000,
    ) {
        let by = |law: usize| {
            let law = window_laws().nth(law).unwrap();
            Control::new(Law::named(law.name).unwrap(), Start::default())
        };
        let run = |control: &mut Control, window: &mut Window| {
            let mut windows = vec![control.ssthresh(window, window.cwnd_pkts)];
            window.cwnd_pkts = windows[0];
            for _ in 0..20 {
                window.now_us += 10_000;
                control.acked(window, acked);
                windows.push(window.cwnd_pkts);
            }
            windows
        };
        let (mut first, mut second) = (by(law), by(other));
        let mut window = flow(cwnd, cwnd / 2 + 1);
        window.srtt_us = 10_000;
        run(&mut first, &mut window);
        let mut unchanged = window;
        let mut kept = Kept::default();
        first.change_phase(&mut window, &mut kept, 0, u32::MAX, INITIAL_PKTS);
        run(&mut second, &mut window);
        second.change_phase(&mut window, &mut kept, 0, u32::MAX, INITIAL_PKTS);
        unchanged.now_us = window.now_us;
        prop_assert_eq!(run(&mut first, &mut window), run(&mut first, &mut unchanged));
    }

    #[test]
    fn never_more_than_the_clamp_or_what_may_leave_at_once(
        cwnd in 2u32..1 << 20, clamp in 1u32..1 << 20, at_once in 1u32..1 << 20, in_flight in 0u32..1 << 20,
    ) {
        let control = control(Start::default());
        let mut window = flow(cwnd, cwnd / 2 + 2);
        let mut kept = Kept::default();
        control.change_phase(&mut window, &mut kept, in_flight, at_once, INITIAL_PKTS);
        prop_assert!(window.cwnd_pkts <= INITIAL_PKTS);
        window.clamp_pkts = clamp;
        control.change_phase(&mut window, &mut kept, in_flight, at_once, INITIAL_PKTS);
        prop_assert!(window.cwnd_pkts <= at_once.min(clamp).min(cwnd));
        // Slow start has the whole of the kept window to go to.
        prop_assert!(window.ssthresh_pkts >= cwnd.min(clamp) || window.cwnd_pkts == cwnd.min(clamp));
    }

    #[test]
    fn a_loss_belongs_to_the_phase_in_which_it_was_found(cwnd in 4u32..1 << 16, other in 4u32..1 << 16) {
        let mut control = control(Start::default());
        let mut window = flow(cwnd, 2);
        let mut kept = Kept::default();
        control.change_phase(&mut window, &mut kept, 0, u32::MAX, INITIAL_PKTS);
        window.cwnd_pkts = other;
        window.ssthresh_pkts = control.ssthresh(&mut window, other);
        window.cwnd_pkts = window.ssthresh_pkts;
        control.change_phase(&mut window, &mut kept, 0, u32::MAX, INITIAL_PKTS);
        prop_assert_eq!(window.cwnd_pkts, cwnd);
        // A spurious loss of the other phase gives nothing back here.
        prop_assert_eq!(control.undo_cwnd(&mut window, other), cwnd);
    }
}

#[test]
fn a_phase_without_history_begins_as_the_rule_says() {
    let start = Start {
        initial_ssthresh_pkts: 12,
        ..Start::default()
    };
    let mut window = flow(500, 400);
    control(start).change_phase(&mut window, &mut Kept::default(), 0, u32::MAX, INITIAL_PKTS);
    assert_eq!((window.cwnd_pkts, window.ssthresh_pkts), (INITIAL_PKTS, 12));
    let mut small = flow(3, 2);
    control(Start::default()).change_phase(&mut small, &mut Kept::default(), 0, u32::MAX, 10);
    assert_eq!(
        (small.cwnd_pkts, small.ssthresh_pkts),
        (3, Window::NO_SSTHRESH)
    );
}

/// Nothing was tried of the rest of its window.
#[test]
fn of_a_paced_start_what_was_sent_is_kept() {
    let start = Start {
        initial_rate_bps: 100_000_000,
        ..Start::default()
    };
    let mut control = control(start);
    let mut window = Window::new(INITIAL_PKTS);
    control.begin(&mut window);
    let path = PathNow {
        srtt_us: 100_000,
        mss_bytes: 1448,
    };
    assert!(control.transmission_starts(&mut window, &path).is_some());
    let mut kept = Kept::default();
    control.change_phase(&mut window, &mut kept, 20, u32::MAX, INITIAL_PKTS);
    control.change_phase(&mut window, &mut kept, 0, u32::MAX, INITIAL_PKTS);
    assert_eq!(window.cwnd_pkts, 20);
    assert!(!control.ack_arrived(&mut window, 20));
}
