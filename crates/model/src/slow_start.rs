// SPDX-License-Identifier: MIT OR Apache-2.0
//! How fast slow start opens the window, limited (RFC 3742) and not, and the queue that it needs, paced and not.

use crate::{Bound, Losses, Model, Quantity};
use std::f64::consts::LN_2;

/// Without a loss, counting acknowledged segments.
pub const MODEL: Model = Model {
    name: "slow-start",
    formula: "ceil(log2(W / W0)) round trips; limited: ceil(log2(max / W0)) + (W - max) / (max / 2)",
    source: "RFC 5681, 3.1, with RFC 3465; RFC 3742, section 2",
    losses: Losses::None,
    range: &[Bound {
        of: Quantity::WindowPkts,
        min: 20.0,
        max: 1e7,
        why: "a window of a few segments is a count of round trips",
    }],
    sim_error: Some(0.05),
};

/// The queue at a bottleneck while the window is within what the path holds.
pub const QUEUE_MODEL: Model = Model {
    name: "slow-start-queue",
    formula: "unpaced: W (1 - rate / min(2 rate, sender's)); paced at g W / R: BDP (2 ln 2 / g) ((x - 1) / ln 2 - log2 x), x = g W / BDP",
    source: "derived in slow_start.rs: each ACK releases two segments, ACKs come at the bottleneck's rate",
    losses: Losses::None,
    range: &[Bound {
        of: Quantity::QueueBdp,
        min: 0.05,
        max: 1.0,
        why: "beyond the bandwidth-delay product every further segment queues",
    }],
    sim_error: Some(0.08),
};

/// Linux's pacing gain in slow start, of the window a round trip (tcp_pacing_ss_ratio).
pub const LINUX_PACING_GAIN: f64 = 2.0;

/// Round trips from one window to a larger one, segments; `max_ssthresh_pkts`: limited slow start beyond it (RFC 3742),
/// `None`: it doubles. Doublings are whole: the segments of a window leave together.
pub fn round_trips(from_pkts: f64, to_pkts: f64, max_ssthresh_pkts: Option<f64>) -> f64 {
    let doubled_pkts = max_ssthresh_pkts.map_or(to_pkts, |most| to_pkts.min(most.max(from_pkts)));
    // Less what a float lacks of a whole number.
    let doubling = ((doubled_pkts / from_pkts).max(1.0).log2() - 1e-9).ceil();
    let slope_pkts = max_ssthresh_pkts.map_or(1.0, |most| most / 2.0);
    doubling + (to_pkts - doubled_pkts).max(0.0) / slope_pkts
}

/// A sender in slow start over a bottleneck.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sender {
    /// The window of the round trip, segments.
    pub window_pkts: f64,
    /// What the bottleneck carries in a round trip, segments.
    pub bdp_pkts: f64,
    /// Times the bottleneck's rate at which the sender's own link sends; infinite: at once.
    pub access_ratio: f64,
    /// Paced at this gain times the window a round trip; `None`: not paced.
    pub pacing_gain: Option<f64>,
}

/// The deepest queue of that round trip, segments, in which the window doubles to what it is.
///
/// Unpaced, two segments follow each ACK. Paced, the window and with it the rate doubles while ACKs arrive, from half of
/// gain W / R on, and what is above the bottleneck's rate queues.
pub fn queue_pkts(of: &Sender) -> f64 {
    let arriving = of.access_ratio.min(2.0);
    let unpaced_pkts = of.window_pkts * (1.0 - 1.0 / arriving).max(0.0);
    match of.pacing_gain {
        Some(gain) => paced_queue_pkts(of, gain).min(unpaced_pkts),
        None => unpaced_pkts,
    }
}

fn paced_queue_pkts(of: &Sender, gain: f64) -> f64 {
    let last_rate = gain * of.window_pkts / of.bdp_pkts;
    if last_rate <= 1.0 {
        return 0.0;
    }
    let round_trips = 2.0 * LN_2 / gain;
    of.bdp_pkts * round_trips * ((last_rate - 1.0) / LN_2 - last_rate.log2())
}

/// The window at which slow start overflows a queue for the first time, segments: where [`queue_pkts`] is larger than
/// the queue, or the path and the queue are full.
pub fn overflow_pkts(of: &Sender, queue_limit_pkts: f64) -> f64 {
    let full = of.bdp_pkts + queue_limit_pkts;
    let queue = |window_pkts| queue_pkts(&Sender { window_pkts, ..*of });
    if queue(of.bdp_pkts) <= queue_limit_pkts {
        return full;
    }
    let (mut low, mut high) = (0.0, of.bdp_pkts);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        match queue(middle) > queue_limit_pkts {
            true => high = middle,
            false => low = middle,
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn from_10_to_8333_takes_10_round_trips() {
        assert_eq!(round_trips(10.0, 8_333.0, None), 10.0);
        assert_eq!(round_trips(10.0, 40.0, None), 2.0);
    }

    /// RFC 3742: at most half of max_ssthresh in a round trip.
    #[test]
    fn limited_slow_start_is_slow() {
        let trips = round_trips(1.0, 83_000.0, Some(100.0));
        assert!((trips - (7.0 + 82_900.0 / 50.0)).abs() < 1e-9);
    }

    /// docs/papers.md, limited slow start: a 2 MB window (1381 segments) over an OC12 behind a GigE loses segments with
    /// a queue of 300 packets and none with 600.
    #[test]
    fn an_oc12_behind_a_gige_needs_500_packets() {
        let sender = Sender {
            window_pkts: 1_381.0,
            bdp_pkts: 3_887.0,
            access_ratio: 1_000.0 / 622.0,
            pacing_gain: None,
        };
        let queue = queue_pkts(&sender);
        assert!((300.0..600.0).contains(&queue), "{queue}");
    }

    proptest! {
        #[test]
        fn pacing_never_needs_more(window_pkts in 10.0f64..1e4, bdp_pkts in 10.0f64..1e4, gain in 1.0f64..3.0) {
            let bursty = Sender { window_pkts, bdp_pkts, access_ratio: f64::INFINITY, pacing_gain: None };
            let paced = Sender { pacing_gain: Some(gain), ..bursty };
            prop_assert!(queue_pkts(&paced) <= queue_pkts(&bursty));
            prop_assert!(overflow_pkts(&paced, 50.0) >= overflow_pkts(&bursty, 50.0) - 1e-6);
        }

        #[test]
        fn limiting_never_hurries(to in 20.0f64..1e5, most in 12.0f64..1e4) {
            // The last doubling is a whole one.
            prop_assert!(round_trips(10.0, to, Some(most)) > round_trips(10.0, to, None) - 1.0);
        }
    }
}
