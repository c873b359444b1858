// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two ends over connections of the loopback interface, and strangers that connect meanwhile.

use super::*;
use crate::tests::{Checked, Pattern};
use crate::{Sink, StepError};
use fatpath_transport::frame::Write as Arrived;
use fatpath_transport::{CloseCode, Extent, Record, Secret};
use socket2::{Domain, Socket, Type};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const CIPHER: Cipher = Cipher::Aes128Gcm;
const WAIT: Duration = Duration::from_millis(10);
const WITHIN: Duration = Duration::from_secs(5);
/// Where a busy machine lets a step come late, the silence before it does not count.
const LONG: Duration = Duration::from_secs(60);
const SILENCE: Duration = Duration::from_secs(10);

fn flows(transfer: u8, count: usize) -> Vec<FlowSecret> {
    let mut secret = Secret::agree(&[transfer; 32], &[2; 32]);
    (0..count).map(|_| secret.next_flow().unwrap()).collect()
}

fn listener(count: usize) -> (Listener, SocketAddr) {
    let listener = Listener::bind(HERE, 50_000..=51_000, std::process::id() as u16).unwrap();
    let listener = listener.expecting(flows(1, count), Role::Receives, CIPHER);
    let at = SocketAddr::new(HERE, listener.port().unwrap());
    (listener, at)
}

/// Both ends of so many connections.
fn connected(count: usize) -> (Vec<Connection>, Vec<Connection>) {
    let (mut listener, at) = listener(count);
    let of_sender = thread::spawn(move || {
        let flows = flows(1, count).into_iter();
        flows
            .map(|flow| connect(at, flow, Role::Sends, CIPHER, WITHIN).unwrap())
            .collect()
    });
    let begun = Instant::now();
    while listener.poll().unwrap() < count {
        assert!(begun.elapsed() < WITHIN);
    }
    (of_sender.join().unwrap(), listener.into_connections())
}

#[test]
fn all_bytes_arrive_over_one_connection_and_over_several() {
    const BYTES: u64 = 20_000_000;
    for count in [1, 5] {
        let (of_sender, of_receiver) = connected(count);
        let sending = thread::spawn(move || {
            let mut end = SendEnd::new(of_sender, SILENCE, None, "reno").unwrap();
            for (object, bytes) in [(0, BYTES), (1, 1), (2, 0), (3, BYTES)] {
                let offset = u64::from(object);
                end.send(Extent {
                    object,
                    offset,
                    bytes,
                });
            }
            while !end.is_done() {
                end.step(&mut Pattern, WAIT).unwrap();
            }
            end.close(CloseCode(0)).unwrap();
            end
        });
        let (mut end, mut sink) = (RecvEnd::new(of_receiver), Checked::default());
        while !sending.is_finished() {
            end.step(&mut sink, WAIT).unwrap();
        }
        assert_eq!(sink.bytes, 2 * BYTES + 1);
        let sent = sending.join().unwrap().figures();
        assert!(sent.sent_pkts > 0 && sent.srtt_us > 0, "{sent:?}");
    }
}

/// They have no keys, or those of another transfer: their connections are closed, and the one that has them comes through.
#[test]
fn strangers_are_closed_and_change_nothing() {
    let (mut listener, at) = listener(1);
    let silent: Vec<_> = (0..100).map(|_| TcpStream::connect(at).unwrap()).collect();
    let mut noise = TcpStream::connect(at).unwrap();
    noise.write_all(&[7; 500]).unwrap();
    let other = flows(9, 1).remove(0);
    let other = thread::spawn(move || connect(at, other, Role::Sends, CIPHER, WITHIN));
    let own = flows(1, 1).remove(0);
    let own = thread::spawn(move || connect(at, own, Role::Sends, CIPHER, WITHIN));
    let begun = Instant::now();
    while listener.poll().unwrap() < 1 || !other.is_finished() {
        assert!(begun.elapsed() < 2 * WITHIN);
    }
    own.join().unwrap().unwrap();
    assert!(other.join().unwrap().is_err());
    let mut byte = [0];
    assert_eq!(noise.read(&mut byte).ok().filter(|read| *read > 0), None);
    assert_eq!(listener.into_connections().len(), 1);
    drop(silent);
}

