// SPDX-License-Identifier: MIT OR Apache-2.0
//! What seed 004's test harness could switch: Reno and NewReno without SACK, FACK, rampdown, what acknowledgements
//! count, SACK blocks, segments lost on purpose.

use fatpath_link::Ecn;

use super::super::{Ack, Block, Receiver, Segment, Sender};
use super::acks::{ack, send_all};
use super::channel::Channel;
use super::traces::{MS, RTT, bytes, losing, spec};
use crate::{DelayedAcks, Detection, Growth, SenderFigures, TcpSpec, WindowReduction};

/// As RFC 5681 and 6582 say: no SACK, and the window is halved at once.
fn without_sack(detection: Detection) -> TcpSpec {
    TcpSpec {
        detection,
        reduction: WindowReduction::AtOnce,
        ..spec()
    }
}

/// Sends 400 segments of which `lost` never arrive the first time.
fn dropping(spec: &TcpSpec, lost: &[u64]) -> (SenderFigures, Vec<(u64, Segment)>) {
    let spec = TcpSpec {
        drops: lost.to_vec(),
        ..spec.clone()
    };
    let mut channel = losing(&spec, &[]);
    channel.write(bytes(400));
    channel.run(u64::MAX);
    assert_eq!(channel.receiver.delivered_bytes(), bytes(400));
    (channel.sender.figures(), channel.log.unwrap())
}

fn counts(figures: &SenderFigures) -> (u64, u64, u64) {
    (
        figures.retransmits,
        figures.timeouts,
        figures.congestion_events,
    )
}

/// When `number` left; what was dropped is not in the log.
fn left_ns(log: &[(u64, Segment)], number: u64) -> u64 {
    let found = log.iter().find(|(_, segment)| segment.number == number);
    found.map(|(at_ns, _)| *at_ns).unwrap()
}

#[test]
fn one_loss_is_one_fast_retransmission_without_sack() {
    for detection in [Detection::Reno, Detection::NewReno] {
        let (figures, log) = dropping(&without_sack(detection), &[40]);
        assert_eq!(counts(&figures), (1, 0, 1), "{detection:?}");
        let (before, again) = (left_ns(&log, 39), left_ns(&log, 40));
        assert!((RTT..RTT + 2 * MS).contains(&(again - before)));
    }
}

/// RFC 6582, 3.2: a partial acknowledgement shows the next hole; one event in all.
#[test]
fn newreno_fills_a_hole_each_round_trip() {
    let (figures, log) = dropping(&without_sack(Detection::NewReno), &[40, 44, 50, 51]);
    assert_eq!(counts(&figures), (4, 0, 1));
    let times = [40, 44, 50, 51].map(|number| left_ns(&log, number));
    for pair in times.windows(2) {
        assert!(
            (RTT..RTT + 3 * MS).contains(&(pair[1] - pair[0])),
            "{times:?}"
        );
    }
    let (of_sack, _) = dropping(
        &TcpSpec {
            detection: Detection::Sack,
            ..spec()
        },
        &[40, 44, 50, 51],
    );
    assert_eq!(counts(&of_sack), (4, 0, 1));
}

/// Seed 004: in Reno "multiple drops within a window result in a timeout" (Fall and Floyd 1996, 3: three).
#[test]
fn three_losses_in_a_window_are_a_timeout_in_reno() {
    let lost = [40, 44, 50];
    let (reno, _) = dropping(&without_sack(Detection::Reno), &lost);
    assert!(reno.timeouts > 0 && reno.congestion_events > 1, "{reno:?}");
    let (newreno, _) = dropping(&without_sack(Detection::NewReno), &lost);
    assert_eq!(counts(&newreno), (3, 0, 1));
}

