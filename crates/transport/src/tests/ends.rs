// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a connection ends: closed by either end, by its key's limit; what a failed read does.

use super::super::{
    CloseCode, Ecn, Extent, HEADER_BYTES, KeyExhausted, Kind, Limit, PollError, Receiver, Refused,
    Sender, Spec, SpecError,
};
use super::delivery;
use super::transfer::{MS, RTT, Transfer, secret};

fn pair(bytes: u64) -> (Sender, Receiver) {
    let spec = Spec::default();
    let mut sender = Sender::new(&spec, secret(), RTT, 0).unwrap();
    let (object, offset) = (0, 0);
    sender.send(Extent {
        object,
        offset,
        bytes,
    });
    (sender, Receiver::new(&spec, secret(), RTT, 0).unwrap())
}

fn from_sender(sender: &mut Sender, now_ns: u64) -> Option<Vec<u8>> {
    let mut datagram = Vec::new();
    let left = sender.poll_transmit(now_ns, &mut datagram, |_, _| Ok::<(), ()>(()));
    left.unwrap().then_some(datagram)
}

fn from_receiver(receiver: &mut Receiver, now_ns: u64) -> Option<Vec<u8>> {
    let mut datagram = Vec::new();
    let left = receiver.poll_transmit(now_ns, &mut datagram);
    left.unwrap().then_some(datagram)
}

#[test]
fn a_close_that_is_lost_is_said_again_when_the_other_goes_on() {
    let (mut sender, mut receiver) = pair(4000);
    let mut data = from_sender(&mut sender, 0).unwrap();
    sender.close(CloseCode(7));
    from_sender(&mut sender, 0).unwrap(); // lost
    assert_eq!(
        (from_sender(&mut sender, 0), sender.poll_timeout()),
        (None, None)
    );
    receiver
        .handle_datagram(RTT, Ecn::Capable, &mut data)
        .unwrap();
    let mut ack = from_receiver(&mut receiver, RTT).unwrap();
    sender.handle_datagram(2 * RTT, &mut ack).unwrap();
    let mut close = from_sender(&mut sender, 2 * RTT).unwrap();
    receiver
        .handle_datagram(3 * RTT, Ecn::Capable, &mut close)
        .unwrap();
    assert_eq!(receiver.closed_by_peer(), Some(CloseCode(7)));
    assert_eq!(
        (
            from_receiver(&mut receiver, 3 * RTT),
            receiver.poll_timeout()
        ),
        (None, None)
    );
}

#[test]
fn a_receiver_that_closes_ends_the_sender() {
    let (mut sender, mut receiver) = pair(100_000);
    let mut first = from_sender(&mut sender, 0).unwrap();
    let mut second = from_sender(&mut sender, 0).unwrap();
    receiver
        .handle_datagram(RTT, Ecn::Capable, &mut first)
        .unwrap();
    receiver.close(CloseCode(9));
    from_receiver(&mut receiver, RTT).unwrap(); // lost
    assert_eq!(from_receiver(&mut receiver, RTT), None);
    let late = receiver
        .handle_datagram(RTT, Ecn::Capable, &mut second)
        .unwrap();
    assert_eq!(late.writes.count(), 0, "nothing is written after the end");
    let mut close = from_receiver(&mut receiver, RTT).unwrap();
    sender.handle_datagram(2 * RTT, &mut close).unwrap();
    assert_eq!(sender.closed_by_peer(), Some(CloseCode(9)));
    assert_eq!(
        (from_sender(&mut sender, 2 * RTT), sender.poll_timeout()),
        (None, None)
    );
}

#[test]
fn a_key_at_its_limit_ends_the_connection() {
    let (mut sender, mut receiver) = pair(100_000);
    sender.limit_key(u64::MAX, 3);
    (0..2).for_each(|_| assert!(from_sender(&mut sender, 0).is_some()));
    let mut datagram = Vec::new();
    let refused = sender.poll_transmit(0, &mut datagram, |_, _| Ok::<(), ()>(()));
    assert_eq!(refused, Err(PollError::KeyExhausted(KeyExhausted)));
    assert_eq!(datagram, [], "nothing that is not sealed is left");
    let mut close = from_sender(&mut sender, 0).unwrap();
    receiver
        .handle_datagram(RTT, Ecn::Capable, &mut close)
        .unwrap();
    assert_eq!(receiver.closed_by_peer(), Some(CloseCode::KEY_EXHAUSTED));
    assert_eq!(
        (from_sender(&mut sender, RTT), sender.poll_timeout()),
        (None, None)
    );
}

