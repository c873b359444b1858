// SPDX-License-Identifier: MIT OR Apache-2.0
//! Explicit congestion notification: the rules of RFC 3168 for the two ends.

use fatpath_cc::Law;
use fatpath_link::Ecn;

use super::super::{Receiver, Segment};
use super::channel::{Channel, Fate};
use super::traces::{RTT, bytes, spec};
use crate::TcpSpec;

fn capable() -> TcpSpec {
    TcpSpec {
        ecn: true,
        ..spec()
    }
}

/// The segments with these numbers of sending meet congestion; a log is kept.
fn marking<'a>(spec: &TcpSpec, marked: &'a [u64]) -> Channel<'a> {
    let mut channel = Channel::new(spec, RTT);
    channel.offer(1 << 30);
    channel.log = Some(vec![]);
    channel.segment_fate = Box::new(|nth, _| match marked.contains(&nth) {
        true => Fate::Marked,
        false => Fate::Arrives,
    });
    channel
}

/// 6.1.5: a retransmission is not ECN-capable; 6.1.1.1: nothing is without agreement.
#[test]
fn only_new_segments_of_ends_that_agreed_are_capable() {
    for (spec, expected) in [(capable(), Ecn::Capable), (spec(), Ecn::NotCapable)] {
        let mut channel = Channel::new(&spec, RTT);
        channel.log = Some(vec![]);
        channel.segment_fate = Box::new(|nth, _| match nth {
            5 => Fate::Lost,
            _ => Fate::Arrives,
        });
        channel.write(bytes(30));
        channel.run(u64::MAX);
        let mut seen = 0;
        for (_, segment) in channel.log.iter().flatten() {
            let is_new = segment.number >= seen;
            seen = seen.max(segment.number + 1);
            let field = if is_new { expected } else { Ecn::NotCapable };
            assert_eq!(segment.ecn, field, "{segment:?}");
        }
        assert!(channel.sender.figures().retransmits > 0);
    }
}

/// 6.1.2: as to a lost segment, once for each window of data, and nothing is sent again.
#[test]
fn marks_of_one_round_trip_halve_the_window_once() {
    let mut channel = marking(&capable(), &[200, 201, 220]);
    channel.write(bytes(2000));
    channel.run(u64::MAX);
    let figures = channel.sender.figures();
    assert_eq!((figures.congestion_events, figures.retransmits), (1, 0));
    assert_eq!(channel.receiver.delivered_bytes(), bytes(2000));
    let reduced: Vec<_> = channel
        .log
        .iter()
        .flatten()
        .filter(|(_, segment)| segment.cwr)
        .collect();
    assert_eq!(reduced.len(), 1, "one segment tells of the reduction");
}

/// 6.1.2: a mark in a later round trip counts again.
#[test]
fn marks_of_two_round_trips_reduce_twice() {
    let mut channel = marking(&capable(), &[200, 900]);
    channel.write(bytes(3000));
    channel.run(u64::MAX);
    let figures = channel.sender.figures();
    assert_eq!((figures.congestion_events, figures.undone_events), (2, 0));
}

/// The window after the event is the law's.
#[test]
fn the_window_goes_down_to_what_the_law_says() {
    for (law, part) in [("reno", 0.5), ("cubic", 0.7)] {
        let spec = TcpSpec {
            law: Law::named(law).unwrap(),
            ..capable()
        };
        let mut channel = marking(&spec, &[200]);
        channel.write(bytes(300));
        channel.run(2 * RTT);
        let most = std::rc::Rc::new(std::cell::Cell::new(0));
        let seen = most.clone();
        channel.check = Box::new(move |sender, _| {
            seen.set(seen.get().max(sender.figures().cwnd_pkts));
        });
        channel.write(bytes(2000));
        while channel.sender.figures().congestion_events == 0 {
            let at_ns = channel.now_ns + RTT / 100;
            channel.run(at_ns);
        }
        let ratio = f64::from(channel.sender.figures().ssthresh_pkts) / f64::from(most.get());
        assert!((ratio - part).abs() < 0.03, "{law}: {ratio}");
    }
}

