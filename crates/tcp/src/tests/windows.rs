// SPDX-License-Identifier: MIT OR Apache-2.0
//! What bounds the flight: windows, buffers, pace, pauses.

use fatpath_link::Ecn;

use super::super::{Block, Receiver, Segment};
use super::channel::Channel;
use super::traces::{MS, RTT, bytes, losing, spec};
use crate::{Buffer, SendLimit, TcpSpec};
use fatpath_cc::{Idle, Start};

/// An application-limited window does not grow (RFC 7661).
#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let mut channel = Channel::new(&spec(), RTT);
    for _ in 0..50 {
        channel.write(bytes(2));
        channel.run(channel.now_ns + 2 * RTT);
    }
    assert_eq!(channel.sender.figures().cwnd_pkts, 10);
}

/// The receiver's buffer bounds the flight, and the window stays near it.
#[test]
fn the_peers_window_bounds_the_flight() {
    let spec = TcpSpec {
        receive_buffer: Buffer::Fixed(bytes(30)),
        ..spec()
    };
    let mut channel = losing(&spec, &[]);
    channel.check = Box::new(|sender, _| assert!(sender.figures().in_flight_pkts <= 30));
    channel.write(bytes(1000));
    channel.run(u64::MAX);
    assert!(channel.sender.is_done());
    assert!(
        channel.sender.figures().cwnd_pkts <= 61,
        "{:?}",
        channel.sender.figures()
    );
}

/// What holds a sender back in the middle of a transfer, as RFC 4898 has it.
#[test]
fn a_sender_knows_what_holds_it_back() {
    let limit_of = |spec: &TcpSpec| {
        let mut channel = losing(spec, &[]);
        channel.write(bytes(1000));
        channel.run(5 * RTT + RTT / 2);
        assert!(!channel.sender.is_done());
        let limit = channel.sender.limit();
        channel.run(u64::MAX);
        assert_eq!(channel.sender.limit(), SendLimit::Program);
        limit
    };
    assert_eq!(limit_of(&spec()), SendLimit::Congestion);
    let of_window = TcpSpec {
        receive_buffer: Buffer::Fixed(bytes(30)),
        ..spec()
    };
    assert_eq!(limit_of(&of_window), SendLimit::PeerWindow);
    let of_rate = TcpSpec {
        pacing_rate_bps: Some(bytes(20) * 8 * 1_000_000_000 / RTT),
        ..spec()
    };
    assert_eq!(limit_of(&of_rate), SendLimit::Rate);
}

/// A program that reads nothing closes the window; when it has read much, the sender hears of it.
#[test]
fn a_program_that_does_not_read_holds_the_sender_back() {
    let spec = TcpSpec {
        receive_buffer: Buffer::Fixed(bytes(30)),
        ..spec()
    };
    let mut channel = losing(&spec, &[]);
    channel.segment_ns = RTT / 50;
    channel.write(bytes(99));
    while channel.now_ns < 10 * RTT {
        let delivered_bytes = channel.receiver.delivered_bytes();
        channel.receiver.set_unread_bytes(delivered_bytes);
        channel.run(channel.now_ns + RTT / 100);
    }
    let delivered_bytes = channel.receiver.delivered_bytes();
    // An acknowledgement knows nothing of the segments that it acknowledges yet.
    let bounds = bytes(25)..=bytes(32);
    assert!(bounds.contains(&delivered_bytes), "{delivered_bytes}");
    assert_eq!(channel.sender.figures().retransmits, 0);
    channel
        .receiver
        .set_unread_bytes(delivered_bytes - bytes(1));
    assert_eq!(channel.receiver.poll_ack(channel.now_ns), None);
    channel.receiver.set_unread_bytes(0);
    let opened = channel.receiver.poll_ack(channel.now_ns).unwrap();
    assert_eq!(opened.window_bytes, bytes(30));
    channel.sender.handle_ack(channel.now_ns, &opened);
    channel.offer(delivered_bytes + opened.window_bytes);
    channel.write(bytes(1));
    channel.run(u64::MAX);
    assert_eq!(channel.receiver.delivered_bytes(), bytes(100));
}

