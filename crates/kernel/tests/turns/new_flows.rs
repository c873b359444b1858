// SPDX-License-Identifier: MIT OR Apache-2.0
//! A flow that has carried no data has no socket storage yet: it is tuned, listed, told of at its end, and follows a new
//! policy like any other.
#![allow(unsafe_code)] // connect(AF_UNSPEC)

use crate::support::ring::until;
use crate::support::{Loaded, machine, turn};
use fatpath_api::{SettingOutcome, TunedFlow};
use fatpath_kernel::Event;
use fatpath_policy::{Classifier, parse};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use rustix::net::sockopt::socket_cookie;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::{Domain, Socket, Type};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

/// Of this test alone.
const HOST: Ipv4Addr = Ipv4Addr::new(127, 0, 24, 1);

/// More ends than there are places: FP_NEW_FLOWS of abi.h.
const CONNECTIONS: usize = 1100;

const LONG: Duration = Duration::from_secs(60);

fn publish(loaded: &Loaded, settings: &str) {
    let text = format!("[[rule]]\nname = 'new'\ndestination = ['{HOST}']\n{settings}\n");
    let policy = parse(&text, None).unwrap();
    let tables = Classifier::build(&policy);
    let published = loaded.kernel.publish(&policy, &tables).unwrap();
    assert_eq!(published.problems, Vec::<String>::new());
}

fn client() -> Socket {
    let client = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    client.bind(&SocketAddr::from((HOST, 0)).into()).unwrap();
    client
}

fn connection(listener: &TcpListener) -> (Socket, TcpStream) {
    let client = client();
    let address = listener.local_addr().unwrap();
    client.connect(&address.into()).unwrap();
    (client, listener.accept().unwrap().0)
}

fn is_ours(flow: &TunedFlow) -> bool {
    flow.flow.local.ip() == HOST
}

/// The place of a new flow: the map, where in it, and the struct fp_new_flow of abi.h, which begins with owner and seen_ns.
fn place_of(loaded: &Loaded, cookie: u64) -> (MapHandle, [u8; 4], Vec<u8>) {
    let places = loaded.map("fp_new_flows");
    let place = (cookie % u64::from(places.max_entries())) as u32;
    let key = place.to_ne_bytes();
    let bytes = places.lookup(&key, MapFlags::ANY).unwrap().unwrap();
    (places, key, bytes)
}

fn is_new(loaded: &Loaded, socket: &impl AsFd) -> bool {
    let cookie = socket_cookie(socket).unwrap();
    let (_, _, bytes) = place_of(loaded, cookie);
    bytes.starts_with(&cookie.to_ne_bytes())
}

/// The kernel doubles it.
fn send_buffers(ends: &(Socket, TcpStream)) -> [usize; 2] {
    let passive = socket2::SockRef::from(&ends.1);
    [&ends.0, &*passive].map(|end| end.send_buffer_size().unwrap() / 2)
}

/// Of its send buffer.
fn outcomes(flows: &[TunedFlow]) -> Vec<SettingOutcome> {
    let ours = flows.iter().filter(|flow| is_ours(flow));
    let settings = ours.flat_map(|flow| &flow.settings);
    let buffer = settings.filter(|it| it.setting == "send_buffer_bytes");
    buffer.map(|it| it.outcome).collect()
}

fn allow_descriptors(count: u64) {
    let limit = getrlimit(Resource::Nofile);
    let current = limit.current.map(|now| now.max(count));
    let maximum = limit.maximum.map(|most| most.max(count));
    setrlimit(Resource::Nofile, Rlimit { current, maximum }).unwrap();
}

#[test]
fn more_than_there_are_places_for_are_all_listed_and_told_of_at_their_end() {
    let Some(_machine) = machine() else { return };
    // Four ends of as many connections, and what the test has besides.
    allow_descriptors(4 * CONNECTIONS as u64 + 1000);
    let loaded = Loaded::at("new-many");
    publish(&loaded, "send_buffer = 30000\nreceive_buffer = 40000");
    let listener = TcpListener::bind((HOST, 0)).unwrap();
    let ends: Vec<_> = (0..CONNECTIONS).map(|_| connection(&listener)).collect();
    assert!(ends.iter().all(|ends| send_buffers(ends) == [30_000; 2]));
    for listed in ["first", "again"] {
        let flows = loaded.kernel.flows().unwrap();
        assert_eq!(
            outcomes(&flows),
            [SettingOutcome::Given; 2 * CONNECTIONS],
            "{listed}"
        );
    }
    // Some end with a place of their own, and some with storage.
    let more: Vec<_> = (0..CONNECTIONS).map(|_| connection(&listener)).collect();
    drop((ends, more));
    let (mut told, end) = (0, Instant::now() + LONG);
    let mut events = loaded.kernel.events().unwrap();
    let told_of = std::cell::Cell::new(0);
    let stop = || told_of.get() == 4 * CONNECTIONS || Instant::now() > end;
    let note = |event| {
        if let Event::FlowEnd(flow) = event
            && is_ours(&flow)
        {
            assert_eq!(flow.settings.len(), 2);
            told += 1;
            told_of.set(told);
        }
    };
    events
        .follow(until(Duration::from_millis(10), stop), note)
        .unwrap();
    let counts = loaded.kernel.counts().unwrap();
    assert_eq!(told_of.get(), 4 * CONNECTIONS, "{counts:?}");
    assert_eq!((counts.events_lost, counts.flows_without_storage), (0, 0));
}