/// RFC 6582, 3.2, step 1: what go-back-N sends twice after a timeout causes no fast retransmission.
#[test]
fn duplicates_of_what_was_sent_twice_are_no_loss() {
    // The retransmission of 40 is lost, too. After the timeout each hole's retransmission takes some behind it along that
    // had arrived.
    let lost = [40, 40, 50, 60, 70, 80];
    let (figures, _) = dropping(&without_sack(Detection::NewReno), &lost);
    assert_eq!((figures.timeouts, figures.congestion_events), (1, 1));
    assert!(figures.retransmits > lost.len() as u64 + 2, "{figures:?}");
}

/// RFC 5681, 3.2, step 3 to 5: duplicates beyond the threshold let new segments go, one each.
#[test]
fn each_duplicate_lets_one_more_leave() {
    let mut sender = Sender::new(&without_sack(Detection::NewReno), RTT, 0);
    sender.set_peer_window(1 << 30);
    sender.write(bytes(1000));
    assert_eq!(send_all(&mut sender, 0), 10);
    sender.handle_ack(RTT, &ack(RTT, 0, &[])); // a window update
    let left = [0; 9].map(|_: u32| {
        sender.handle_ack(RTT, &ack(RTT, 0, &[]));
        send_all(&mut sender, RTT)
    });
    // Two of limited transmit, the retransmission, then nothing until half of the window is there.
    assert_eq!(left, [1, 1, 1, 0, 0, 0, 0, 1, 1]);
    assert_eq!(sender.figures().cwnd_pkts, 5);
    assert_eq!(sender.figures().retransmits, 1);
    let of_all = Ack {
        echo_ns: RTT,
        ..ack(2 * RTT, 12, &[])
    };
    sender.handle_ack(2 * RTT, &of_all);
    assert_eq!(sender.figures().cwnd_pkts, 5, "what inflated it is gone");
}

/// Mathis and Mahdavi 1996: one SACK far beyond the holes tells of all of them.
#[test]
fn fack_needs_one_sack_far_enough() {
    let retransmits_after = |detection, sacked| {
        let mut sender = Sender::new(
            &TcpSpec {
                detection,
                ..spec()
            },
            RTT,
            0,
        );
        sender.set_peer_window(1 << 30);
        sender.write(bytes(1000));
        send_all(&mut sender, 0);
        sender.handle_ack(RTT, &ack(RTT, 0, &[sacked]));
        let lost = sender.board.counts().lost;
        send_all(&mut sender, RTT);
        (lost, sender.figures().retransmits > 0)
    };
    assert_eq!(retransmits_after(Detection::Fack, (2, 3)), (0, false));
    assert_eq!(retransmits_after(Detection::Fack, (3, 4)), (1, true));
    assert_eq!(retransmits_after(Detection::Fack, (9, 10)), (7, true));
    assert_eq!(retransmits_after(Detection::Sack, (9, 10)), (0, false));
}

/// The first of 40 segments is lost, and a SACK comes for each of the others: how many leave after each.
fn left_in_recovery(reduction: WindowReduction) -> Vec<usize> {
    let spec = TcpSpec {
        detection: Detection::Fack,
        reduction,
        initial_window_pkts: 40,
        ..spec()
    };
    let mut sender = Sender::new(&spec, RTT, 0);
    sender.set_peer_window(1 << 30);
    sender.write(bytes(1000));
    send_all(&mut sender, 0);
    let left = (1..40).map(|number| {
        sender.handle_ack(RTT, &ack(RTT, 0, &[(1, number + 1)]));
        send_all(&mut sender, RTT)
    });
    left.collect()
}

#[test]
fn rampdown_sends_one_for_two_and_at_once_pauses() {
    let ramp = left_in_recovery(WindowReduction::Rampdown);
    // After two segments of limited transmit and the retransmission.
    assert_eq!(ramp[..3], [1, 1, 1]);
    let pairs: Vec<usize> = ramp[3..].chunks(2).map(|pair| pair.iter().sum()).collect();
    assert_eq!(pairs, [1; 18]);
    let at_once = left_in_recovery(WindowReduction::AtOnce);
    let pause = [[1; 3].as_slice(), &[0; 19], &[1; 17]].concat();
    assert_eq!(at_once, pause, "until 20 are in flight");
}

