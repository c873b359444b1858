// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the flows of a path show at one moment, together: the latest window of each.

use crate::evidence::Limit;
use std::collections::BTreeMap;

/// Flows of one path whose windows are added.
const MOST_FLOWS: usize = 4096;

/// A window is of the moment for so many of its own lengths.
const FRESH_LENGTHS: i64 = 2;

/// What the path held back decides where it carried this share of the bytes.
const DECIDES: f64 = 0.5;

/// The latest window of one flow: at least 1 s, and ten round trips.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Names the flow: its socket's cookie.
    pub flow: u64,
    /// When it closed, µs since 1970.
    pub at_us: i64,
    /// How long it lasted.
    pub length_us: i64,
    /// Least round-trip time in it, µs.
    pub rtt_us: f64,
    /// Mean round-trip time in it, µs.
    pub mean_rtt_us: f64,
    /// Bits a second.
    pub bps: f64,
    /// What else than the path held the flow back.
    pub limit: Option<Limit>,
    /// Whether it sent segments again.
    pub lost: bool,
    /// Whether the flow received: then its round-trip times may have waited for the peer's program.
    pub receives: bool,
}

/// All flows of a path together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    /// When the latest window closed, µs since 1970.
    pub at_us: i64,
    /// Least round-trip time, µs.
    pub rtt_us: f64,
    /// Mean round-trip time of the fastest flow, µs.
    pub mean_rtt_us: f64,
    /// Bits a second, of all flows.
    pub bps: f64,
    /// What else than the path held back the flows that carried most.
    pub limit: Option<Limit>,
    /// Whether some sent segments again.
    pub lost: bool,
    /// Whether no flow sent.
    pub receives: bool,
}

/// The latest window of each flow of a path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Windows(BTreeMap<u64, Window>);

impl Windows {
    /// Takes windows that closed. Answers what the path's flows show now; none where nothing is new.
    pub(crate) fn take(&mut self, closed: impl IntoIterator<Item = Window>) -> Option<Moment> {
        let mut is_new = false;
        for window in closed.into_iter().filter(Window::is_possible) {
            let known = self.0.get(&window.flow);
            let is_later = known.is_none_or(|known| known.at_us < window.at_us);
            let has_place = known.is_some() || self.0.len() < MOST_FLOWS;
            if is_later && has_place {
                self.0.insert(window.flow, window);
                is_new = true;
            }
        }
        let at_us = self.0.values().map(|window| window.at_us).max()?;
        let is_fresh = |window: &Window| {
            at_us.saturating_sub(window.at_us) <= FRESH_LENGTHS.saturating_mul(window.length_us)
        };
        self.0.retain(|_, window| is_fresh(window));
        is_new.then(|| self.moment(at_us))
    }

    fn moment(&self, at_us: i64) -> Moment {
        let all = || self.0.values();
        let bps: f64 = all().map(|window| window.bps).sum();
        let of_path = all().filter(|window| window.limit.is_none());
        let of_path: f64 = of_path.map(|window| window.bps).sum();
        let fastest = all().max_by(|one, other| one.bps.total_cmp(&other.bps));
        let held = all().filter(|window| window.limit.is_some());
        let held = held.max_by(|one, other| one.bps.total_cmp(&other.bps));
        let limit = match of_path >= DECIDES * bps {
            true => None,
            false => held.or(fastest).and_then(|window| window.limit),
        };
        let receives = all().all(|window| window.receives);
        // Who sends knows the round-trip time better.
        let timed = all().filter(|window| window.receives == receives);
        let rtt_us = timed.map(|window| window.rtt_us).fold(f64::MAX, f64::min);
        Moment {
            at_us,
            rtt_us,
            mean_rtt_us: fastest.map_or(rtt_us, |window| window.mean_rtt_us.max(rtt_us)),
            bps,
            limit,
            lost: all().any(|window| window.lost),
            receives,
        }
    }
}

impl Window {
    fn is_possible(&self) -> bool {
        self.rtt_us > 0.0
            && self.mean_rtt_us >= self.rtt_us
            && self.rtt_us <= crate::evidence::MOST_RTT_US
            && self.bps > 0.0
            && self.bps <= crate::evidence::MOST_BPS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(flow: u64, at_s: i64, bps: f64) -> Window {
        Window {
            flow,
            at_us: at_s * 1_000_000,
            length_us: 1_000_000,
            rtt_us: 20e3,
            mean_rtt_us: 20e3,
            bps,
            limit: None,
            lost: false,
            receives: false,
        }
    }

    #[test]
    fn flows_that_share_a_path_are_added() {
        let mut windows = Windows::default();
        let slow = Window {
            rtt_us: 18e3,
            limit: Some(Limit::Application),
            ..window(2, 1, 1e7)
        };
        let moment = windows.take([window(1, 1, 9e7), slow]).unwrap();
        assert_eq!((moment.bps, moment.rtt_us, moment.limit), (1e8, 18e3, None));
        assert_eq!(windows.take([slow]), None, "nothing is new");
        let later = windows.take([window(1, 4, 5e7)]).unwrap();
        assert_eq!((later.bps, later.rtt_us), (5e7, 20e3), "the other is over");
    }

    #[test]
    fn what_held_most_bytes_back_decides() {
        let mut windows = Windows::default();
        let held = Window {
            limit: Some(Limit::OwnBuffer),
            ..window(2, 1, 9e7)
        };
        let moment = windows.take([window(1, 1, 1e7), held]).unwrap();
        assert_eq!(moment.limit, Some(Limit::OwnBuffer));
    }

    #[test]
    fn impossible_windows_and_floods_change_nothing() {
        let mut windows = Windows::default();
        let wrong = [f64::NAN, f64::INFINITY, -1.0, 0.0];
        assert_eq!(windows.take(wrong.map(|bps| window(1, 1, bps))), None);
        let flood = (0..10_000).map(|flow| window(flow, 1, 1e3));
        let moment = windows.take(flood).unwrap();
        assert_eq!(moment.bps, 1e3 * MOST_FLOWS as f64);
    }
}
