// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two ends over the loopback interface.

use super::*;
use fatpath_transport::{Cipher, Ecn, Extent, FlowSecret, Secret, Spec};
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::thread;
use std::time::Duration;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const RTT: Duration = Duration::from_millis(1);
const WAIT: Duration = Duration::from_millis(10);

fn flow(transfer: u8) -> FlowSecret {
    Secret::agree(&[transfer; 32], &[2; 32])
        .next_flow()
        .unwrap()
}

fn content(object: u32, place: u64) -> u8 {
    (place.wrapping_mul(0x9e37_79b1) >> 7) as u8 ^ object as u8
}

pub(crate) struct Pattern;

impl Source for Pattern {
    fn read(&mut self, run: &Run, into: &mut [u8]) {
        for (byte, place) in into.iter_mut().zip(run.offset..) {
            *byte = content(run.object, place);
        }
    }
}

/// Checks what arrives and counts it.
#[derive(Default)]
pub(crate) struct Checked {
    pub(crate) bytes: u64,
}

impl Sink for Checked {
    fn write(&mut self, _: usize, writes: &[Write<'_>]) {
        for write in writes {
            let expected = (write.offset..).map(|place| content(write.object, place));
            assert!(
                write
                    .bytes
                    .iter()
                    .zip(expected)
                    .all(|(byte, wanted)| *byte == wanted)
            );
            self.bytes += write.bytes.len() as u64;
        }
    }
}

/// On a port that no other test of this process had, whose ends share keys with those of this one and may still send there.
fn socket() -> (Socket, Bound) {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = (std::process::id() as u16).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
    Socket::bind(HERE, 50_000..=51_000, first).unwrap()
}

/// Moves `bytes` in two objects; `receiver_knows`: which of the two ends knows where the other is.
fn moved(bytes: u64, receiver_knows: bool) {
    let (spec, (here, at)) = (Spec::default(), socket());
    let (there, there_at) = socket();
    let known = |is_known: bool, bound: Bound| is_known.then_some(bound.address);
    let mut receiver = RecvEnd::new(there, &spec, flow(1), known(receiver_knows, at), RTT).unwrap();
    let sender = SendEnd::new(here, &spec, flow(1), known(!receiver_knows, there_at), RTT);
    let mut sender = sender.unwrap();
    let receiving = thread::spawn(move || {
        let mut sink = Checked::default();
        receiver.expect_data(true);
        while receiver.closed_by_peer().is_none() {
            receiver.step(&mut sink, WAIT).unwrap();
        }
        sink.bytes
    });
    for object in 0..2 {
        let offset = u64::from(object) << 40;
        let bytes = bytes / 2;
        sender.send(Extent {
            object,
            offset,
            bytes,
        });
    }
    while !sender.is_done() {
        sender.step(&mut Pattern, WAIT).unwrap();
    }
    while !receiving.is_finished() {
        sender.close(CloseCode(0));
        sender.step(&mut Pattern, WAIT).unwrap();
    }
    assert_eq!(receiving.join().unwrap(), bytes);
}

#[test]
fn everything_arrives_whichever_end_knows_the_other() {
    moved(20 << 20, false);
    moved(20 << 20, true);
}

/// Where what was read began, in the order of reading.
#[derive(Default)]
struct Read(Vec<u64>);

impl Source for Read {
    fn read(&mut self, run: &Run, into: &mut [u8]) {
        self.0.push(run.offset);
        Pattern.read(run, into);
    }
}

#[test]
fn what_is_lost_is_read_again_after_all_else() {
    const BYTES: u64 = 8 << 20;
    let mut spec = Spec {
        lost_last: true,
        ..Spec::default()
    };
    spec.tcp.drops = vec![20, 25];
    let ((here, at), (there, there_at)) = (socket(), socket());
    let mut receiver = RecvEnd::new(there, &spec, flow(1), Some(at.address), RTT).unwrap();
    let sender = SendEnd::new(here, &spec, flow(1), Some(there_at.address), RTT).unwrap();
    let receiving = thread::spawn(move || {
        receiver.expect_data(true);
        while receiver.closed_by_peer().is_none() {
            receiver.step(&mut Checked::default(), WAIT).unwrap();
        }
    });
    let (mut flows, mut source) = (SendFlows::new(vec![sender]), Read::default());
    flows.send(Extent {
        object: 0,
        offset: 0,
        bytes: BYTES,
    });
    while !flows.is_done() {
        flows.step(&mut source, WAIT).unwrap();
    }
    while !receiving.is_finished() {
        flows.close(CloseCode(0));
        flows.step(&mut source, WAIT).unwrap();
    }
    receiving.join().unwrap();
    let run_bytes = u64::from(spec.datagram_bytes - Spec::OVERHEAD_BYTES);
    let reads = |offset: u64| source.0.iter().filter(move |read| **read == offset).count();
    let place = |offset: u64| source.0.iter().rposition(|read| *read == offset);
    let end = source.0.iter().position(|read| read + run_bytes >= BYTES);
    for lost in [20, 25].map(|segment| segment * run_bytes) {
        assert_eq!(reads(lost), 2, "{lost}");
        assert!(place(lost) > end, "{lost}: {:?}, {end:?}", place(lost));
    }
}

/// A train of datagrams of full size asks; each answer is as long as the question, and nobody else's is taken.
#[test]
fn the_path_is_asked_before_data_go_over_it() {
    let ((mut here, at), (mut there, there_at)) = (socket(), socket());
    let other = UdpSocket::bind((HERE, 0)).unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let is_over = over.clone();
    let answering = thread::spawn(move || {
        let mut pong = Pong::new(flow(1), Cipher::Aes128Gcm);
        let mut peers = vec![];
        while !is_over.load(Ordering::Relaxed) {
            peers.extend(pong.answer(&mut there, WAIT).unwrap());
        }
        peers
    });
    other.send_to(&[2; 1452], at.address).unwrap();
    let mut ping = Ping::new(flow(1), Cipher::Aes128Gcm);
    let mut ask = |peer, most| {
        ping.ask(&mut here, peer, 1452, &[1232, 8952], most)
            .unwrap()
    };
    let nobody = other.local_addr().unwrap();
    assert_eq!(ask(nobody, Duration::from_millis(150)), None);
    let answered = ask(there_at.address, Duration::from_secs(5)).unwrap();
    assert!(answered.rtt < Duration::from_secs(5), "{answered:?}");
    assert_eq!(answered.datagram_bytes, 8952);
    over.store(true, Ordering::Relaxed);
    let peers = answering.join().unwrap();
    assert!(peers.iter().all(|peer| *peer == at.address), "{peers:?}");
    let mut longest = [0; 9000];
    let asked = [1232, 8952, 1452].map(|_| other.recv(&mut longest).unwrap());
    assert_eq!(asked, [1232, 8952, 1452]);
}

/// Somebody else sends to both ports all the time, and the peer goes away.
#[test]
fn others_end_nothing_and_a_peer_that_is_gone_is_named() {
    let spec = Spec {
        silence_ns: 300_000_000,
        ..Spec::default()
    };
    let (here, at) = socket();
    let gone = UdpSocket::bind((HERE, 0)).unwrap();
    let peer = gone.local_addr().unwrap();
    let mut sender = SendEnd::new(here, &spec, flow(1), Some(peer), RTT).unwrap();
    let (object, offset, bytes) = (0, 0, 1 << 20);
    sender.send(Extent {
        object,
        offset,
        bytes,
    });
    let other = UdpSocket::bind((HERE, 0)).unwrap();
    let failed = loop {
        other.send_to(&[3; 60], at.address).unwrap();
        if let Err(failed) = sender.step(&mut Pattern, WAIT) {
            break failed.to_string();
        }
    };
    let expected = format!("nothing has arrived from {peer} for 0 s");
    assert!(failed.starts_with(&expected), "{failed}");
}

/// A disk that stands for longer than silence may last: an end that stood does not take the other for gone, and the other
/// goes on while it is told that the first one lives.
#[test]
fn a_sink_that_stands_still_is_no_dead_path() {
    struct Standing(Option<Duration>, u64);
    impl Sink for Standing {
        fn write(&mut self, _: usize, writes: &[Write<'_>]) {
            self.0.take().into_iter().for_each(thread::sleep);
            self.1 += writes
                .iter()
                .map(|write| write.bytes.len() as u64)
                .sum::<u64>();
        }
    }
    const BYTES: u64 = 4 << 20;
    let spec = Spec {
        silence_ns: 300_000_000,
        ..Spec::default()
    };
    let moved = |is_told: bool| {
        let ((here, _), (there, there_at)) = (socket(), socket());
        let mut receiver = RecvEnd::new(there, &spec, flow(1), None, RTT).unwrap();
        let mut sender = SendEnd::new(here, &spec, flow(1), Some(there_at.address), RTT).unwrap();
        let receiving = thread::spawn(move || {
            let mut sink = Standing(Some(Duration::from_millis(900)), 0);
            receiver.expect_data(true);
            while sink.1 < BYTES && receiver.step(&mut sink, WAIT).is_ok() {}
            receiver.close(CloseCode(1));
            let _ = receiver.step(&mut sink, WAIT);
            sink.1
        });
        let (object, offset, bytes) = (0, 0, BYTES);
        sender.send(Extent {
            object,
            offset,
            bytes,
        });
        let failed = loop {
            match sender.step(&mut Pattern, WAIT) {
                Ok(()) if is_told => sender.peer_is_alive(),
                Ok(()) => {}
                Err(error) => break error,
            }
        };
        let arrived = match &failed {
            StepError::Closed(CloseCode(1)) => receiving.join().unwrap(),
            _ => 0,
        };
        (arrived, failed)
    };
    let (arrived, failed) = moved(true);
    assert_eq!(arrived, BYTES, "{failed}");
    let (_, failed) = moved(false);
    assert!(matches!(failed, StepError::Silent { .. }), "{failed}");
}

/// From IPv4 to both families, as the mover's ends are: the field of a batch arrives with each of its datagrams.
#[test]
fn the_ecn_field_arrives_as_it_left() {
    let (here, _) = socket();
    let both: IpAddr = std::net::Ipv6Addr::UNSPECIFIED.into();
    for address in [HERE, both] {
        let (mut there, at) = match Socket::bind(address, 50_000..=51_000, 9) {
            Ok(bound) => bound,
            Err(why) if address == both => return eprintln!("skipped: IPv6: {why}"),
            Err(why) => panic!("{why}"),
        };
        for (ecn, length) in [(Ecn::Capable, 1200), (Ecn::NotCapable, 3000)] {
            let to = (HERE, at.address.port()).into();
            assert!(here.send(to, ecn, &vec![7; length], 1000).unwrap());
            let mut arrived = vec![];
            for _ in 0..length.div_ceil(1000) {
                if arrived.len() == length.div_ceil(1000) {
                    break;
                }
                there.wait(Duration::from_secs(5)).unwrap();
                there.receive(|_, ecn, _| arrived.push(ecn)).unwrap();
            }
            assert_eq!(arrived, vec![ecn; length.div_ceil(1000)], "{address}");
        }
    }
}

#[test]
fn ports_that_are_taken_are_passed_over_and_none_is_named() {
    let (_first, bound) = Socket::bind(HERE, 50_990..=51_000, 7).unwrap();
    let port = bound.address.port();
    let (_second, other) = Socket::bind(HERE, 50_990..=51_000, 7).unwrap();
    assert_ne!(other.address.port(), port);
    let failed = Socket::bind(HERE, port..=port, 0).err().unwrap();
    let expected = format!("no port from {port} to {port} is free: give other ports");
    assert_eq!(failed.to_string(), expected);
}

/// Two flows, and the other end of the second is never heard, as where a firewall blocks its port: the first brings all.
#[test]
fn a_flow_whose_other_end_was_not_heard_gets_nothing_to_send() {
    let (spec, (here, at)) = (Spec::default(), socket());
    let (there, _) = socket();
    let (unheard, _) = socket();
    let known = SendEnd::new(there, &spec, flow(1), Some(at.address), RTT).unwrap();
    let unknown = SendEnd::new(unheard, &spec, flow(3), None, RTT).unwrap();
    let mut sender = SendFlows::new(vec![unknown, known]);
    let mut receiver = RecvEnd::new(here, &spec, flow(1), None, RTT).unwrap();
    let bytes = 3_000_000;
    sender.send(Extent {
        object: 0,
        offset: 0,
        bytes,
    });
    let mut sink = Checked::default();
    receiver.expect_data(true);
    let begun = std::time::Instant::now();
    while sink.bytes < bytes {
        sender.step(&mut Pattern, Duration::ZERO).unwrap();
        receiver.step(&mut sink, Duration::ZERO).unwrap();
        assert!(begun.elapsed() < Duration::from_secs(5), "{}", sink.bytes);
    }
}

/// Two flows, and nothing comes back from the port of the second, as where a firewall blocks it: the first brings all, also
/// what the second was given, in a fraction of the time that silence may last.
#[test]
fn a_flow_that_is_silent_beside_others_leaves_them_its_work() {
    let spec = Spec {
        silence_ns: 2_000_000_000,
        ..Spec::default()
    };
    let ((here, at), (there, _), (other, _)) = (socket(), socket(), socket());
    let blocked = UdpSocket::bind((HERE, 0)).unwrap();
    let known = SendEnd::new(there, &spec, flow(1), Some(at.address), RTT).unwrap();
    let silent = blocked.local_addr().unwrap();
    let silent = SendEnd::new(other, &spec, flow(3), Some(silent), RTT).unwrap();
    let mut sender = SendFlows::new(vec![silent, known]);
    let mut receiver = RecvEnd::new(here, &spec, flow(1), None, RTT).unwrap();
    let bytes = 3_000_000;
    sender.send(Extent {
        object: 0,
        offset: 0,
        bytes,
    });
    let mut sink = Checked::default();
    let begun = std::time::Instant::now();
    while sink.bytes < bytes || !sender.is_done() {
        sender.step(&mut Pattern, Duration::ZERO).unwrap();
        receiver.step(&mut sink, Duration::ZERO).unwrap();
        assert!(begun.elapsed() < Duration::from_secs(5), "{}", sink.bytes);
    }
    assert_eq!((sink.bytes, sender.given_up()), (bytes, 1));
    assert_eq!(sender.lowest(), None);
    drop(blocked);
}

fn silent_within_a_second() -> Spec {
    Spec {
        silence_ns: 1_000_000_000,
        ..Spec::default()
    }
}

fn megabytes(object: u32) -> Extent {
    Extent {
        object,
        offset: 0,
        bytes: 3_000_000,
    }
}

/// Two ends that send to a port from which nothing comes back.
fn unanswered(gone: &UdpSocket) -> [SendEnd; 2] {
    let (spec, peer) = (silent_within_a_second(), gone.local_addr().unwrap());
    [1, 3].map(|transfer| {
        let end = SendEnd::new(socket().0, &spec, flow(transfer), Some(peer), RTT);
        end.unwrap()
    })
}

/// They say that the other end is silent, and none was given up before.
fn are_silent_together(mut sender: SendFlows) {
    let begun = std::time::Instant::now();
    let failed = loop {
        assert!(begun.elapsed().as_secs() < 30, "silence is not told");
        if let Err(failed) = sender.step(&mut Pattern, WAIT) {
            break failed;
        }
    };
    assert!(matches!(failed, StepError::Silent { .. }), "{failed}");
    assert_eq!(sender.given_up(), 0);
}

/// A path that is silent as a whole is no reason to give up flows one by one.
#[test]
fn when_all_flows_are_silent_none_is_given_up() {
    let gone = UdpSocket::bind((HERE, 0)).unwrap();
    let mut sender = SendFlows::new(unanswered(&gone).into());
    sender.send(megabytes(0));
    are_silent_together(sender);
}

/// That one began to send after another does not mean that it was answered.
#[test]
fn a_flow_that_began_later_does_not_speak() {
    let gone = UdpSocket::bind((HERE, 0)).unwrap();
    let [mut first, second] = unanswered(&gone);
    first.send(megabytes(0));
    let begun = std::time::Instant::now();
    while begun.elapsed() < Duration::from_millis(400) {
        first.step(&mut Pattern, WAIT).unwrap();
    }
    let mut sender = SendFlows::new(vec![first, second]);
    sender.send(megabytes(1));
    are_silent_together(sender);
}

/// While the source stands for one flow, no other reads what its other end says: that is no silence.
#[test]
fn a_source_that_stands_still_for_one_flow_ends_no_other() {
    struct Standing(Option<Duration>);
    impl Source for Standing {
        fn read(&mut self, run: &Run, into: &mut [u8]) {
            // Both flows have bytes on their way by then.
            if run.offset >= 2_000_000 {
                self.0.take().into_iter().for_each(thread::sleep);
            }
            Pattern.read(run, into);
        }
    }
    let spec = silent_within_a_second();
    let mut receivers = Vec::new();
    let flows = [1, 3].map(|transfer| {
        let ((here, _), (there, there_at)) = (socket(), socket());
        receivers.push(RecvEnd::new(there, &spec, flow(transfer), None, RTT).unwrap());
        SendEnd::new(here, &spec, flow(transfer), Some(there_at.address), RTT).unwrap()
    });
    let mut sender = SendFlows::new(flows.into());
    let bytes = 6_000_000;
    sender.send(Extent {
        object: 0,
        offset: 0,
        bytes,
    });
    let (mut source, mut sink) = (
        Standing(Some(Duration::from_millis(700))),
        Checked::default(),
    );
    while !sender.is_done() {
        sender.step(&mut source, Duration::ZERO).unwrap();
        for receiver in &mut receivers {
            receiver.step(&mut sink, Duration::ZERO).unwrap();
        }
    }
    assert_eq!(source.0, None);
    assert_eq!((sink.bytes, sender.given_up()), (bytes, 0));
}
