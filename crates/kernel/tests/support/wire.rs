// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two hosts `a` and `b` (namespaces) on one wire (veth), and the frames that reach `b`.

use fatpath_emulator::{Namespace, remove_namespace};
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use socket2::{Domain, Protocol, Socket, Type};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

pub const A4: &str = "10.77.0.1";
pub const B4: &str = "10.77.0.2";
pub const A6: &str = "fd77::1";
pub const B6: &str = "fd77::2";

/// ETH_P_ALL in network byte order, as socket(2) wants it.
const ALL: i32 = (0x0003_u16.to_be()) as i32;

pub struct Wire {
    pub a: Namespace,
    pub b: Namespace,
}

impl Wire {
    pub fn lay(name: &str) -> Wire {
        let name = format!("fpt-{name}-{}", std::process::id());
        let wire = Wire {
            a: Namespace::create(&format!("{name}-a")).unwrap(),
            b: Namespace::create(&format!("{name}-b")).unwrap(),
        };
        let b = wire.b.name().to_owned();
        wire.ip(
            &wire.a,
            &format!("link add wa type veth peer name wb netns {b}"),
        );
        for (host, device, v4, v6) in [(&wire.a, "wa", A4, A6), (&wire.b, "wb", B4, B6)] {
            wire.ip(host, &format!("link set {device} addrgenmode none"));
            wire.ip(host, &format!("addr add {v4}/24 dev {device}"));
            wire.ip(host, &format!("addr add {v6}/64 dev {device} nodad"));
            wire.ip(host, &format!("link set {device} up"));
        }
        wire
    }

    pub fn ip(&self, host: &Namespace, arguments: &str) -> String {
        run(host, &format!("ip {arguments}"))
    }

    /// Neither TSO nor checksum offload: the wire carries whole checksums and small segments.
    pub fn without_offload(&self) {
        run(&self.a, "ethtool -K wa tso off gso off tx off");
    }

    /// The namespace itself, as an open file.
    pub fn file(host: &Namespace) -> File {
        File::open(format!("/run/netns/{}", host.name())).unwrap()
    }

    pub fn index(&self, host: &Namespace, device: &str) -> u32 {
        let shown = self.ip(host, &format!("-o link show dev {device}"));
        shown.split(':').next().unwrap().trim().parse().unwrap()
    }

    /// A connection from `a` to an address of `b`: both ends.
    pub fn connection(&self, to: &str) -> (TcpStream, TcpStream) {
        let to: IpAddr = to.parse().unwrap();
        let listener = self.b.run(|| TcpListener::bind((to, 0)).unwrap()).unwrap();
        let at = listener.local_addr().unwrap();
        let sender = self.a.run(|| TcpStream::connect(at).unwrap()).unwrap();
        (sender, listener.accept().unwrap().0)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        for host in [&self.a, &self.b] {
            let _ = remove_namespace(host.name());
        }
    }
}

/// Both ends negotiate ECN, as RFC 3168 has it.
pub fn negotiate_ecn(host: &Namespace) {
    let set = || std::fs::write("/proc/sys/net/ipv4/tcp_ecn", "1").unwrap();
    host.run(set).unwrap();
}

pub fn try_run(host: &Namespace, command: &str) -> Output {
    // No shell: that of a small guest has an `ip` of its own.
    let quoted = command.split('\'').enumerate();
    let words = quoted.flat_map(|(n, text)| match n % 2 {
        0 => text.split_whitespace().collect(),
        _ => vec![text],
    });
    let words: Vec<&str> = words.collect();
    host.command(words[0]).args(&words[1..]).output().unwrap()
}

pub fn run(host: &Namespace, command: &str) -> String {
    let output = try_run(host, command);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// Sends `bytes` that do not repeat from one end to the other, and checks what arrives. Both ends
/// stay open.
pub fn transfer(sender: &TcpStream, receiver: &TcpStream, bytes: usize) {
    let data: Vec<u8> = (0..bytes as u64).map(|i| ((i * i) >> 5) as u8).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut sender = sender;
            sender.write_all(&data).unwrap();
        });
        let mut got = vec![0; bytes];
        let mut receiver = receiver;
        receiver.read_exact(&mut got).unwrap();
        assert!(got == data, "what arrives is what was sent");
    });
}

