// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parallel streams, and the one flow that is worth as much.

use crate::{Losses, Model, aimd};

/// Losses that meet one stream at a time.
pub const MODEL: Model = Model {
    name: "streams",
    formula: "n W(p); one flow like it: AIMD(n, 1/(2n))",
    source: "Hacker, Athey, Noble, \"The end-to-end performance effects of parallel TCP sockets\" (IPDPS 2002); Dunigan et al. 2002, 4.3",
    losses: Losses::Random,
    range: &aimd::RANGE,
    sim_error: Some(0.05),
};

/// The window of `streams` together, at the window of one.
pub fn together_pkts(streams: u32, one_pkts: f64) -> f64 {
    f64::from(streams) * one_pkts
}

/// How many streams of a window together have another one.
pub fn needed(one_pkts: f64, together_pkts: f64) -> u32 {
    (together_pkts / one_pkts).ceil().max(1.0) as u32
}

/// (a, b) of the one flow that grows as fast as n of Reno and gives up as much of all at a loss of one: (n, 1/(2n)). Its
/// window is up to sqrt(4/3) of theirs, because theirs are not all alike.
pub fn as_one_flow(streams: u32) -> (f64, f64) {
    let n = f64::from(streams);
    (n, 0.5 / n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mathis;

    /// Seed 003, 2.2: four streams lose an eighth at a loss and grow by four segments.
    #[test]
    fn four_streams_are_4_and_an_eighth() {
        assert_eq!(as_one_flow(4), (4.0, 0.125));
    }

    #[test]
    fn the_one_flow_is_worth_up_to_four_thirds_in_the_square() {
        for streams in [1, 2, 4, 64, 1000] {
            let (a, b) = as_one_flow(streams);
            let one = mathis::window_pkts(mathis::C_REGULAR, 1e-4);
            let ratio = aimd::regular_pkts(a, b, 1e-4) / together_pkts(streams, one);
            assert!(
                (0.9999..(4.0f64 / 3.0).sqrt()).contains(&ratio),
                "{streams}: {ratio}"
            );
        }
    }

    #[test]
    fn streams_are_counted_up() {
        assert_eq!(
            [needed(10.0, 95.0), needed(10.0, 100.0), needed(10.0, 1.0)],
            [10, 10, 1]
        );
    }
}
