// SPDX-License-Identifier: MIT OR Apache-2.0
//! How large buffers have to be: those of the ends, and the queue of the bottleneck.

use crate::{Bound, Losses, Model, Quantity};

/// What one flow needs in the queue of its bottleneck to keep it busy, and what it gets with less.
pub const QUEUE_MODEL: Model = Model {
    name: "queue-one-flow",
    formula: "queue = BDP b / (1 - b); with β BDP, w0 = (1-b)(1+β) < 1: share = (w1² - w0²) / (2 (1 - w0) + w1² - 1), w1 = 1 + β",
    source: "Villamizar, Song 1994 for b = 1/2; the same geometry for AIMD(a, b), buffers.rs",
    losses: Losses::None,
    range: &[Bound {
        of: Quantity::QueueBdp,
        min: 0.02,
        max: 10.0,
        why: "a queue of a few packets cannot hold the bursts of an unpaced sender",
    }],
    sim_error: Some(0.03),
};

/// What many flows need together.
pub const MANY_FLOWS_MODEL: Model = Model {
    name: "queue-many-flows",
    formula: "queue = BDP / sqrt(n)",
    source: "Appenzeller, Keslassy, McKeown, \"Sizing router buffers\" (SIGCOMM 2004), section 3",
    losses: Losses::None,
    range: &[Bound {
        of: Quantity::Flows,
        min: 30.0,
        max: f64::INFINITY,
        why: "fewer flows fall and rise together",
    }],
    sim_error: Some(0.10),
};

/// The window of a flow that does not slow down at a loss.
pub const REPAIR_MODEL: Model = Model {
    name: "window-repair",
    formula: "window = BDP (1 + 1.25 m), m the least with W p^(m+1) <= 1/1000, W the BDP in segments",
    source: "derived in buffers.rs; RACK's reordering window of R/4: RFC 8985, 6.2; table of windows in docs/papers.md",
    losses: Losses::Random,
    range: &[Bound {
        of: Quantity::Loss,
        min: 1e-5,
        max: 0.05,
        why: "it was not compared with the simulator there",
    }],
    sim_error: Some(0.10),
};

/// RFC 8985, 6.2: RACK waits for a quarter of the round-trip time before it calls a segment lost.
const REORDERING_ROUND_TRIPS: f64 = 0.25;
/// A stall in one of a thousand round trips is let pass.
const MOST_STALLS: f64 = 0.001;

/// Bytes in flight that fill a path: its rate times its round-trip time.
pub fn bdp_bytes(rate_bps: f64, rtt_s: f64) -> f64 {
    rate_bps * rtt_s / 8.0
}

/// The queue that keeps the bottleneck busy when one flow gives up the fraction `b` at a loss, of the
/// bandwidth-delay product: 1 for Reno.
pub fn full_link_queue_bdp(b: f64) -> f64 {
    b / (1.0 - b)
}

/// The share of the bottleneck that one flow of AIMD(a, b) fills with a queue of `queue_bdp`. Its window goes to and fro
/// between w0 = (1 - b) w1 and w1 = 1 + queue in BDP: below 1 the rate is the window, above it 1 while the round trip
/// is as long as the window.
pub fn one_flow_share(b: f64, queue_bdp: f64) -> f64 {
    let high = 1.0 + queue_bdp;
    let low = (1.0 - b) * high;
    if low >= 1.0 {
        return 1.0;
    }
    let (filling, queueing) = (1.0 - low * low, high * high - 1.0);
    (filling + queueing) / (2.0 * (1.0 - low) + queueing)
}

/// The queue that keeps the bottleneck of `flows` busy, of the bandwidth-delay product.
pub fn many_flows_queue_bdp(flows: f64) -> f64 {
    1.0 / flows.sqrt()
}

/// The window that a flow needs to go on at its rate while losses are repaired, of the bandwidth-delay product, which is
/// `bdp_pkts`. The receiver's window stands still until the oldest lost segment has arrived: each of its m
/// retransmissions takes a round trip until its loss can be seen, and RACK's R/4 until it is believed. A law that reduces
/// its window at each loss needs no more than m = 1.
pub fn repair_window_bdp(bdp_pkts: f64, loss: f64) -> f64 {
    1.0 + (1.0 + REORDERING_ROUND_TRIPS) * f64::from(retransmissions(bdp_pkts, loss))
}

/// The least m at which stalls are rare: a window has W p^(m+1) segments that are lost more often.
fn retransmissions(bdp_pkts: f64, loss: f64) -> u32 {
    if loss <= 0.0 {
        return 0;
    }
    let stalls = |m: u32| bdp_pkts * loss.powi(m as i32 + 1);
    // At a loss of a half, 2^64 segments.
    (0..64).find(|m| stalls(*m) <= MOST_STALLS).unwrap_or(64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Seed 003, 2.1: 600 Mb/s times 50 ms is 3.75 MB; with 64 KB 2 % of it.
    #[test]
    fn a_tuning_daemon_s_example() {
        let bytes = bdp_bytes(600e6, 0.05);
        assert!((bytes - 3.75e6).abs() < 1e-6);
        assert!((65_536.0 / bytes - 0.0175).abs() < 0.001);
    }

    /// Seed 004: buffer over round-trip time, 102.4 ms: 262144 bytes 21 Mb/s, 2097152 164, 4194304 328.
    #[test]
    fn dunigan_s_table_of_buffers() {
        for (bytes, mbps) in [
            (262_144.0, 21.0),
            (1_048_576.0, 82.0),
            (2_097_152.0, 164.0),
            (4_194_304.0, 328.0),
        ] {
            assert!(
                (bdp_bytes(mbps * 1e6, 0.1024) / bytes - 1.0).abs() < 0.03,
                "{bytes}"
            );
        }
    }

    /// docs/papers.md, 1 Gb/s and 100 ms: 3 bdp at 0.01 %, 4 at 0.1 %, 5 at 1 %, 8 at 5 %.
    #[test]
    fn the_windows_that_rude_tcp_needs() {
        let whole = |loss| repair_window_bdp(8_333.0, loss).ceil();
        assert_eq!([1e-4, 1e-3, 1e-2, 5e-2].map(whole), [3.0, 4.0, 5.0, 8.0]);
    }

    /// A queue of one bdp fills the link under Reno; none of it gives three quarters.
    #[test]
    fn reno_without_a_queue_has_three_quarters() {
        assert_eq!(full_link_queue_bdp(0.5), 1.0);
        assert!((one_flow_share(0.5, 0.0) - 0.75).abs() < 1e-12);
        assert_eq!(one_flow_share(0.5, 1.0), 1.0);
    }

    proptest! {
        #[test]
        fn a_longer_queue_fills_more(b in 0.01f64..0.9, queue_bdp in 0.0f64..3.0) {
            let share = one_flow_share(b, queue_bdp);
            prop_assert!(share > 0.0 && share <= 1.0);
            prop_assert!(one_flow_share(b, queue_bdp + 0.1) >= share - 1e-12);
            prop_assert!(one_flow_share(b, full_link_queue_bdp(b) * 1.0001) == 1.0);
        }

        #[test]
        fn more_loss_never_needs_a_smaller_window(bdp in 1.0f64..1e7, loss in 0.0f64..0.4) {
            prop_assert!(repair_window_bdp(bdp, loss + 0.05) >= repair_window_bdp(bdp, loss));
        }
    }
}
