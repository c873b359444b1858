// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sender reduced to rounds, for tests of the laws' formulas.
#![allow(dead_code)] // each test uses a part

pub mod rounds;
pub mod rude;

use fatpath_cc::{Control, Law, Start, Window};

/// A window in congestion avoidance.
pub fn avoiding(cwnd_pkts: u32) -> Window {
    Window {
        ssthresh_pkts: 2,
        ..Window::new(cwnd_pkts)
    }
}

/// Acknowledges a whole window, `acked` segments at a time.
pub fn round_trip(control: &mut Control, window: &mut Window, acked: u32) {
    let mut left = window.cwnd_pkts;
    while left > 0 {
        let now = left.min(acked);
        control.acked(window, now);
        left -= now;
    }
}

/// Round trips until the window is back where it was before a congestion event.
pub fn recovery_trips(law: Law, cwnd_pkts: u32) -> u32 {
    let mut control = Control::new(law, Start::default());
    let mut window = avoiding(cwnd_pkts);
    lose(&mut control, &mut window);
    let mut trips = 0;
    while window.cwnd_pkts < cwnd_pkts {
        round_trip(&mut control, &mut window, 1);
        trips += 1;
    }
    trips
}

/// A congestion event, with its recovery at once behind it.
pub fn lose(control: &mut Control, window: &mut Window) {
    window.ssthresh_pkts = control.ssthresh(window, window.cwnd_pkts);
    window.cwnd_pkts = window.ssthresh_pkts;
}

/// The mean window over round trips of a sawtooth with a loss every 1/p segments.
pub fn mean_window(law: Law, p: f64) -> f64 {
    let mut control = Control::new(law, Start::default());
    let mut window = avoiding(10);
    let (mut since_loss, mut sum, mut trips, mut losses) = (0.0, 0.0, 0.0, 0);
    while losses < 300 {
        let sent = f64::from(window.cwnd_pkts);
        round_trip(&mut control, &mut window, 8);
        since_loss += sent;
        if losses >= 100 {
            sum += sent;
            trips += 1.0;
        }
        if since_loss >= 1.0 / p {
            lose(&mut control, &mut window);
            since_loss = 0.0;
            losses += 1;
        }
    }
    sum / trips
}
