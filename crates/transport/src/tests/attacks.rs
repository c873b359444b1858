// SPDX-License-Identifier: MIT OR Apache-2.0
//! Datagrams of others: spoofed, replayed, cut off, reflected. Nothing changes, and not one datagram of the transfer
//! leaves at another time or with other bytes.

use fatpath_link::{CellSpec, ChainSpec, LossSpec};

use super::super::frame::AckFrame;
use super::super::{Ecn, Extent, HEADER_BYTES, Kind, Receiver, Refused, Sealer, Sender, Spec};
use super::transfer::{Datagram, MS, RTT, Transfer, secret};

fn ways() -> [ChainSpec; 2] {
    let lost = CellSpec::Loss(LossSpec::Independent { probability: 0.02 });
    let there = ChainSpec::of([
        CellSpec::rate(50_000_000, Some(100_000)),
        lost,
        CellSpec::delay(RTT / 2),
    ]);
    [there, ChainSpec::of([CellSpec::delay(RTT / 2)])]
}

/// Both ends refuse it, and are afterwards what they were.
fn check_refused(now_ns: u64, payload: &[u8], sender: &mut Sender, receiver: &mut Receiver) {
    let before = format!("{sender:?} {receiver:?}");
    assert!(
        sender
            .handle_datagram(now_ns, &mut payload.to_vec())
            .is_err()
    );
    assert!(
        receiver
            .handle_datagram(now_ns, Ecn::Marked, &mut payload.to_vec())
            .is_err()
    );
    assert_eq!(format!("{sender:?} {receiver:?}"), before);
}

#[test]
fn what_others_send_changes_nothing() {
    let run = |attacked: bool| {
        let mut transfer = Transfer::new(&Spec::default(), &[200_000, 10, 3000], ways());
        transfer.sender.limit_key(30, u64::MAX); // so that keys are renewed meanwhile
        if attacked {
            let (mut past, mut count) = (Vec::<Datagram>::new(), 0usize);
            transfer.attack = Box::new(move |now_ns, arriving, sender, receiver| {
                count += 1;
                let whole = &arriving.payload;
                check_refused(now_ns, &whole[..count % whole.len()], sender, receiver);
                let mut flipped = whole.clone();
                flipped[count % whole.len()] ^= 1 << (count % 8);
                check_refused(now_ns, &flipped, sender, receiver);
                let mut next = whole.clone();
                next[15] = next[15].wrapping_add(1); // another number
                check_refused(now_ns, &next, sender, receiver);
                for other in [1, 2, u8::MAX] {
                    let mut moved = whole.clone();
                    moved[1] = moved[1].wrapping_add(other); // another phase
                    check_refused(now_ns, &moved, sender, receiver);
                }
                if let Some(old) = past.get(count / 2) {
                    check_refused(now_ns, &old.payload, sender, receiver);
                }
                check_refused(now_ns, &vec![count as u8; count % 200], sender, receiver);
                past.push(arriving.clone());
            });
        }
        transfer.run(60_000 * MS);
        transfer.check_complete();
        assert!(transfer.sender.phase() >= 4, "{}", transfer.sender.phase());
        (
            transfer.log.clone(),
            transfer.now_ns,
            transfer.refused.clone(),
        )
    };
    let quiet = run(false);
    assert_eq!(run(true), quiet);
    assert_eq!(quiet.2, []);
}

fn sent(sender: &mut Sender) -> usize {
    let mut datagram = Vec::new();
    let mut read = |_: &_, _: &mut [u8]| Ok::<(), ()>(());
    std::iter::from_fn(|| {
        sender
            .poll_transmit(0, &mut datagram, &mut read)
            .unwrap()
            .then_some(())
    })
    .count()
}

/// A peer that has the keys acknowledges what was never sent, or echoes what never left (optimistic ACKs, Savage et
/// al. 1999).
#[test]
fn acks_of_what_never_left_are_refused() {
    let spec = Spec::default();
    let mut sender = Sender::new(&spec, secret(), RTT, 0).unwrap();
    let bytes = 1 << 20;
    let (object, offset) = (0, 0);
    sender.send(Extent {
        object,
        offset,
        bytes,
    });
    assert_eq!(sent(&mut sender), 10);
    let (mut sealer, _) = secret().of_receiver(spec.cipher);
    let mut told = |next: u64, echo: u64, block: Option<(u64, u64)>, ecn_pkts: (u64, u64)| {
        let mut ack = AckFrame::decode(&[0; 46]).unwrap();
        (ack.next, ack.echo, ack.window_bytes) = (next, echo, 1 << 20);
        (ack.capable_pkts, ack.marked_pkts) = ecn_pkts;
        if let Some((from, until)) = block {
            (ack.block_count, ack.blocks[0].from, ack.blocks[0].until) = (1, from, until);
        }
        let mut datagram = vec![0; HEADER_BYTES];
        ack.push(&mut datagram);
        sealer.seal(Kind::Ack, &mut datagram, 0).unwrap();
        sender.handle_datagram(RTT, &mut datagram)
    };
    assert_eq!(told(11, 9, None, (10, 0)), Err(Refused::Nonsense));
    assert_eq!(told(0, 9, Some((9, 11)), (9, 0)), Err(Refused::Nonsense));
    assert_eq!(told(5, 10, None, (5, 0)), Err(Refused::Nonsense));
    assert_eq!(told(5, 4, None, (5, 6)), Err(Refused::Nonsense));
    assert_eq!(told(5, 4, Some((6, 10)), (9, 0)), Ok(()));
    assert_eq!(told(10, 9, None, (10, 0)), Ok(()));
    assert_eq!(sender.figures().acked_bytes, 10 * 1412);
}