/// The other end's hello comes in two parts, as after a loss, and one stranger connects as often as it can meanwhile: it
/// takes the places of its own connections.
#[test]
fn one_stranger_does_not_take_the_place_of_others() {
    let (mut listener, at) = listener(1);
    let (mut sealer, mut opener) = flows(1, 1).remove(0).records_of_sender(CIPHER);
    let mut hello = vec![];
    sealer.hello(0, &mut hello).unwrap();
    let mut own = TcpStream::connect(at).unwrap();
    own.write_all(&hello[..20]).unwrap();
    listener.poll().unwrap();
    let mut strangers = vec![];
    for _ in 0..300 {
        strangers.push(connected_from([127, 0, 0, 2], at));
        listener.poll().unwrap();
    }
    own.write_all(&hello[20..]).unwrap();
    let begun = Instant::now();
    while listener.poll().unwrap() < 1 {
        assert!(begun.elapsed() < WITHIN);
    }
    let mut answer = vec![0; hello.len()];
    own.read_exact(&mut answer).unwrap();
    assert_eq!(opener.open(&mut answer), Ok(Record::Hello(1)));
}

fn connected_from(address: [u8; 4], to: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((address, 0)).into()).unwrap();
    socket.connect(&to.into()).unwrap();
    socket.into()
}

/// Who answers in the other end's place, a byte at a time, is waited for no longer than somebody silent.
#[test]
fn an_answer_that_trickles_is_not_waited_for() {
    let stranger = TcpListener::bind((HERE, 0)).unwrap();
    let at = stranger.local_addr().unwrap();
    let trickling = thread::spawn(move || {
        let (mut stream, _) = stranger.accept().unwrap();
        while stream.write_all(&[0]).is_ok() {
            thread::sleep(10 * WAIT);
        }
    });
    let own = flows(1, 1).remove(0);
    let begun = Instant::now();
    let failed = connect(at, own, Role::Sends, CIPHER, 30 * WAIT).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::TimedOut);
    assert!(begun.elapsed() < 90 * WAIT, "{:?}", begun.elapsed());
    trickling.join().unwrap();
}

/// What somebody on the path puts into a connection, or an end that goes away, ends it by a name.
#[test]
fn what_was_not_sealed_ends_the_carrier() {
    let (mut listener, at) = listener(1);
    let mut stream = TcpStream::connect(at).unwrap();
    let (mut sealer, _) = flows(1, 1).remove(0).records_of_sender(CIPHER);
    let mut records = vec![];
    sealer.hello(0, &mut records).unwrap();
    stream.write_all(&records).unwrap();
    while listener.poll().unwrap() < 1 {}
    let mut end = RecvEnd::new(listener.into_connections());
    records.clear();
    sealer.hello(0, &mut records).unwrap();
    records[10] ^= 1;
    stream.write_all(&records).unwrap();
    assert!(matches!(error_of(&mut end), StepError::Refused(..)));
    let (of_sender, of_receiver) = connected(1);
    drop(of_sender);
    assert!(matches!(
        error_of(&mut RecvEnd::new(of_receiver)),
        StepError::Ended(_)
    ));
}

fn error_of(end: &mut RecvEnd) -> StepError {
    let begun = Instant::now();
    while begun.elapsed() < WITHIN {
        if let Err(error) = end.step(&mut Checked::default(), WAIT) {
            return error;
        }
    }
    panic!("the carrier goes on");
}

/// A sink that stands until it may go on.
struct Slow<'s>(&'s dyn Fn());

impl Sink for Slow<'_> {
    fn write(&mut self, _: usize, _: &[Arrived<'_>]) {
        (self.0)();
    }
}

/// While nobody takes what arrives, the sender has not much of it on its way: it waits, and knows when to give up.
#[test]
fn a_receiver_that_stands_holds_the_sender_back_and_silence_ends_it() {
    let (of_sender, of_receiver) = connected(1);
    let silence = Duration::from_millis(500);
    let mut end = SendEnd::new(of_sender, silence, None, "reno").unwrap();
    let bytes = 1 << 30;
    end.send(Extent {
        object: 0,
        offset: 0,
        bytes,
    });
    ends_by_silence(&mut end, || ());
    assert!(end.unsent_bytes() > bytes / 2);
    // A hello is a sign of life.
    let (of_sender, of_receiver_2) = connected(1);
    drop(of_receiver);
    let mut end = SendEnd::new(of_sender, silence, None, "reno").unwrap();
    let mut receiver = RecvEnd::new(of_receiver_2);
    let begun = Instant::now();
    while begun.elapsed() < 2 * silence {
        receiver.step(&mut Slow(&|| ()), WAIT).unwrap();
        end.step(&mut Pattern, Duration::ZERO).unwrap();
    }
}

