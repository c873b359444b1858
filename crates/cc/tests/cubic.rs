// SPDX-License-Identifier: MIT OR Apache-2.0
//! CUBIC against RFC 9438.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use fatpath_cc::{Control, Law, Start, Window};
use proptest::prelude::*;
use std::cell::RefCell;
use support::{avoiding, lose};

const C: f64 = 0.4;
const BETA: f64 = 0.7;

fn cubic() -> Law {
    Law::named("cubic").unwrap()
}

/// One flow on a path of a fixed round-trip time, which acknowledges two segments at a time.
struct Flow {
    control: Control,
    window: Window,
}

impl Flow {
    fn new(law: Law, cwnd_pkts: u32, rtt_us: u32) -> Flow {
        let window = Window {
            srtt_us: rtt_us,
            now_us: 5_000_000,
            ..avoiding(cwnd_pkts)
        };
        Flow {
            control: Control::new(law, Start::default()),
            window,
        }
    }

    /// One window is acknowledged in one round-trip time.
    fn round_trip(&mut self) {
        let (all, began_us) = (self.window.cwnd_pkts, self.window.now_us);
        for acked in (0..all).step_by(2) {
            let part = u64::from(self.window.srtt_us) * u64::from(acked) / u64::from(all);
            self.window.now_us = began_us + part;
            self.control.acked(&mut self.window, (all - acked).min(2));
        }
        self.window.now_us = began_us + u64::from(self.window.srtt_us);
    }

    fn lose(&mut self) {
        lose(&mut self.control, &mut self.window);
    }

    fn cwnd(&self) -> f64 {
        f64::from(self.window.cwnd_pkts)
    }
}

/// 4.2: W_cubic(t) = C (t - K)^3 + W_max, K = cbrt((W_max - cwnd_epoch) / C), on either side of W_max.
#[test]
fn after_a_congestion_event_the_window_follows_the_curve() {
    for (w_max, rtt_us) in [(1_000.0, 100_000), (8_333.0, 100_000), (200_000.0, 20_000)] {
        let mut flow = Flow::new(cubic(), w_max as u32, rtt_us);
        flow.lose();
        let k_s = (w_max * (1.0 - BETA) / C).cbrt();
        let began_us = flow.window.now_us;
        loop {
            flow.round_trip();
            let t_s = (flow.window.now_us - began_us) as f64 / 1e6;
            let expected = C * (t_s - k_s).powi(3) + w_max;
            let error = flow.cwnd() / expected - 1.0;
            assert!(
                error.abs() < 0.03,
                "{w_max} after {t_s} s of {k_s}: {error}"
            );
            if t_s > 1.5 * k_s {
                break;
            }
        }
    }
}

/// 4.7: a flow that did not come back to W_max before the next congestion event aims lower than where it was.
#[test]
fn a_flow_that_did_not_come_back_aims_lower() {
    let seconds_to_840 = |first_pkts: u32| {
        let mut flow = Flow::new(cubic(), first_pkts, 50_000);
        flow.lose();
        flow.window.cwnd_pkts = 1_000;
        flow.lose();
        let began_us = flow.window.now_us;
        while flow.window.cwnd_pkts < 840 {
            flow.round_trip();
        }
        (flow.window.now_us - began_us) as f64 / 1e6
    };
    // From 700 with this W_max: K less the time from 840 to W_max.
    let expected = |w_max: f64| ((w_max - 700.0) / C).cbrt() - ((w_max - 840.0) / C).cbrt();
    assert!((seconds_to_840(1_000) - expected(1_000.0)).abs() < 0.15);
    assert!((seconds_to_840(2_000) - expected(850.0)).abs() < 0.15);
}

/// 4.3: on a path of small bandwidth-delay product the window is Reno's, AIMD(3 (1 - beta) / (1 + beta), beta).
#[test]
fn on_a_short_path_it_is_as_fast_as_reno() {
    let mut flow = Flow::new(cubic(), 100, 1_000);
    flow.lose();
    let mut trips = 0.0;
    while flow.window.cwnd_pkts < 100 {
        flow.round_trip();
        trips += 1.0;
    }
    let expected = 30.0 / (3.0 * (1.0 - BETA) / (1.0 + BETA));
    assert!(
        (trips / expected - 1.0f64).abs() < 0.1,
        "{trips} of {expected}"
    );
    let before = flow.window.cwnd_pkts;
    for _ in 0..20 {
        flow.round_trip();
    }
    let grown = flow.window.cwnd_pkts - before;
    assert!(
        (19..=21).contains(&grown),
        "a segment a round trip, {grown}"
    );
}

/// The RFC's equations in floating point, one round trip at a time.
struct Equations {
    cwnd: f64,
    w_max: f64,
    w_est: f64,
    k_s: f64,
    t_s: f64,
}

impl Equations {
    fn round_trip(&mut self, rtt_s: f64) {
        self.t_s += rtt_s;
        let is_back = self.w_est >= self.w_max;
        let alpha = if is_back {
            1.0
        } else {
            3.0 * (1.0 - BETA) / (1.0 + BETA)
        };
        self.w_est += alpha * self.w_est / self.cwnd;
        let target = C * (self.t_s + rtt_s - self.k_s).powi(3) + self.w_max;
        self.cwnd = target.clamp(self.cwnd, 1.5 * self.cwnd).max(self.w_est);
    }