#[test]
fn they_follow_a_new_policy_and_go_on_when_they_carry_data() {
    let Some(loaded) = turn() else { return };
    publish(
        &loaded,
        "send_buffer = 30000\ncongestion_control = 'fp_reno'",
    );
    let listener = TcpListener::bind((HOST, 0)).unwrap();
    let mut ends = connection(&listener);
    assert_eq!(send_buffers(&ends), [30_000; 2]);
    publish(
        &loaded,
        "send_buffer = 50000\ncongestion_control = 'fp_reno'",
    );
    assert_eq!(send_buffers(&ends), [50_000; 2]);

    let mut sending = connection(&listener);
    sending.0.write_all(b"data").unwrap();
    sending.1.read_exact(&mut [0; 4]).unwrap();
    publish(
        &loaded,
        "send_buffer = 30000\ncongestion_control = 'fp_reno'",
    );
    ends.1.write_all(b"data").unwrap();
    assert_eq!(send_buffers(&ends), [30_000; 2]);
    assert_eq!(send_buffers(&sending), [30_000; 2]);
    let flows = loaded.kernel.flows().unwrap();
    assert_eq!(outcomes(&flows), [SettingOutcome::Given; 4]);
}

#[test]
fn they_have_storage_when_a_law_sends_their_data_or_when_they_are_listed() {
    let Some(loaded) = turn() else { return };
    publish(&loaded, "congestion_control = 'fp_reno'");
    let listener = TcpListener::bind((HOST, 0)).unwrap();
    let (mut client, mut accepted) = connection(&listener);
    assert!(is_new(&loaded, &client) && is_new(&loaded, &accepted));
    client.write_all(b"data").unwrap();
    accepted.read_exact(&mut [0; 4]).unwrap();
    assert!(!is_new(&loaded, &client) && is_new(&loaded, &accepted));
    let flows = loaded.kernel.flows().unwrap();
    assert_eq!(flows.iter().filter(|flow| is_ours(flow)).count(), 2);
    assert!(!is_new(&loaded, &accepted));
}

/// What is pinned may be another build's.
#[test]
fn flows_are_listed_where_no_flow_is_without_storage() {
    let Some(_machine) = machine() else { return };
    let loaded = Loaded::at("new-none");
    publish(&loaded, "send_buffer = 30000\noverride_application = true");
    let listener = TcpListener::bind((HOST, 0)).unwrap();
    let ends = connection(&listener);
    assert!(!is_new(&loaded, &ends.0) && !is_new(&loaded, &ends.1));
    std::fs::remove_file(loaded.pin_dir.join("fp_new_flows")).unwrap();
    let flows = loaded.kernel.flows().unwrap();
    assert_eq!(flows.iter().filter(|flow| is_ours(flow)).count(), 2);
}

/// Ends the connection; the socket may make another one.
fn disconnect(socket: &impl AsRawFd) {
    // SAFETY: all bytes 0 are an address, of AF_UNSPEC.
    let nobody: libc::sockaddr = unsafe { std::mem::zeroed() };
    let length = size_of::<libc::sockaddr>() as u32;
    // SAFETY: an open socket, and an address of that length.
    let done = unsafe { libc::connect(socket.as_raw_fd(), &nobody, length) };
    assert_eq!(done, 0);
}

#[test]
fn what_a_socket_was_given_is_not_taken_for_its_programs_own_when_it_connects_again() {
    let Some(loaded) = turn() else { return };
    let listener = TcpListener::bind((HOST, 0)).unwrap();
    let client = client();
    for (bytes, more) in [
        (30_000, ""),
        (50_000, ""),
        (40_000, "divide = true"),
        (45_000, ""),
    ] {
        publish(&loaded, &format!("send_buffer = {bytes}\n{more}"));
        client
            .connect(&listener.local_addr().unwrap().into())
            .unwrap();
        let accepted = listener.accept().unwrap();
        assert_eq!(client.send_buffer_size().unwrap() / 2, bytes);
        disconnect(&client);
        drop(accepted);
    }
}

/// A listener that answers no SYN any more, and the connections that its queue is full of.
fn deaf_listener() -> (Socket, Vec<Socket>) {
    let listener = client();
    listener.listen(0).unwrap();
    let queued = (0..3).map(|_| begin_to_connect(client(), &listener));
    let queued = queued.collect();
    (listener, queued)
}

fn begin_to_connect(client: Socket, to: &Socket) -> Socket {
    client.set_nonblocking(true).unwrap();
    let _ = client.connect(&to.local_addr().unwrap());
    client
}

#[test]
fn a_socket_that_connects_again_has_its_place_while_its_syn_waits() {
    let Some(loaded) = turn() else { return };
    publish(&loaded, "receive_buffer = 40000");
    let listener = TcpListener::bind((HOST, 0)).unwrap();
    let (client, _accepted) = connection(&listener);
    assert!(is_new(&loaded, &client));
    let cookie = socket_cookie(&client).unwrap();
    disconnect(&client);
    // As if that had been long ago.
    let (places, key, mut bytes) = place_of(&loaded, cookie);
    bytes[8..16].fill(0);
    places.update(&key, &bytes, MapFlags::ANY).unwrap();

    let (deaf, _queued) = deaf_listener();
    let client = begin_to_connect(client, &deaf);
    assert!(client.peer_addr().is_err(), "its SYN waits");
    assert!(is_new(&loaded, &client));
    let (_, _, bytes) = place_of(&loaded, cookie);
    assert_ne!(bytes[8..16], [0; 8], "another flow may take it");
}
