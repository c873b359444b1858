// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mean window under random loss against the formula, and what an acknowledgement costs.

use super::channel::{Channel, Fate};
use crate::{Buffer, DelayedAcks, Detection, TcpSpec};

const MS: u64 = 1_000_000;
const RTT: u64 = 100 * MS;

fn spec() -> TcpSpec {
    TcpSpec {
        delayed_acks: DelayedAcks::Off,
        send_buffer: Buffer::Fixed(1 << 40),
        receive_buffer: Buffer::Fixed(1 << 40),
        ..TcpSpec::default()
    }
}

/// A generator of its own (SplitMix64), so that the test is the same everywhere.
fn uniform(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// Mathis, Semke, Mahdavi, Ott (1997): sqrt(3/2) / sqrt(p) segments a round trip without delayed
/// acknowledgements.
#[test]
fn the_mean_rate_under_random_loss_is_that_of_mathis() {
    for detection in [Detection::Rack, Detection::Sack] {
        let p = 1e-3;
        let mut random = 7;
        let mut channel = Channel::new(
            &TcpSpec {
                detection,
                ..spec()
            },
            RTT,
        );
        channel.segment_ns = 1_000;
        channel.segment_fate = Box::new(move |_, _| {
            if uniform(&mut random) < p {
                Fate::Lost
            } else {
                Fate::Arrives
            }
        });
        channel.write(u64::MAX / 2);
        let round_trips = 10_000;
        channel.run(round_trips * RTT);
        let mean = channel.receiver.delivered_bytes() as f64 / 1448.0 / round_trips as f64;
        let expected = (1.5f64 / p).sqrt();
        assert!(
            (mean / expected - 1.0).abs() < 0.15,
            "{detection:?}: {mean} for {expected}"
        );
    }
}

/// Steps of the scoreboard a segment, at a window.
fn steps_a_segment(window_pkts: u32) -> f64 {
    let spec = TcpSpec {
        initial_window_pkts: window_pkts,
        cwnd_clamp_pkts: window_pkts,
        ..spec()
    };
    let mut channel = Channel::new(&spec, RTT);
    channel.segment_ns = RTT / u64::from(window_pkts);
    channel.segment_fate = Box::new(|place, _| {
        if place % 1000 == 999 {
            Fate::Lost
        } else {
            Fate::Arrives
        }
    });
    channel.write(1448 * 200_000);
    channel.run(u64::MAX);
    assert_eq!(channel.sender.figures().timeouts, 0);
    channel.sender.steps() as f64 / channel.sent as f64
}

/// Seed 002's complaint of stacks that walk the whole send queue.
#[test]
fn the_cost_of_an_ack_does_not_depend_on_the_window() {
    for window_pkts in [200, 2000, 20_000] {
        let steps = steps_a_segment(window_pkts);
        // At most: once when it is SACKed, once when it is acknowledged, once when RACK looks at it,
        // and once more for each retransmission.
        assert!(
            steps < 3.01,
            "{steps} steps a segment at a window of {window_pkts}"
        );
    }
}
