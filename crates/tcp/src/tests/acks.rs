// SPDX-License-Identifier: MIT OR Apache-2.0
//! When acknowledgements leave, and what those do that tell little.

use super::super::{Ack, Block, MAX_BLOCKS, Sender};
use super::channel::Fate;
use super::traces::{MS, RTT, bytes, losing, spec};
use crate::{Buffer, DelayedAcks, Detection, TcpSpec};
use fatpath_cc::Start;

/// It does not grow.
const WIDE: Buffer = Buffer::Fixed(1 << 30);

#[test]
fn delayed_acks_halve_them_and_a_lone_segment_waits() {
    let on = DelayedAcks::On { max_ns: 40 * MS };
    let mut channel = losing(
        &TcpSpec {
            delayed_acks: on,
            ..spec()
        },
        &[],
    );
    channel.write(bytes(1000));
    channel.run(u64::MAX);
    assert_eq!(channel.receiver.figures().acks, 500);
    channel.write(bytes(1));
    let begin = channel.now_ns;
    channel.run(u64::MAX);
    assert!((RTT + 40 * MS..RTT + 41 * MS).contains(&(channel.now_ns - begin)));
    assert!(channel.sender.is_done());
}

#[test]
fn the_first_acks_come_quickly_as_linux_does() {
    let quick = DelayedAcks::QuickAtStart { max_ns: 40 * MS };
    let mut channel = losing(
        &TcpSpec {
            delayed_acks: quick,
            receive_buffer: WIDE,
            ..spec()
        },
        &[],
    );
    channel.write(bytes(1016));
    channel.run(u64::MAX);
    assert_eq!(channel.receiver.figures().acks, 16 + 500);
}

/// `tcp_grow_window`.
#[test]
fn acks_do_not_wait_while_the_window_grows() {
    let spec = TcpSpec {
        delayed_acks: DelayedAcks::QuickAtStart { max_ns: 40 * MS },
        receive_buffer: Buffer::Auto(bytes(50), bytes(10_000)),
        ..spec()
    };
    let mut channel = losing(&spec, &[]);
    channel.write(bytes(400));
    channel.run(u64::MAX);
    let acks = channel.receiver.figures().acks;
    assert!((300..=400).contains(&acks), "{acks}");
}

/// As at the beginning: `tcp_event_data_recv`.
#[test]
fn acks_come_quickly_again_after_a_pause() {
    let quick = DelayedAcks::QuickAtStart { max_ns: 40 * MS };
    // This end's RTO is 300 ms.
    for (pause_ns, acks) in [(250 * MS, 500..502), (350 * MS, 508..510)] {
        let spec = TcpSpec {
            delayed_acks: quick,
            receive_buffer: WIDE,
            ..spec()
        };
        let mut channel = losing(&spec, &[]);
        channel.write(bytes(1016));
        channel.run(u64::MAX);
        let before = channel.receiver.figures().acks;
        // The last segment arrived half a round trip ago.
        channel.run(channel.now_ns + pause_ns - RTT);
        channel.write(bytes(1000));
        channel.run(u64::MAX);
        let after = channel.receiver.figures().acks - before;
        assert!(acks.contains(&after), "{pause_ns}: {after}");
    }
}

/// An acknowledgement from nothing but its blocks.
pub(super) fn ack(now_ns: u64, next: u64, sacked: &[(u64, u64)]) -> Ack {
    let mut blocks = [Block::default(); MAX_BLOCKS];
    for (block, (from, until)) in blocks.iter_mut().zip(sacked) {
        (block.from, block.until) = (*from, *until);
    }
    Ack {
        next,
        sent_ns: now_ns,
        echo_ns: 0,
        window_bytes: 1 << 30,
        ece: false,
        tells_duplicate: false,
        block_count: sacked.len() as u8,
        blocks,
    }
}

pub(super) fn send_all(sender: &mut Sender, now_ns: u64) -> usize {
    std::iter::from_fn(|| sender.poll_transmit(now_ns)).count()
}

/// `tcp_clean_rtx_queue`: SACKs of what left before the oldest segment was retransmitted put the timeout
/// off, those of what left after it do not.
#[test]
fn only_sacks_of_older_segments_put_the_timeout_off() {
    let spec = TcpSpec {
        detection: Detection::Sack,
        ..spec()
    };
    let mut sender = Sender::new(&spec, RTT, 0);
    sender.set_peer_window(1 << 30);
    sender.write(bytes(100));
    assert_eq!(send_all(&mut sender, 0), 10);
    let timeout_after = |sender: &mut Sender, now_ns: u64, sacked| {
        sender.handle_ack(now_ns, &ack(now_ns, 0, &[sacked]));
        send_all(sender, now_ns);
        sender.next_timeout_ns().unwrap() - u64::from(sender.figures().rto_us as u32) * 1000
    };
    assert_eq!(
        timeout_after(&mut sender, RTT, (1, 5)),
        RTT,
        "retransmitted"
    );
    assert_eq!(
        timeout_after(&mut sender, RTT + 10 * MS, (5, 6)),
        RTT + 10 * MS
    );
    let last = timeout_after(&mut sender, RTT + 20 * MS, (6, 10));
    assert!(sender.figures().sent_pkts > 12, "new ones left");
    let before = sender.next_timeout_ns();
    timeout_after(&mut sender, 2 * RTT + 10 * MS, (10, 11));
    assert_eq!((last, before), (RTT + 20 * MS, sender.next_timeout_ns()));
}

/// A window update, or an old acknowledgement, tells nothing of the paced segments.
#[test]
fn an_ack_of_nothing_does_not_end_a_paced_start() {
    let start = Start {
        initial_rate_bps: 100_000_000,
        ..Start::default()
    };
    let mut sender = Sender::new(&TcpSpec { start, ..spec() }, RTT, 0);
    sender.set_peer_window(1 << 20);
    sender.write(bytes(100));
    send_all(&mut sender, 0);
    let cwnd = sender.figures().cwnd_pkts;
    assert!(sender.pacer.is_start());
    sender.handle_ack(MS, &ack(MS, 0, &[]));
    assert!(sender.pacer.is_start());
    assert_eq!(sender.figures().cwnd_pkts, cwnd);
    sender.handle_ack(RTT, &ack(RTT, 1, &[]));
    assert!(!sender.pacer.is_start());
}

/// The probe's DSACK takes nothing back: the timeout's own retransmission was needed.
#[test]
fn a_probe_s_duplicate_does_not_undo_a_timeout() {
    let mut channel = losing(&spec(), &[]);
    // All but the last are lost; that and its probe come after the timeout, 500 ms.
    channel.segment_fate = Box::new(|place, _| match place {
        0..9 => Fate::Lost,
        9 => Fate::Late(460 * MS),
        10 => Fate::Late(270 * MS),
        _ => Fate::Arrives,
    });
    channel.write(bytes(10));
    channel.run(u64::MAX);
    let figures = channel.sender.figures();
    assert_eq!((figures.tail_probes, figures.timeouts), (1, 1));
    assert_eq!((figures.duplicates_told, figures.undone_events), (1, 0));
    assert!(channel.sender.is_done());
}
