// SPDX-License-Identifier: MIT OR Apache-2.0
//! Both ends over loopback, and a thread that writes which stands until it may go on, as over a disk that does not answer.

use super::*;
use crate::carrier::SendEnd;
use fatpath_driver::tcp::{Listener, Role, connect};
use fatpath_driver::{self as udp, SendFlows, Socket, Source};
use fatpath_transport::{Cipher, Extent, FlowSecret, Run, Secret, Spec};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const RTT: Duration = Duration::from_millis(1);
/// The processors may be busy with other tests, which go first.
const WITHIN: Duration = Duration::from_secs(120);
const SILENCE: Duration = Duration::from_secs(1);
/// A flow of UDP has so much of window.
const WINDOW_BYTES: u64 = 1 << 20;
/// Beside the bytes of files: places, and the headers of runs.
const OVERHEAD_BYTES: u64 = WINDOW_BYTES / 4;

fn content(place: u64) -> u8 {
    (place.wrapping_mul(0x9e37_79b1) >> 7) as u8
}

struct Pattern;

impl Source for Pattern {
    fn read(&mut self, run: &Run, into: &mut [u8]) {
        for (byte, place) in into.iter_mut().zip(run.offset..) {
            *byte = content(place);
        }
    }
}

/// Checks what is written, each byte once.
#[derive(Default)]
struct Written(fatpath_tree::Ranges);