/// RFC 5681 counts acknowledgements, RFC 3465 what they acknowledge.
#[test]
fn delayed_acks_slow_the_growth_where_acks_are_counted() {
    let cwnd_after = |growth| {
        let spec = TcpSpec {
            growth,
            delayed_acks: DelayedAcks::On { max_ns: 40 * MS },
            ..spec()
        };
        let mut channel = losing(&spec, &[]);
        channel.write(bytes(10_000));
        channel.run(3 * RTT + RTT / 2);
        channel.sender.figures().cwnd_pkts
    };
    assert_eq!(cwnd_after(Growth::Segments), 80);
    assert_eq!(cwnd_after(Growth::AppropriateBytes), 80);
    let of_acks = cwnd_after(Growth::Acks);
    assert!((30..=36).contains(&of_acks), "10 * 1.5^3: {of_acks}");
}

/// One acknowledgement of many segments, as after lost acknowledgements.
#[test]
fn a_stretch_ack_opens_the_window_by_what_growth_counts() {
    let cwnd_after = |growth| {
        let mut sender = Sender::new(&TcpSpec { growth, ..spec() }, RTT, 0);
        sender.set_peer_window(1 << 30);
        sender.write(bytes(1000));
        send_all(&mut sender, 0);
        sender.handle_ack(RTT, &ack(RTT, 10, &[]));
        sender.figures().cwnd_pkts
    };
    let grown = [Growth::Segments, Growth::AppropriateBytes, Growth::Acks].map(cwnd_after);
    assert_eq!(grown, [20, 12, 11]);
}

fn arrives(receiver: &mut Receiver, number: u64) {
    let segment = Segment {
        number,
        payload_bytes: 1448,
        sent_ns: 1,
        echo_ns: 0,
        ecn: Ecn::NotCapable,
        cwr: false,
    };
    receiver.handle_segment(MS, &segment);
}

#[test]
fn an_ack_carries_as_many_blocks_as_were_agreed_on() {
    for sack_blocks in [1, 3, 8, 16] {
        let mut receiver = Receiver::new(
            &TcpSpec {
                sack_blocks,
                ..spec()
            },
            RTT,
            0,
        );
        for number in (2..60).step_by(2) {
            arrives(&mut receiver, number);
        }
        receiver.handle_timeout(10 * MS);
        let last = std::iter::from_fn(|| receiver.poll_ack(10 * MS))
            .last()
            .unwrap();
        let newest_first = (0..u64::from(sack_blocks)).map(|place| {
            let from = 58 - 2 * place;
            let until = from + 1;
            Block { from, until }
        });
        assert_eq!(last.sacked(), newest_first.collect::<Vec<_>>());
    }
}

/// RFC 5681, 4.2: every segment beyond a hole at once, and no block tells of it.
#[test]
fn without_sack_each_segment_beyond_a_hole_is_one_plain_duplicate() {
    let mut receiver = Receiver::new(&without_sack(Detection::Reno), RTT, 0);
    let acks = (1..40).map(|number| {
        arrives(&mut receiver, number);
        let acks: Vec<_> = std::iter::from_fn(|| receiver.poll_ack(MS)).collect();
        assert!(acks.iter().all(|ack| ack.next == 0 && ack.block_count == 0));
        acks.len()
    });
    assert_eq!(acks.sum::<usize>(), 39);
}

/// Seed 004 dropped "packet 20".
#[test]
fn a_segment_of_the_drop_list_is_sent_and_never_leaves() {
    let spec = TcpSpec {
        drops: vec![19],
        ..spec()
    };
    let mut channel: Channel = losing(&spec, &[]);
    channel.write(bytes(400));
    channel.run(u64::MAX);
    let figures = channel.sender.figures();
    assert_eq!(counts(&figures), (1, 0, 1));
    assert_eq!((figures.sent_pkts, channel.sent), (401, 400));
}