/// The sender goes on until a connection is silent for too long.
fn ends_by_silence(end: &mut SendEnd, mut meanwhile: impl FnMut()) {
    let begun = Instant::now();
    let error = loop {
        meanwhile();
        match end.step(&mut Pattern, WAIT) {
            Ok(()) => assert!(begun.elapsed() < WITHIN),
            Err(error) => break error,
        }
    };
    assert!(
        matches!(error, StepError::SilentConnection { .. }),
        "{error}"
    );
}

/// What lies between may forget one connection of three, or end it: the others bring what it had. What the sender keeps account
/// of has arrived by then.
#[test]
fn a_connection_that_is_silent_or_ends_leaves_the_others_its_work() {
    const BYTES: u64 = 30_000_000;
    for is_ended in [false, true] {
        let (of_sender, mut of_receiver) = connected(3);
        let forgotten = of_receiver.pop();
        if is_ended {
            drop(forgotten.into_iter());
        }
        let silence = Duration::from_secs(2);
        let mut end = SendEnd::new(of_sender, silence, None, "reno").unwrap();
        let mut receiver = RecvEnd::new(of_receiver);
        end.send(Extent {
            object: 0,
            offset: 0,
            bytes: BYTES,
        });
        let (mut sink, begun) = (Checked::default(), Instant::now());
        while sink.bytes < BYTES || !end.is_done() {
            receiver.step(&mut sink, Duration::ZERO).unwrap();
            end.step(&mut Pattern, Duration::ZERO).unwrap();
            assert!(begun.elapsed() < LONG, "{} {:?}", sink.bytes, end.lowest());
        }
        assert_eq!((sink.bytes, end.given_up()), (BYTES, 1));
        assert!(end.figures().sent_pkts > 0);
    }
}

/// Where long segments do not arrive, as on a line of a smaller MTU whose routers say nothing, hellos do come back.
#[test]
fn a_connection_by_which_only_hellos_go_leaves_the_others_its_work() {
    const BYTES: u64 = 3_000_000;
    let (of_sender, of_receiver) = connected(3);
    of_receiver[1].refuse_longer_than(1000);
    let silence = Duration::from_secs(2);
    let mut end = SendEnd::new(of_sender, silence, None, "reno").unwrap();
    let mut receiver = RecvEnd::new(of_receiver);
    end.send(Extent {
        object: 0,
        offset: 0,
        bytes: BYTES,
    });
    let (mut sink, begun) = (Checked::default(), Instant::now());
    while !end.is_done() {
        receiver.step(&mut sink, WAIT / 10).unwrap();
        end.step(&mut Pattern, WAIT / 10).unwrap();
        assert!(begun.elapsed() < 2 * WITHIN, "{:?}", end.lowest());
    }
    assert_eq!((sink.bytes, end.given_up()), (BYTES, 1));
}

/// A connection that the network ended at one end alone is no end of the transfer there, as long as another one goes on.
#[test]
fn the_last_connection_that_ends_is_the_end() {
    let (mut of_sender, of_receiver) = connected(2);
    let mut end = RecvEnd::new(of_receiver);
    of_sender.pop();
    for _ in 0..10 {
        end.step(&mut Checked::default(), WAIT).unwrap();
    }
    of_sender.pop();
    assert!(matches!(error_of(&mut end), StepError::Ended(_)));
}

/// Bytes that arrive in a second, over so many connections together.
fn arrived_in_a_second(count: usize, limit_bps: u64) -> u64 {
    let (of_sender, of_receiver) = connected(count);
    let receiving = thread::spawn(move || {
        let (mut end, mut sink) = (RecvEnd::new(of_receiver), Checked::default());
        while end.step(&mut sink, WAIT).is_ok() {}
        sink.bytes
    });
    let mut end = SendEnd::new(of_sender, SILENCE, Some(limit_bps), "reno").unwrap();
    end.send(Extent {
        object: 0,
        offset: 0,
        bytes: 1 << 30,
    });
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(1) {
        end.step(&mut Pattern, WAIT).unwrap();
    }
    drop(end);
    receiving.join().unwrap()
}

#[test]
fn a_limit_is_shared() {
    // A machine that is busy for the whole second has another one.
    let enough = |bytes: &u64| *bytes > 5_000_000;
    let mut seconds = (0..20).map(|_| arrived_in_a_second(4, 80_000_000));
    let bytes = seconds.find(enough).unwrap();
    assert!(bytes < 12_000_000, "{bytes}");
}

/// Of less than a byte a second for each connection: the kernel would take 0 for no limit.
#[test]
fn a_tiny_limit_is_one() {
    let bytes = arrived_in_a_second(4, 7);
    assert!(bytes < 4_000_000, "{bytes}");
}