/// A TCP segment as it passed.
#[derive(Clone, Debug)]
pub struct Segment {
    pub from: SocketAddr,
    pub to: SocketAddr,
    /// The two bytes after the acknowledgement number.
    pub flags: u16,
    pub sequence: u32,
    pub acknowledgement: u32,
    pub dscp: u8,
    /// 2: ECT(0); 3: CE.
    pub ecn: u8,
    pub payload_bytes: usize,
    pub tcp_checksum_is_good: bool,
    pub ip_checksum_is_good: bool,
}

pub const FIN: u16 = 1;
pub const SYN: u16 = 2;
pub const RST: u16 = 4;

/// Everything that passes a host, until it is asked for.
pub struct Capture {
    ended: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Segment>>,
}

impl Capture {
    pub fn start(host: &Namespace) -> Capture {
        let open = || Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(ALL))).unwrap();
        let mut socket = host.run(open).unwrap();
        // Beyond rmem_max: a frame that is not seen here counts as not sent.
        set_socket_recv_buffer_size_force(&socket, 1 << 28).unwrap();
        let tick = Some(Duration::from_millis(50));
        socket.set_read_timeout(tick).unwrap();
        let ended = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&ended);
        let thread = std::thread::spawn(move || {
            let mut frame = vec![0; 1 << 17];
            let mut seen = Vec::new();
            loop {
                match socket.read(&mut frame) {
                    Ok(bytes) => seen.extend(segment(&frame[..bytes])),
                    // Nothing more waits: only then is the end heeded.
                    Err(_) if asked.load(Ordering::Relaxed) => return seen,
                    Err(_) => {}
                }
            }
        });
        Capture { ended, thread }
    }

    pub fn stop(self) -> Vec<Segment> {
        self.ended.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Reads an Ethernet frame of TCP without tags, options of IPv4 or extension headers.
pub fn segment(frame: &[u8]) -> Option<Segment> {
    let ip = frame.get(14..)?;
    let word = |at: usize| Some(u16::from_be_bytes(*ip.get(at..)?.first_chunk()?));
    let (from, to, class, header, end) = match frame.get(12..14)? {
        [0x08, 0x00] if *ip.get(9)? == 6 => (
            IpAddr::from(*ip.get(12..)?.first_chunk::<4>()?),
            IpAddr::from(*ip.get(16..)?.first_chunk::<4>()?),
            ip[1],
            20,
            usize::from(word(2)?),
        ),
        [0x86, 0xdd] if *ip.get(6)? == 6 => (
            IpAddr::from(*ip.get(8..)?.first_chunk::<16>()?),
            IpAddr::from(*ip.get(24..)?.first_chunk::<16>()?),
            (word(0)? >> 4) as u8,
            40,
            40 + usize::from(word(4)?),
        ),
        _ => return None,
    };
    let tcp = ip.get(header..end)?;
    let at = |at: usize| Some(u16::from_be_bytes(*tcp.get(at..)?.first_chunk()?));
    let long = |at: usize| Some(u32::from_be_bytes(*tcp.get(at..)?.first_chunk()?));
    let flags = at(12)?;
    let addresses = match header {
        20 => sum(ip.get(12..20)?),
        _ => sum(ip.get(8..40)?),
    };
    Some(Segment {
        from: (from, at(0)?).into(),
        to: (to, at(2)?).into(),
        flags,
        sequence: long(4)?,
        acknowledgement: long(8)?,
        dscp: class >> 2,
        ecn: class & 3,
        payload_bytes: tcp.len().checked_sub(usize::from(flags >> 12) * 4)?,
        tcp_checksum_is_good: folded(addresses + 6 + tcp.len() as u64 + sum(tcp)) == 0xffff,
        ip_checksum_is_good: header == 40 || folded(sum(&ip[..20])) == 0xffff,
    })
}

/// RFC 1071.
pub fn sum(bytes: &[u8]) -> u64 {
    let pairs = bytes.chunks(2);
    pairs
        .map(|pair| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0)))
        .sum()
}

pub fn folded(mut sum: u64) -> u16 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