    fn lose(&mut self) {
        self.w_max = match self.cwnd < self.w_max {
            true => self.cwnd * (1.0 + BETA) / 2.0,
            false => self.cwnd,
        };
        self.cwnd *= BETA;
        self.w_est = self.cwnd;
        self.k_s = ((self.w_max - self.cwnd).max(0.0) / C).cbrt();
        self.t_s = 0.0;
    }
}

/// Segments from one loss to the next, 1/p in the mean: one sequence for all.
fn gaps(p: f64) -> impl Iterator<Item = f64> {
    let mut state = 1u64;
    std::iter::repeat_with(move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let uniform = ((state >> 11) as f64 + 1.0) / (1u64 << 53) as f64;
        -uniform.ln() / p
    })
}

/// The mean window under random losses.
fn mean_window(p: f64, mut round_trip: impl FnMut() -> f64, mut lose: impl FnMut()) -> f64 {
    let (mut sum, mut trips) = (0.0, 0.0);
    for gap in gaps(p).take(200) {
        let mut since = 0.0;
        while since < gap {
            let sent = round_trip();
            since += sent;
            sum += sent;
            trips += 1.0;
        }
        lose();
    }
    sum / trips
}

/// Far from Reno, and as slow as Reno (the last): with the RFC's own equations under the same losses.
#[test]
fn the_mean_window_is_that_of_the_equations() {
    for (p, rtt_us) in [(1e-3, 100_000), (1e-4, 100_000), (1e-4, 10_000)] {
        let flow = RefCell::new(Flow::new(cubic(), 100, rtt_us));
        let sent = || {
            let sent = flow.borrow().cwnd();
            flow.borrow_mut().round_trip();
            sent
        };
        let mean = mean_window(p, sent, || flow.borrow_mut().lose());
        let equations = RefCell::new(Equations {
            cwnd: 100.0,
            w_max: 100.0,
            w_est: 100.0,
            k_s: 0.0,
            t_s: 0.0,
        });
        let sent = || {
            let sent = equations.borrow().cwnd;
            equations.borrow_mut().round_trip(f64::from(rtt_us) / 1e6);
            sent
        };
        let expected = mean_window(p, sent, || equations.borrow_mut().lose());
        assert!(
            (mean / expected - 1.0).abs() < 0.1,
            "{p}: {mean} of {expected}"
        );
    }
}

/// 4.2: "t does not include any idle period": an idle flow goes on where it was on the curve.
#[test]
fn a_pause_is_no_time_to_grow() {
    let after = |pause_us: u64| {
        let mut flow = Flow::new(cubic(), 5_000, 50_000);
        flow.lose();
        (0..20).for_each(|_| flow.round_trip());
        flow.window.now_us += pause_us;
        (0..5).for_each(|_| flow.round_trip());
        flow.cwnd()
    };
    let ratio = after(60_000_000) / after(0);
    assert!((ratio - 1.0).abs() < 0.01, "{ratio}");
}

/// 4.8 and 4.10: after a slow start K is 0 and W_max the window: it does not run to where it was before.
#[test]
fn after_a_slow_start_it_begins_flat() {
    let mut flow = Flow::new(cubic(), 4_000, 50_000);
    flow.lose();
    flow.window.cwnd_pkts = 1;
    flow.round_trip();
    while flow.window.in_slow_start() {
        flow.round_trip();
    }
    let began = flow.cwnd();
    (0..20).for_each(|_| flow.round_trip());
    let expected = began + C * 1.0f64.powi(3);
    assert!(
        (flow.cwnd() / expected - 1.0).abs() < 0.02,
        "{} of {expected}",
        flow.cwnd()
    );
}

/// 4.9: a congestion event that was none: W_max and t are as before it.
#[test]
fn an_undone_event_leaves_the_curve() {
    let after = |undone: bool| {
        let mut flow = Flow::new(cubic(), 5_000, 50_000);
        flow.lose();
        (0..20).for_each(|_| flow.round_trip());
        if undone {
            let prior = flow.window;
            flow.lose();
            flow.window.cwnd_pkts = flow.control.undo_cwnd(&mut flow.window, prior.cwnd_pkts);
            flow.window.ssthresh_pkts = prior.ssthresh_pkts;
        }
        (0..40).for_each(|_| flow.round_trip());
        flow.cwnd()
    };
    let ratio = after(true) / after(false);
    assert!((ratio - 1.0).abs() < 0.002, "{ratio}");
}

proptest! {
    /// By half in a round trip at most (4.2, "target"), with any parameters and however long the last event is ago.
    #[test]
    fn it_grows_by_half_a_round_trip_at_most(
        c_milli in 1u32..=10_000,
        beta_milli in 500u32..=990,
        cwnd_pkts in 10u32..20_000,
        rtt_us in 100u32..2_000_000,
        trips in 1u32..30,
    ) {
        let law = Law::from_values("cubic", &[c_milli, beta_milli]).unwrap();
        let mut flow = Flow::new(law, cwnd_pkts, rtt_us);
        flow.lose();
        for _ in 0..trips {
            let before = flow.cwnd();
            flow.round_trip();
            prop_assert!(flow.cwnd() <= 1.65 * before + 2.0, "{before} to {}", flow.cwnd()); // e^(1/2)
            flow.window.cwnd_pkts = flow.window.cwnd_pkts.min(50_000);
        }
    }
}
