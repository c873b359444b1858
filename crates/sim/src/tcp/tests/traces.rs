// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces by hand: what leaves when, by the RFCs.

use std::cell::Cell;

use super::super::{Block, Receiver, Segment};
use super::channel::{Channel, Fate};
use crate::{Buffer, DelayedAcks, Detection, TcpSpec};
use fatpath_cc::{Idle, Start};

const MS: u64 = 1_000_000;
const RTT: u64 = 100 * MS;

fn spec() -> TcpSpec {
    TcpSpec {
        delayed_acks: DelayedAcks::Off,
        ..TcpSpec::default()
    }
}

/// Segments for `count` full ones.
fn bytes(count: u64) -> u64 {
    count * 1448
}

/// A channel that loses the segments whose place among all that are sent is in `lost`.
fn losing<'a>(spec: &TcpSpec, lost: &'a [u64]) -> Channel<'a> {
    let mut channel = Channel::new(spec, RTT);
    channel.segment_ns = 12_000; // 1 Gb/s
    channel.segment_fate = Box::new(move |place, _| {
        if lost.contains(&place) {
            Fate::Lost
        } else {
            Fate::Arrives
        }
    });
    channel.log = Some(Vec::new());
    channel
}

#[test]
fn slow_start_doubles_from_the_initial_window() {
    let mut channel = losing(&spec(), &[]);
    channel.write(bytes(10_000));
    for (trips, expected) in [(0, 10), (1, 20), (2, 40), (3, 80)] {
        channel.run(trips * RTT + RTT / 2);
        assert_eq!(
            channel.sender.figures().cwnd_pkts,
            expected,
            "after {trips} round trips"
        );
    }
}

#[test]
fn everything_arrives_and_the_last_segment_is_short() {
    let mut channel = losing(&spec(), &[]);
    channel.write(bytes(3) + 100);
    channel.run(u64::MAX);
    assert!(channel.sender.is_done());
    assert_eq!(channel.receiver.delivered_bytes(), bytes(3) + 100);
    let log = channel.log.unwrap();
    assert_eq!(
        log.iter().map(|(_, s)| s.payload_bytes).collect::<Vec<_>>(),
        [1448, 1448, 1448, 100]
    );
}

/// One loss in a window: one retransmission a round trip later, half the window, no timeout.
#[test]
fn a_single_loss_costs_one_retransmission_and_half_of_the_window() {
    for detection in [Detection::Rack, Detection::Sack] {
        let mut channel = losing(
            &TcpSpec {
                detection,
                ..spec()
            },
            &[40],
        );
        channel.write(bytes(400));
        channel.run(u64::MAX);
        let figures = channel.sender.figures();
        assert_eq!(
            (
                figures.retransmits,
                figures.timeouts,
                figures.congestion_events
            ),
            (1, 0, 1)
        );
        let log = channel.log.unwrap();
        let times: Vec<u64> = log
            .iter()
            .filter(|(_, s)| s.number == 40)
            .map(|(t, _)| *t)
            .collect();
        assert!(
            (RTT..RTT + 2 * MS).contains(&(times[1] - times[0])),
            "{detection:?}: {times:?}"
        );
    }
}

/// RFC 6937: in recovery one segment leaves for two that arrive, and the window is the threshold at
/// the end.
#[test]
fn the_window_is_the_threshold_when_recovery_ends() {
    let (end, cwnd) = (Cell::new(0), Cell::new(None));
    let mut channel = losing(&spec(), &[100]);
    channel.write(bytes(100_000));
    channel.check = Box::new(|sender, _| {
        let figures = sender.figures();
        if figures.congestion_events == 0 {
            end.set(figures.acked_bytes + bytes(u64::from(figures.in_flight_pkts) + 20));
        } else if figures.acked_bytes >= end.get() && cwnd.get().is_none() {
            cwnd.set(Some((figures.cwnd_pkts, figures.ssthresh_pkts)));
        }
    });
    channel.run(20 * RTT);
    let (cwnd, ssthresh) = cwnd.get().unwrap();
    assert!(
        (ssthresh..=ssthresh + 2).contains(&cwnd),
        "{cwnd} for {ssthresh}"
    );
}

/// All of many holes are filled in one recovery, and each once.
#[test]
fn every_hole_is_filled_once_and_in_one_recovery() {
    let lost: Vec<u64> = (200..400).step_by(3).collect();
    for detection in [Detection::Rack, Detection::Sack] {
        let mut channel = losing(
            &TcpSpec {
                detection,
                ..spec()
            },
            &lost,
        );
        channel.write(bytes(3000));
        channel.run(u64::MAX);
        let figures = channel.sender.figures();
        assert_eq!(figures.retransmits, lost.len() as u64, "{detection:?}");
        assert_eq!(
            (figures.timeouts, figures.congestion_events),
            (0, 1),
            "{detection:?}"
        );
    }
}

/// RFC 8985: a retransmission that is lost is found by RACK within a round trip or so; RFC 6675 needs
/// the timer.
#[test]
fn a_lost_retransmission_needs_a_timeout_without_rack_only() {
    for (detection, timeouts) in [(Detection::Rack, 0), (Detection::Sack, 1)] {
        let mut channel = Channel::new(
            &TcpSpec {
                detection,
                ..spec()
            },
            RTT,
        );
        channel.segment_ns = 12_000;
        let mut seen = 0;
        channel.segment_fate = Box::new(move |_, segment| {
            seen += u64::from(segment.number == 40);
            if segment.number == 40 && seen <= 2 {
                Fate::Lost
            } else {
                Fate::Arrives
            }
        });
        channel.write(bytes(1000));
        channel.run(u64::MAX);
        assert_eq!(channel.sender.figures().timeouts, timeouts, "{detection:?}");
        assert!(channel.sender.is_done());
    }
}