/// A peer that has the keys sends data without end, or of the wrong kind.
#[test]
fn data_beyond_all_windows_are_refused() {
    let spec = Spec::default();
    let mut receiver = Receiver::new(&spec, secret(), RTT, 0).unwrap();
    let (mut sealer, _) = secret().of_sender(spec.cipher);
    let mut told = |kind, frame: &[u8]| {
        let mut datagram = [&[0; HEADER_BYTES], frame].concat();
        sealer.seal(kind, &mut datagram, 0).unwrap();
        receiver
            .handle_datagram(RTT, Ecn::Capable, &mut datagram)
            .map(|received| received.writes.count())
    };
    let far = |segment: u64| [&segment.to_be_bytes()[..], &[0; 13], &[1, 7]].concat();
    assert_eq!(told(Kind::Data, &far(1 << 22)), Ok(0));
    assert_eq!(told(Kind::Data, &far(1 << 61)), Ok(0));
    assert_eq!(told(Kind::Ack, &[0; 30]), Err(Refused::Nonsense));
    assert_eq!(told(Kind::Data, &far(3)), Ok(1));
    assert_eq!(told(Kind::Data, &far(3)), Ok(0));
    assert_eq!(told(Kind::Data, &far(0)), Ok(1));
}

/// A segment of 1000 bytes and their header.
fn taken(receiver: &mut Receiver, sealer: &mut Sealer, segment: u64) -> usize {
    taken_of(1000, receiver, sealer, segment)
}

fn taken_of(bytes: u16, receiver: &mut Receiver, sealer: &mut Sealer, segment: u64) -> usize {
    let mut datagram = vec![0; HEADER_BYTES];
    datagram.extend(segment.to_be_bytes());
    datagram.extend([0; 12]);
    datagram.extend(bytes.to_be_bytes());
    datagram.extend(vec![7; bytes.into()]);
    sealer.seal(Kind::Data, &mut datagram, 0).unwrap();
    let received = receiver.handle_datagram(RTT, Ecn::Capable, &mut datagram);
    received.unwrap().writes.count()
}

fn receiver_of_two_datagrams() -> (Receiver, Sealer) {
    let spec = Spec {
        window_bytes: 2 * 1452,
        ..Spec::default()
    };
    let receiver = Receiver::new(&spec, secret(), RTT, 0).unwrap();
    (receiver, secret().of_sender(spec.cipher).0)
}

/// A peer that has the keys sends more than the window beyond a hole: what does not fit counts as lost, and nothing
/// overflows when the hole is filled.
#[test]
fn no_more_is_kept_than_was_offered() {
    let (mut receiver, mut sealer) = receiver_of_two_datagrams();
    let mut writes = |segment| taken(&mut receiver, &mut sealer, segment);
    assert_eq!((1..60).map(&mut writes).sum::<usize>(), 2);
    assert_eq!(writes(0), 1);
}

/// It sends the least that a segment can have, every other one, for holes take memory too.
#[test]
fn no_more_holes_are_kept_than_the_window_has_memory_for() {
    let spec = Spec {
        window_bytes: 64_000,
        ..Spec::default()
    };
    let mut receiver = Receiver::new(&spec, secret(), RTT, 0).unwrap();
    let mut sealer = secret().of_sender(spec.cipher).0;
    let mut writes = |segment| taken_of(1, &mut receiver, &mut sealer, segment);
    assert_eq!(
        (1..2000)
            .map(|number| 2 * number)
            .map(&mut writes)
            .sum::<usize>(),
        499
    );
}

/// It sends all in order, and the program has written nothing: what does not fit counts as lost, until that is written.
#[test]
fn no_more_waits_to_be_written_than_was_offered() {
    let (mut receiver, mut sealer) = receiver_of_two_datagrams();
    let mut held_segments = 0;
    for segment in 0..60 {
        held_segments += taken(&mut receiver, &mut sealer, segment);
        receiver.set_held_bytes(1014 * held_segments as u64);
        while receiver.poll_transmit(RTT, &mut vec![]).unwrap() {}
    }
    assert_eq!(held_segments, 2);
    receiver.set_held_bytes(0);
    assert!(receiver.poll_transmit(RTT, &mut vec![]).unwrap());
    assert_eq!(taken(&mut receiver, &mut sealer, 2), 1);
}