/// The send buffer bounds what is on its way.
#[test]
fn the_send_buffer_bounds_the_flight() {
    let spec = TcpSpec {
        send_buffer: Buffer::Fixed(bytes(20)),
        ..spec()
    };
    let mut channel = losing(&spec, &[]);
    channel.check = Box::new(|sender, _| assert!(sender.figures().in_flight_pkts <= 20));
    channel.write(bytes(1000) + 7);
    channel.run(u64::MAX);
    assert_eq!(channel.receiver.delivered_bytes(), bytes(1000) + 7);
}

/// Pacing never above its rate.
#[test]
fn pacing_holds_its_rate() {
    let spec = TcpSpec {
        pacing_rate_bps: Some(10_000_000),
        ..spec()
    };
    let mut channel = losing(&spec, &[]);
    channel.write(bytes(1000));
    channel.run(u64::MAX);
    let log = channel.log.unwrap();
    let gap_ns = 1448 * 8 * 100;
    for spell in log[10..].windows(101) {
        assert!(
            spell[100].0 - spell[0].0 >= 99 * gap_ns,
            "faster than its pace"
        );
    }
    let last = &log[log.len() - 101..];
    assert!(
        last[100].0 - last[0].0 <= 101 * gap_ns,
        "slower than its pace"
    );
}

/// What leaves at one moment, which one acknowledgement lets go, is no more than the bound.
#[test]
fn a_bound_on_bursts_holds_and_the_window_returns() {
    let spec = |max_burst_pkts| TcpSpec {
        initial_window_pkts: 40,
        max_burst_pkts,
        ..spec()
    };
    let bursts = |max_burst_pkts| {
        let mut channel = losing(&spec(max_burst_pkts), &[]);
        channel.write(bytes(500));
        channel.run(u64::MAX);
        assert_eq!(channel.receiver.delivered_bytes(), bytes(500));
        let log = channel.log.unwrap();
        let spells = log.chunk_by(|one, next| one.0 == next.0);
        (spells.map(<[_]>::len).collect::<Vec<_>>(), channel.sender)
    };
    let (free, _) = bursts(0);
    assert_eq!(free[0], 40);
    let (bounded, mut sender) = bursts(10);
    assert_eq!(bounded[0], 10);
    assert!(bounded.iter().all(|burst| *burst <= 10), "{bounded:?}");
    sender.end_burst_bound();
    assert!(sender.figures().cwnd_pkts >= 40, "{:?}", sender.figures());
}

/// At 1.2 windows a round trip, or 2 in slow start: the window is no burst.
#[test]
fn pacing_by_the_window_spreads_it() {
    let spec = TcpSpec {
        initial_window_pkts: 40,
        pacing: true,
        ..spec()
    };
    let mut channel = losing(&spec, &[]);
    channel.write(bytes(40));
    channel.run(RTT - 1);
    let log = channel.log.unwrap();
    assert_eq!(log.len(), 40);
    // The first ten are not paced; the other thirty take 30/40 of half a round trip.
    let took_ns = log[39].0 - log[10].0;
    assert!((RTT * 3 / 10..RTT / 2).contains(&took_ns), "{took_ns}");
}

/// RFC 2861, `tcp_slow_start_after_idle`: the window is halved for every timeout of the pause.
#[test]
fn a_pause_lets_the_window_decay_or_keeps_it() {
    for (idle, expected) in [(Idle::Restart, 20), (Idle::Keep, 80)] {
        let start = Start {
            idle,
            ..Start::default()
        };
        let mut channel = losing(&TcpSpec { start, ..spec() }, &[]);
        channel.write(bytes(70));
        channel.run(u64::MAX);
        let cwnd = channel.sender.figures().cwnd_pkts;
        assert_eq!(cwnd, 80);
        channel.run(channel.now_ns + 800 * MS); // two timeouts of 301 ms
        channel.write(bytes(1));
        assert_eq!(channel.sender.figures().cwnd_pkts, expected);
    }
}

