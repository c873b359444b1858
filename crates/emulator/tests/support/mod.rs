// SPDX-License-Identifier: MIT OR Apache-2.0
//! What tests with the real kernel share: networks that are up while a test works, traffic over them
//! that is compared byte by byte, and the kernel's counters.
#![allow(unsafe_code)] // setsockopt and getsockopt of options which no crate wraps.
#![allow(dead_code)] // Each test file uses some of it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::process;
use std::thread;
use std::time::Duration;

use fatpath_emulator::{ForwardOptions, Namespace, Network, Stats, Topology};

pub const PATIENCE: Duration = Duration::from_secs(20);

/// Whether the tests can make namespaces here.
pub fn can_run(test: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        println!("skipped: {test}: needs root");
    }
    is_root
}

/// A prefix for namespaces that no other test or process uses.
pub fn run_name(test: &str) -> String {
    format!("fp-{test}-{}", process::id())
}

/// Brings `topology` up, forwards while `work` runs, and takes it down.
pub fn with_network<T>(topology: &Topology, work: impl FnOnce(&Network) -> T) -> (T, Stats) {
    with_network_then(topology, work, |_, result| result)
}

/// The same; `then` looks at the hosts when nothing is forwarded any more.
pub fn with_network_then<T, U>(
    topology: &Topology,
    work: impl FnOnce(&Network) -> T,
    then: impl FnOnce(&Network, T) -> U,
) -> (U, Stats) {
    let network = Network::up(topology).unwrap();
    let forwarded = network.forward_while(ForwardOptions::default(), |_| work(&network));
    let (result, stats) = forwarded.unwrap();
    (then(&network, result), stats)
}

/// UDP segmentation offload: one `send` makes a super-packet of segments this long.
pub fn set_segment_bytes(socket: &UdpSocket, segment_bytes: i32) -> io::Result<()> {
    const UDP_SEGMENT: i32 = 103;
    set_option(socket, libc::SOL_UDP, UDP_SEGMENT, segment_bytes)
}

/// Sets a socket option that is an int.
pub fn set_option(socket: &UdpSocket, level: i32, option: i32, value: i32) -> io::Result<()> {
    // SAFETY: the option is an int, which outlives the call.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    if status == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The byte at `offset` of what the tests send: no power of two is a period of it.
pub fn pattern(offset: usize) -> u8 {
    (offset % 251) as u8
}

pub fn transfer_tcp(client: &Namespace, server: &Namespace, address: SocketAddr, len_bytes: usize) {
    let listener = server.run(|| TcpListener::bind(address)).unwrap().unwrap();
    let sent: Vec<u8> = (0..len_bytes).map(pattern).collect();
    let mut received = vec![];
    thread::scope(|scope| {
        let mut sender = client.run(|| TcpStream::connect(address)).unwrap().unwrap();
        sender.set_write_timeout(Some(PATIENCE)).unwrap();
        let sending = scope.spawn(move || sender.write_all(&sent));
        let (mut receiver, _) = listener.accept().unwrap();
        receiver.set_read_timeout(Some(PATIENCE)).unwrap();
        receiver.read_to_end(&mut received).unwrap();
        sending.join().unwrap().unwrap();
    });
    assert_eq!(received.len(), len_bytes);
    assert!(
        received
            .iter()
            .enumerate()
            .all(|(offset, byte)| *byte == pattern(offset))
    );
}

/// A sender at any port of the client, and a receiver at `address` of the server that waits half a
/// second for what comes and has room for all of it.
pub fn udp_pair(
    client: &Namespace,
    server: &Namespace,
    address: SocketAddr,
) -> (UdpSocket, UdpSocket) {
    let receiver = server.run(|| UdpSocket::bind(address)).unwrap().unwrap();
    set_option(&receiver, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, 16 << 20).unwrap();
    receiver
        .set_read_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    let sender = client
        .run(|| UdpSocket::bind(any_port(address)))
        .unwrap()
        .unwrap();
    (sender, receiver)
}

/// Sends 100 super-packets of 20 datagrams; each datagram that arrives must be what was sent. Returns
/// how many do. None is dropped for want of room at the receiver.
pub fn transfer_udp(client: &Namespace, server: &Namespace, address: SocketAddr) -> usize {
    let segment: Vec<u8> = (0..1000).map(pattern).collect();
    let (sender, receiver) = udp_pair(client, server, address);
    set_segment_bytes(&sender, 1000).unwrap();
    for _ in 0..100 {
        sender.send_to(&segment.repeat(20), address).unwrap();
        thread::sleep(Duration::from_millis(2));
    }
    receive_all(&receiver, &segment)
}

/// Receives until nothing comes any more; everything must be `expected`.
pub fn receive_all(receiver: &UdpSocket, expected: &[u8]) -> usize {
    let mut datagram = [0; 2000];
    let mut received = 0;
    loop {
        match receiver.recv(&mut datagram) {
            Ok(len_bytes) => assert_eq!(&datagram[..len_bytes], expected),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return received,
            Err(error) => panic!("{error}"),
        }
        received += 1;
    }
}

/// The address to send from to `address`.
pub fn any_port(address: SocketAddr) -> &'static str {
    match address.is_ipv4() {
        true => "0.0.0.0:0",
        false => "[::]:0",
    }
}

/// Sum of counters of a host, named as `nstat` names them.
pub fn counters<const N: usize>(host: &Namespace, names: [&str; N]) -> [u64; N] {
    let all = host.run(all_counters).unwrap();
    let value = |name: &str| {
        all.iter()
            .find(|counter| counter.0 == name)
            .map(|counter| counter.1)
    };
    names.map(|name| value(name).unwrap_or_else(|| panic!("no counter {name}")))
}

/// All counters of the namespace of the calling thread.
fn all_counters() -> Vec<(String, u64)> {
    let v4 = std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
    let v6 = std::fs::read_to_string("/proc/thread-self/net/snmp6").unwrap();
    let mut all = vec![];
    // Two lines each, of names and of values, after the protocol.
    let lines: Vec<Vec<&str>> = v4.lines().map(|line| line.split(' ').collect()).collect();
    for pair in lines.chunks_exact(2) {
        let protocol = pair[0][0].trim_end_matches(':');
        let named = pair[0][1..].iter().zip(&pair[1][1..]);
        // Tcp's MaxConn is -1; no test asks for it.
        all.extend(
            named.filter_map(|(name, value)| {
                Some((format!("{protocol}{name}"), value.parse().ok()?))
            }),
        );
    }
    for line in v6.lines() {
        let (name, value) = line.split_once(char::is_whitespace).unwrap();
        all.push((name.to_owned(), value.trim().parse().unwrap()));
    }
    all
}
