// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a program meets at its own socket under a policy is what the kernel would have given it.
#![allow(unsafe_code)] // socket options of odd lengths: raw system calls

use crate::support::{Turn, turn};
use fatpath_policy::{Classifier, parse};
use socket2::{Domain, Protocol, Socket, Type};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;

const POLICY: &str = "[[rule]]\nname = 'law'\ndestination = ['127.0.14.1']\ncongestion_control = 'fp_reno'\n\
     [[rule]]\nname = 'override'\ndestination = ['127.0.14.2']\nsend_buffer = 1000000\noverride_application = true\n";

fn loaded() -> Option<Turn> {
    let loaded = turn()?;
    assert!(loaded.laws_missing.is_none(), "{:?}", loaded.laws_missing);
    let policy = parse(POLICY, None).unwrap();
    loaded
        .kernel
        .publish(&policy, &Classifier::build(&policy))
        .unwrap();
    Some(loaded)
}

/// A client's end of a connection, and its law.
fn connected(to: &str) -> (TcpStream, TcpListener) {
    let listener = TcpListener::bind((to, 0)).unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (client, listener)
}

/// `setsockopt` of SO_SNDBUF with a value of this length; the error's number.
fn set_send_buffer(socket: &impl AsRawFd, length: u32) -> Option<i32> {
    let value = 300_000i32;
    // SAFETY: an open socket, and a value at least that long.
    let answer = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_SNDBUF,
            std::ptr::from_ref(&value).cast(),
            length,
        )
    };
    (answer != 0).then(|| std::io::Error::last_os_error().raw_os_error().unwrap())
}

/// `tcpi_pacing_rate` over `tcpi_snd_cwnd` segments a `tcpi_rtt`.
fn paced_windows_per_rtt(client: &TcpStream) -> f64 {
    let mut info = [0u8; 256];
    let mut length = info.len() as u32;
    // SAFETY: an open socket, and room for as many bytes as `length` says.
    let answer = unsafe {
        libc::getsockopt(
            client.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    assert_eq!(answer, 0);
    let at = |offset: usize| {
        f64::from(u32::from_ne_bytes(
            info[offset..offset + 4].try_into().unwrap(),
        ))
    };
    // of struct tcp_info
    const SND_MSS: usize = 16;
    const RTT_US: usize = 68;
    const SND_CWND: usize = 80;
    const PACING_RATE: usize = 104;
    let bytes_per_s = u64::from_ne_bytes(info[PACING_RATE..PACING_RATE + 8].try_into().unwrap());
    bytes_per_s as f64 * at(RTT_US) / 1e6 / (at(SND_CWND) * at(SND_MSS))
}

/// net/core/sock.c: a value shorter than an int is EINVAL, before a peer is known as after.
#[test]
fn a_value_that_is_too_short_is_refused_as_by_the_kernel() {
    let Some(_loaded) = loaded() else { return };
    let (client, listener) = connected("127.0.14.2");
    for (socket, name) in [
        (client.as_raw_fd(), "client"),
        (listener.as_raw_fd(), "listener"),
    ] {
        // SAFETY: the sockets live until the end of the test.
        let socket = unsafe { std::os::fd::BorrowedFd::borrow_raw(socket) };
        assert_eq!(set_send_buffer(&socket, 4), None, "{name}");
        for length in [0, 1, 3] {
            assert_eq!(
                set_send_buffer(&socket, length),
                Some(libc::EINVAL),
                "{name}: {length}"
            );
        }
    }
}

/// TCP segmentation offload goes by the rate: without one the first flight would leave in bursts as large as it can.
#[test]
fn a_law_of_ours_leaves_a_new_flow_the_rate_that_the_kernel_has() {
    let Some(_loaded) = loaded() else { return };
    let (ours, _other) = connected("127.0.14.1");
    let windows = paced_windows_per_rtt(&ours);
    assert!((1.8..2.2).contains(&windows), "{windows}"); // tcp_pacing_ss_ratio is 200 %
}

/// The kernel hands the size from the connection to its subflows itself, and asks no program then.
#[test]
fn a_size_set_on_an_mptcp_socket_escapes_the_override() {
    let Some(loaded) = loaded() else { return };
    let mptcp = Some(Protocol::from(libc::IPPROTO_MPTCP));
    let socket = || Socket::new(Domain::IPV4, Type::STREAM, mptcp);
    let Ok(listener) = socket() else {
        println!("left out: the kernel has no MPTCP");
        return;
    };
    let any_port: SocketAddr = "127.0.14.2:0".parse().unwrap();
    listener.bind(&any_port.into()).unwrap();
    listener.listen(1).unwrap();
    let remote = listener.local_addr().unwrap();
    let client = socket().unwrap();
    client.connect(&remote).unwrap();
    let remote = remote.as_socket().unwrap();
    let has = || loaded.send_buffer_bytes(|flow| flow.flow.remote == remote);
    let tuned = has();
    assert!(tuned > Some(100_000), "a subflow is tuned: {tuned:?}");
    client.set_send_buffer_size(30_000).unwrap();
    assert_eq!(has(), Some(30_000));
}