/// What could not be read is asked for again, when its segment counts as lost.
#[test]
fn a_run_that_could_not_be_read_is_read_again() {
    let (mut sender, mut receiver) = pair(3 * 1398);
    let mut offsets = Vec::new();
    let mut fails = true;
    let mut now_ns = 0;
    while !sender.is_done() {
        let mut datagram = Vec::new();
        let left = sender.poll_transmit(now_ns, &mut datagram, |run, _| {
            offsets.push(run.offset);
            match std::mem::take(&mut fails) {
                true => Err("the disk"),
                false => Ok(()),
            }
        });
        match left {
            Err(why) => assert_eq!(why, PollError::Read("the disk")),
            Ok(true) => drop(
                receiver
                    .handle_datagram(now_ns, Ecn::Capable, &mut datagram)
                    .unwrap(),
            ),
            Ok(false) => {
                let due = [sender.poll_timeout(), receiver.poll_timeout()];
                now_ns = due.into_iter().flatten().min().unwrap().max(now_ns);
                sender.handle_timeout(now_ns);
                receiver.handle_timeout(now_ns);
            }
        }
        while let Some(mut ack) = from_receiver(&mut receiver, now_ns) {
            sender.handle_datagram(now_ns, &mut ack).unwrap();
        }
    }
    offsets.sort_unstable();
    assert_eq!(offsets, [0, 0, 1398, 2 * 1398]);
}

#[test]
fn what_no_connection_can_be_made_of_is_told() {
    let refused = |change: fn(&mut Spec)| {
        let mut spec = Spec::default();
        change(&mut spec);
        Sender::new(&spec, secret(), RTT, 0)
            .err()
            .map(|why| why.to_string())
    };
    assert_eq!(refused(|_| ()), None);
    let told = |why: SpecError| Some(why.to_string());
    assert_eq!(
        refused(|spec| spec.datagram_bytes = 511),
        told(SpecError::Datagram)
    );
    assert_eq!(
        refused(|spec| spec.window_bytes = 2000),
        told(SpecError::Window)
    );
    assert!(refused(|spec| spec.tcp.sack_blocks = 17).is_some());
}

/// Nothing that verifies has come for as long as the spec allows: what others send does not count.
#[test]
fn a_peer_that_is_silent_is_given_up() {
    let limit_ns = Spec::default().silence_ns;
    let (mut sender, mut receiver) = pair(4000);
    assert_eq!(
        (
            sender.is_abandoned(u64::MAX),
            receiver.is_abandoned(u64::MAX)
        ),
        (false, false)
    );
    while let Some(mut data) = from_sender(&mut sender, 0) {
        data[20] ^= 1;
        assert!(
            receiver
                .handle_datagram(RTT, Ecn::Capable, &mut data)
                .is_err()
        );
    }
    receiver.expect_data(RTT, true);
    let mut now_ns = 0;
    while !sender.is_abandoned(now_ns) {
        now_ns = sender.poll_timeout().unwrap();
        sender.handle_timeout(now_ns);
        while from_sender(&mut sender, now_ns).is_some() {}
    }
    assert_eq!(now_ns, limit_ns);
    assert!(!receiver.is_abandoned(limit_ns + RTT - 1));
    assert!(receiver.is_abandoned(limit_ns + RTT));
    assert_eq!(receiver.poll_timeout(), Some(limit_ns + RTT));
}

#[test]
fn a_hello_tells_where_the_receiver_is_and_nothing_else() {
    let (mut sender, mut receiver) = pair(4000);
    assert_eq!(from_receiver(&mut receiver, 0), None);
    receiver.say_hello();
    let mut hello = from_receiver(&mut receiver, 0).unwrap();
    assert_eq!(from_receiver(&mut receiver, 0), None);
    let before = sender.figures();
    assert_eq!(sender.handle_datagram(0, &mut hello.clone()), Ok(()));
    assert_eq!(sender.figures(), before);
    assert!(sender.handle_datagram(0, &mut hello).is_err(), "once");
    let (mut sealer, _) = secret().of_receiver(Spec::default().cipher);
    let mut with_rest = [0; HEADER_BYTES + 1].to_vec();
    sealer.seal(Kind::Ack, &mut with_rest.clone(), 0).unwrap(); // its number was that of the hello
    sealer.seal(Kind::Hello, &mut with_rest, 0).unwrap();
    let refused = sender.handle_datagram(0, &mut with_rest);
    assert_eq!(refused, Err(Refused::Nonsense));
}

/// A window that holds the sender back is the one that was given, unless the receiver offers less, for what it holds.
#[test]
fn a_sender_knows_whose_window_holds_it_back() {
    let spec = Spec {
        window_bytes: 40_000,
        ..Spec::default()
    };
    let ways = [
        delivery::way(100_000_000, (0.0, 0.0, 0.0, 0.0), 1),
        delivery::way(100_000_000, (0.0, 0.0, 0.0, 0.0), 2),
    ];
    let mut transfer = Transfer::new(&spec, &[4_000_000], ways);
    transfer.run(5 * RTT + 5 * MS);
    assert_eq!(transfer.sender.limit(), Limit::Window);
    transfer.receiver.set_held_bytes(30_000);
    transfer.run(12 * RTT);
    assert_eq!(transfer.sender.limit(), Limit::Receiver);
    transfer.receiver.set_held_bytes(0);
    transfer.run(u64::MAX);
    transfer.check_complete();
    assert_eq!(transfer.sender.limit(), Limit::Data);
}
