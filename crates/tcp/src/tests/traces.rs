// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces by hand: what leaves when, by the RFCs.

use std::cell::Cell;

use super::channel::{Channel, Fate};
use crate::{DelayedAcks, Detection, TcpSpec};

pub(super) const MS: u64 = 1_000_000;
pub(super) const RTT: u64 = 100 * MS;

pub(super) fn spec() -> TcpSpec {
    TcpSpec {
        delayed_acks: DelayedAcks::Off,
        ..TcpSpec::default()
    }
}

/// Segments for `count` full ones.
pub(super) fn bytes(count: u64) -> u64 {
    count * 1448
}

/// A channel that loses the segments whose place among all that are sent is in `lost`.
pub(super) fn losing<'a>(spec: &TcpSpec, lost: &'a [u64]) -> Channel<'a> {
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