impl Written {
    fn write(&mut self, writes: &[Write<'_>]) {
        for write in writes {
            let expected = (write.offset..).map(content);
            assert!(
                write
                    .bytes
                    .iter()
                    .zip(expected)
                    .all(|(byte, right)| *byte == right)
            );
            let before = self.0.bytes();
            let bytes = write.bytes.len() as u64;
            self.0.insert(write.offset, write.offset + bytes);
            assert_eq!(self.0.bytes(), before + bytes, "written twice");
        }
    }
}

fn flows(count: usize) -> Vec<FlowSecret> {
    let mut secret = Secret::agree(&[1; 32], &[2; 32]);
    (0..count).map(|_| secret.next_flow().unwrap()).collect()
}

fn by_udp(count: usize) -> (SendEnd, RecvEnd) {
    let spec = Spec {
        window_bytes: WINDOW_BYTES,
        silence_ns: SILENCE.as_nanos() as u64,
        ..Spec::default()
    };
    let socket = || Socket::bind(HERE, 50_000..=51_000, std::process::id() as u16).unwrap();
    let (mut senders, mut receivers) = (vec![], vec![]);
    for (ours, theirs) in flows(count).into_iter().zip(flows(count)) {
        let ((here, _), (there, at)) = (socket(), socket());
        senders.push(udp::SendEnd::new(here, &spec, ours, Some(at.address), RTT).unwrap());
        receivers.push(udp::RecvEnd::new(there, &spec, theirs, None, RTT).unwrap());
    }
    let receiver = Ends::Udp(RecvFlows::new(receivers));
    (
        SendEnd::Udp(SendFlows::new(senders), None),
        RecvEnd::start(receiver, count, 1 << 20),
    )
}

fn by_tcp(most_held_bytes: u64) -> (SendEnd, RecvEnd) {
    let cipher = Cipher::Aes128Gcm;
    let listener = Listener::bind(HERE, 50_000..=51_000, std::process::id() as u16).unwrap();
    let mut listener = listener.expecting(flows(1), Role::Receives, cipher);
    let at = SocketAddr::new(HERE, listener.port().unwrap());
    let flow = flows(1).remove(0);
    let sender = thread::spawn(move || connect(at, flow, Role::Sends, cipher, WITHIN).unwrap());
    let begun = Instant::now();
    while listener.poll().unwrap() < 1 {
        assert!(begun.elapsed() < WITHIN);
    }
    let sender = tcp::SendEnd::new(vec![sender.join().unwrap()], SILENCE, None, "cubic");
    let receiver = tcp::RecvEnd::new(listener.into_connections()).holding(most_held_bytes);
    (
        SendEnd::Tcp(sender.unwrap()),
        RecvEnd::start(Ends::Tcp(receiver), 0, 1 << 20),
    )
}

fn object(bytes: u64) -> Extent {
    Extent {
        object: 1,
        offset: 0,
        bytes,
    }
}

/// The sender works until this holds.
fn send_until(sender: &mut SendEnd, mut holds: impl FnMut(&SendEnd) -> bool) {
    let begun = Instant::now();
    while !holds(sender) {
        assert!(begun.elapsed() < WITHIN, "{:?}", sender.figures());
        sender.step(&mut Pattern, Duration::from_millis(1)).unwrap();
    }
}

/// Half a window, while nobody writes: all of it is acknowledged, and nothing is sent twice.
#[test]
fn while_the_disk_stands_what_arrives_is_acknowledged() {
    let (mut sender, mut receiver) = by_udp(1);
    sender.send(object(WINDOW_BYTES / 2));
    send_until(&mut sender, |sender| sender.lowest().is_none());
    assert_eq!(sender.figures().retransmits, 0);
    let mut written = Written::default();
    while written.0.bytes() < WINDOW_BYTES / 2 {
        receiver.step(WAIT, |writes| written.write(writes)).unwrap();
    }
}

fn held(receiver: &RecvEnd) -> u64 {
    let held = receiver.shared.held_bytes.iter();
    held.map(|held| held.load(Ordering::Relaxed)).sum()
}

/// Much more than the window, while nobody writes, for longer than silence may last: the sender stops where memory ends,
/// and neither end gives up; then all arrives.
#[test]
fn what_waits_for_the_disk_is_bounded_by_the_window() {
    const BYTES: u64 = 20 * WINDOW_BYTES;
    for flows in [1, 4] {
        let (mut sender, mut receiver) = by_udp(flows);
        let most = flows as u64 * WINDOW_BYTES;
        sender.send(object(BYTES));
        let begun = Instant::now();
        send_until(&mut sender, |_| begun.elapsed() > 2 * SILENCE);
        let stood = held(&receiver);
        assert!(stood <= most + OVERHEAD_BYTES, "{stood} of {most}");
        assert!(stood >= most / 2, "{stood} of {most}");
        let mut written = Written::default();
        send_until(&mut sender, |sender| {
            receiver
                .step(Duration::ZERO, |writes| written.write(writes))
                .unwrap();
            sender.lowest().is_none() && written.0.bytes() == BYTES
        });
        assert!(held(&receiver) == 0);
    }
}

/// The same by TCP, where what the kernel holds comes on top.
#[test]
fn by_tcp_the_connections_fill_and_the_receiver_says_that_it_lives() {
    const BYTES: u64 = 120 << 20;
    let (mut sender, mut receiver) = by_tcp(WINDOW_BYTES);
    sender.send(object(BYTES));
    let begun = Instant::now();
    send_until(&mut sender, |_| begun.elapsed() > 2 * SILENCE);
    let unsent = sender.unsent_bytes();
    assert!(unsent > BYTES / 2, "{unsent}");
    let stood = held(&receiver);
    let range = WINDOW_BYTES..WINDOW_BYTES + OVERHEAD_BYTES;
    assert!(range.contains(&stood), "{stood}");
    let mut written = Written::default();
    send_until(&mut sender, |_| {
        receiver
            .step(Duration::ZERO, |writes| written.write(writes))
            .unwrap();
        written.0.bytes() == BYTES
    });
}

/// What arrived before the end is not lost with it.
#[test]
fn at_the_end_what_has_arrived_is_written() {
    let (mut sender, receiver) = by_udp(1);
    sender.send(object(WINDOW_BYTES / 2));
    send_until(&mut sender, |sender| sender.lowest().is_none());
    let mut written = Written::default();
    receiver.finish(|writes| written.write(writes));
    assert_eq!(written.0.bytes(), WINDOW_BYTES / 2);
}

/// Where much arrived at once before, and then little each time, that takes little memory.
#[test]
fn what_arrives_in_little_takes_little() {
    let much = vec![0; 2 << 20];
    let write = |bytes| Write {
        object: 1,
        offset: 0,
        bytes,
    };
    let mut chunk = Chunk::default();
    chunk.fill(0, &[write(&much)]);
    chunk.fill(0, &[write(&much[..1000])]);
    assert!(
        chunk.bytes.capacity() < 10_000,
        "{}",
        chunk.bytes.capacity()
    );
    chunk.fill(0, &vec![write(&much[..1]); 1000]);
    chunk.fill(0, &[write(&much[..1])]);
    assert!(chunk.places.capacity() < 100, "{}", chunk.places.capacity());
}

#[test]
fn what_follows_one_another_is_one_write() {
    let write = |object, offset, bytes| Write {
        object,
        offset,
        bytes,
    };
    let mut chunk = Chunk::default();
    let writes = [
        write(1, 0, &b"ab"[..]),
        write(1, 2, b"c"),
        write(2, 3, b"d"),
        write(2, 5, b"e"),
        write(2, u64::MAX, b"fg"),
        write(2, 1, b"h"),
    ];
    for _ in 0..2 {
        chunk.fill(0, &writes);
        let expected = [
            write(1, 0, &b"abc"[..]),
            write(2, 3, b"d"),
            write(2, 5, b"e"),
            write(2, u64::MAX, b"fg"),
            write(2, 1, b"h"),
        ];
        assert_eq!(chunk.writes(), expected);
    }
}