/// RFC 8985, 7: the last segment is lost; a probe finds it before the timeout does.
#[test]
fn a_lost_tail_is_probed_after_two_round_trips() {
    for (tail_loss_probe, timeouts) in [(true, 0), (false, 1)] {
        let mut channel = losing(
            &TcpSpec {
                tail_loss_probe,
                ..spec()
            },
            &[9],
        );
        channel.write(bytes(10));
        channel.run(u64::MAX);
        let figures = channel.sender.figures();
        assert_eq!(
            (figures.timeouts, figures.tail_probes),
            (timeouts, 1 - timeouts)
        );
        assert!(channel.sender.is_done());
        channel.write(bytes(1));
        channel.run(u64::MAX);
        let events = channel.sender.figures().congestion_events;
        assert_eq!(events, 1, "a loss that a probe repaired counts too");
    }
}

/// RFC 6298, 5.5: without any answer the timeout doubles each time.
#[test]
fn timeouts_back_off() {
    let mut channel = Channel::new(
        &TcpSpec {
            tail_loss_probe: false,
            ..spec()
        },
        RTT,
    );
    channel.segment_fate = Box::new(|_, _| Fate::Lost);
    channel.log = Some(Vec::new());
    channel.write(bytes(1));
    channel.run(10_000 * MS);
    let log = channel.log.unwrap();
    let gaps: Vec<u64> = log
        .windows(2)
        .map(|pair| (pair[1].0 - pair[0].0) / MS)
        .collect();
    assert_eq!(gaps, [300, 600, 1200, 2400, 4800]);
    assert_eq!(channel.sender.figures().cwnd_pkts, 1);
}

/// After a timeout whole windows come back by slow start, the lost first.
#[test]
fn a_lost_flight_comes_back_by_slow_start() {
    let lost: Vec<u64> = (0..10).collect();
    let mut channel = losing(
        &TcpSpec {
            tail_loss_probe: false,
            ..spec()
        },
        &lost,
    );
    channel.write(bytes(10));
    channel.run(u64::MAX);
    let figures = channel.sender.figures();
    assert_eq!((figures.timeouts, figures.retransmits), (1, 10));
    let log = channel.log.unwrap();
    let again: Vec<(u64, u64)> = log[10..]
        .iter()
        .map(|(t, s)| ((t - log[10].0) / RTT, s.number))
        .collect();
    let expected = [
        (0, 0),
        (1, 1),
        (1, 2),
        (2, 3),
        (2, 4),
        (2, 5),
        (2, 6),
        (3, 7),
        (3, 8),
        (3, 9),
    ];
    assert_eq!(again, expected);
}

/// RFC 5682: everything is late, not lost; after the timeout the sender sees it and takes the
/// reduction back.
#[test]
fn a_needless_timeout_is_taken_back() {
    let mut channel = Channel::new(
        &TcpSpec {
            tail_loss_probe: false,
            ..spec()
        },
        RTT,
    );
    channel.segment_ns = 12_000;
    // A pause of the path: nothing overtakes.
    channel.segment_fate = Box::new(|place, _| match place {
        10..30 => Fate::Late(400 * MS),
        30 => Fate::Late(120 * MS),
        _ => Fate::Arrives,
    });
    channel.write(bytes(200));
    channel.run(u64::MAX);
    let figures = channel.sender.figures();
    assert_eq!((figures.timeouts, figures.undone_events), (1, 1));
    assert!(figures.cwnd_pkts >= 20, "{figures:?}");
    assert!(figures.retransmits <= 2, "{figures:?}");
}

/// RFC 2883 and RFC 8985: a segment that comes late is retransmitted; the DSACK takes the reduction
/// back, and reordering is reckoned with from then on.
#[test]
fn a_reordered_segment_is_no_loss_the_second_time() {
    for detection in [Detection::Rack, Detection::Sack] {
        let mut channel = Channel::new(
            &TcpSpec {
                detection,
                ..spec()
            },
            RTT,
        );
        channel.segment_ns = 12_000;
        channel.segment_fate = Box::new(|place, _| {
            if place % 200 == 50 {
                Fate::Late(MS)
            } else {
                Fate::Arrives
            }
        });
        channel.write(bytes(2000));
        channel.run(u64::MAX);
        let figures = channel.sender.figures();
        // The count of segments learns the degree only as far as the flight reaches.
        let most = if detection == Detection::Rack { 1 } else { 3 };
        assert!(
            (1..=most).contains(&figures.congestion_events),
            "{detection:?}: {figures:?}"
        );
        assert_eq!(
            figures.undone_events, figures.congestion_events,
            "{detection:?}: {figures:?}"
        );
        assert!(figures.reordering_pkts > 80, "{detection:?}: {figures:?}");
    }
}

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
            ..spec()
        },
        &[],
    );
    channel.write(bytes(1016));
    channel.run(u64::MAX);
    assert_eq!(channel.receiver.figures().acks, 16 + 500);
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