/// 6.1.3: every acknowledgement echoes until a segment with CWR arrives; a mark of that segment is a new one.
#[test]
fn the_receiver_echoes_until_the_window_was_reduced() {
    let mut receiver = Receiver::new(&capable(), RTT, 0);
    let mut arrives = |number, ecn, cwr| {
        receiver.handle_segment(
            RTT,
            &Segment {
                number,
                payload_bytes: 1448,
                sent_ns: 1,
                echo_ns: 0,
                ecn,
                cwr,
            },
        );
        receiver.poll_ack(RTT).unwrap().ece
    };
    assert!(!arrives(0, Ecn::Capable, false));
    assert!(arrives(1, Ecn::Marked, false));
    assert!(arrives(2, Ecn::Capable, false));
    assert!(arrives(3, Ecn::NotCapable, false));
    assert!(!arrives(4, Ecn::Capable, true));
    assert!(!arrives(5, Ecn::Capable, false));
    assert!(arrives(6, Ecn::Marked, true));
}

/// `delivered_ce`: what acknowledgements with an echo tell of.
#[test]
fn segments_are_counted_by_the_echoes() {
    let mut channel = marking(&capable(), &[200]);
    channel.write(bytes(2000));
    channel.run(u64::MAX);
    let marked = channel.sender.figures().marked_pkts;
    assert!((1..400).contains(&marked), "{marked}");
    let mut deaf = marking(&spec(), &[200]);
    deaf.write(bytes(2000));
    deaf.run(u64::MAX);
    assert_eq!(deaf.sender.figures().marked_pkts, 0);
}

/// A law that samples rates learns of the marks; its window is its own.
#[test]
fn bbr_heeds_marks() {
    let spec = TcpSpec {
        law: Law::named("bbr").unwrap(),
        ..capable()
    };
    let mut rates = [0u64, 1].map(|is_marked| {
        let mut channel = Channel::new(&spec, RTT);
        channel.offer(1 << 30);
        channel.segment_ns = 120_000; // 100 Mb/s
        channel.segment_fate = Box::new(move |nth, _| match nth > 20_000 && is_marked == 1 {
            true => Fate::Marked,
            false => Fate::Arrives,
        });
        channel.write(bytes(60_000));
        channel.run(8_000_000_000);
        channel.receiver.delivered_bytes()
    });
    rates.sort_unstable();
    assert!(rates[0] * 10 < rates[1] * 9, "{rates:?}");
}

/// What a path that loses one segment of a hundred delivers, to a law that is told of each loss and to one that is not told
/// of those without a queue; of so many segments one meets congestion.
fn delivered_apart(one_marked_of: Option<u64>) -> [u64; 2] {
    [false, true].map(|is_apart| {
        let spec = TcpSpec {
            law: Law::named("bbr").unwrap(),
            knows_sending: true,
            tells_losses_apart: is_apart,
            ..capable()
        };
        let mut channel = Channel::new(&spec, RTT / 5);
        channel.offer(1 << 30);
        channel.segment_ns = 60_000; // 200 Mb/s
        channel.segment_fate = Box::new(move |nth, _| match one_marked_of {
            _ if nth % 100 == 25 => Fate::Lost,
            Some(count) if nth % count == 0 => Fate::Marked,
            _ => Fate::Arrives,
        });
        channel.write(bytes(200_000));
        channel.run(8_000_000_000);
        channel.receiver.delivered_bytes()
    })
}

/// A queue that marks is one, however short round trips are: since the segment left whose arrival shows the loss, each time
/// a mark has been told of, so the law is told of the loss, too.
#[test]
fn losses_beside_marks_are_told() {
    let [all, apart] = delivered_apart(Some(50));
    assert_eq!(all, apart);
    let [all, apart] = delivered_apart(None);
    assert!(apart > all, "{all} {apart}");
}