/// Matsuda et al., 3.2: the first window is the target's, and leaves at the target's rate.
#[test]
fn a_paced_start_sends_at_its_rate_until_the_first_ack() {
    let start = Start {
        initial_rate_bps: 100_000_000,
        ..Start::default()
    };
    let buffer = Buffer::Fixed(10_000_000);
    let spec = TcpSpec {
        start,
        send_buffer: buffer,
        receive_buffer: buffer,
        ..spec()
    };
    let mut channel = losing(&spec, &[]);
    channel.offer(10_000_000); // a client's first acknowledgement
    channel.write(bytes(10_000));
    channel.run(RTT - MS);
    let sent = channel.sender.figures().sent_pkts;
    let expected = 100_000_000 / 8 / 10 / 1448; // a tenth of a second
    assert!(
        sent.abs_diff(expected) < expected / 50,
        "{sent} for {expected}"
    );
    let log = channel.log.take().unwrap();
    let gap_ns = 1448 * 8 * 10;
    assert!(
        log[2..]
            .windows(2)
            .all(|pair| (pair[1].0 - pair[0].0).abs_diff(gap_ns) < gap_ns / 50)
    );
    channel.run(10 * RTT);
    let figures = channel.sender.figures();
    assert!(
        figures.cwnd_pkts.abs_diff(figures.ssthresh_pkts) < 20,
        "{figures:?}"
    );
}

/// Dynamic right-sizing: the buffer grows to what the path needs, and only then.
#[test]
fn the_receive_buffer_grows_with_need() {
    let buffers = TcpSpec {
        send_buffer: Buffer::Auto(16_384, 100_000_000),
        receive_buffer: Buffer::Auto(65_536, 100_000_000),
        ..spec()
    };
    let mut channel = losing(&buffers, &[]);
    channel.segment_ns = 120_000; // 100 Mb/s: 834 segments a round trip
    channel.write(bytes(50_000));
    channel.run(u64::MAX);
    let buffer = channel.receiver.figures().buffer_bytes;
    assert!(buffer > 2 * bytes(834), "{buffer}");
    assert!(
        channel.now_ns < 50_000 * 120_000 + 20 * RTT,
        "{} ms",
        channel.now_ns / MS
    );

    let mut calm = losing(&buffers, &[]);
    for _ in 0..50 {
        calm.write(bytes(5));
        calm.run(calm.now_ns + 2 * RTT);
    }
    assert_eq!(calm.receiver.figures().buffer_bytes, 65_536);
}

/// RFC 2018: the block of the newest segment comes first. RFC 2883: a duplicate is told before it.
#[test]
fn blocks_tell_the_newest_first() {
    let mut receiver = Receiver::new(&spec(), RTT, 0);
    let mut arrives = |number| {
        receiver.handle_segment(
            MS,
            &Segment {
                number,
                payload_bytes: 1448,
                sent_ns: 1,
                echo_ns: 0,
                ecn: Ecn::NotCapable,
                cwr: false,
            },
        );
        receiver.poll_ack(MS).unwrap()
    };
    let block = |from, until| Block { from, until };
    assert_eq!(arrives(0).block_count, 0);
    arrives(2);
    arrives(5);
    assert_eq!(arrives(8).sacked(), [block(8, 9), block(5, 6), block(2, 3)]);
    assert_eq!(arrives(3).sacked(), [block(2, 4), block(8, 9), block(5, 6)]);
    let again = arrives(5);
    assert_eq!(again.duplicate(), Some(block(5, 6)));
    assert_eq!(arrives(4).sacked(), [block(2, 6), block(8, 9)]);
    let filled = arrives(1);
    assert_eq!((filled.next, filled.sacked()), (6, &[block(8, 9)][..]));
    assert_eq!(arrives(0).duplicate(), Some(block(0, 1)));
}
