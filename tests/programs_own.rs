// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a program chose for its connection by setsockopt: it wins, unless the rule overrides, and is there again
//! when the rule no longer is.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on
#![allow(unsafe_code)] // options that no crate has: raw system calls

mod support;

use serde_json::{Value, json};
use socket2::{Domain, SockRef, Socket, Type};
use std::ffi::c_int;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use support::host::Host;
use support::lent::Lent;
use support::rude::law;
use support::{alone, setting};

const PACING: (c_int, c_int) = (libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE);
const LOWAT: (c_int, c_int) = (libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT);
/// TCP_RTO_MIN_US and TCP_DELACK_MAX_US of linux/tcp.h, Linux 6.15.
const RTO_MIN: (c_int, c_int) = (libc::IPPROTO_TCP, 45);
const DELAYED_ACK_MAX: (c_int, c_int) = (libc::IPPROTO_TCP, 46);

const NO_RULE: &str = "[[rule]]\nname = 'other'\ndestination = ['192.0.2.1']\nquickack = true\n";

fn rule(settings: &str) -> String {
    format!("[[rule]]\nname = 'own'\ndestination = ['127.0.9.0/24']\n{settings}\n")
}

const ALL: &str = "congestion_control = 'fp_aimd'\npacing_rate = '80mbit'\nnotsent_lowat = 20000\n\
                   rto_min = '40ms'\ndelayed_ack_max = '20ms'";

/// Whether the kernel has the option and takes the value.
fn set(socket: &impl AsRawFd, (level, option): (c_int, c_int), value: u32) -> bool {
    let (value, length) = ((&raw const value).cast(), size_of::<u32>() as u32);
    // SAFETY: an open socket, and a value of that length.
    unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value, length) == 0 }
}

/// `None` where the kernel does not have the option.
fn get(socket: &impl AsRawFd, (level, option): (c_int, c_int)) -> Option<u32> {
    let (mut value, mut length) = (0u32, size_of::<u32>() as u32);
    // SAFETY: an open socket, and a buffer of that length.
    let got = unsafe {
        let value = (&raw mut value).cast();
        libc::getsockopt(socket.as_raw_fd(), level, option, value, &mut length)
    };
    (got == 0).then_some(value)
}

/// A connection over loopback whose program has prepared both sockets, and its other end.
fn connect(prepare: impl Fn(&Socket)) -> (TcpStream, TcpStream) {
    let socket = || Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let address = |last| SocketAddr::from((Ipv4Addr::new(127, 0, 9, last), 0));
    let (listener, here) = (socket(), socket());
    listener.bind(&address(2).into()).unwrap();
    here.bind(&address(1).into()).unwrap();
    prepare(&listener);
    prepare(&here);
    listener.listen(1).unwrap();
    here.connect(&listener.local_addr().unwrap()).unwrap();
    let there = TcpListener::from(listener).accept().unwrap().0;
    (here.into(), there)
}

/// The program's own choices.
fn choose(socket: &Socket) {
    socket.set_tcp_congestion(b"reno").unwrap();
    assert!(set(socket, PACING, 5_000_000));
    assert!(set(socket, LOWAT, 30_000));
    for timer in [RTO_MIN, DELAYED_ACK_MAX] {
        if !set(socket, timer, 100_000) {
            println!("left out: a kernel before 6.15 has no socket option {timer:?}");
        }
    }
}

fn has_its_own(socket: &TcpStream) {
    assert_eq!(law(socket), "reno");
    assert_eq!(get(socket, PACING), Some(5_000_000));
    assert_eq!(get(socket, LOWAT), Some(30_000));
    for timer in [RTO_MIN, DELAYED_ACK_MAX] {
        assert!(
            [None, Some(100_000)].contains(&get(socket, timer)),
            "{timer:?}"
        );
    }
}

fn has_the_rules(socket: &TcpStream) {
    assert_eq!(law(socket), "fp_aimd");
    assert_eq!(get(socket, PACING), Some(10_000_000));
    assert_eq!(get(socket, LOWAT), Some(20_000));
    assert!([None, Some(40_000)].contains(&get(socket, RTO_MIN)));
    assert!([None, Some(20_000)].contains(&get(socket, DELAYED_ACK_MAX)));
}

fn note(flow: &Value, name: &str) -> String {
    let settings = flow["settings"].as_array().unwrap();
    let found = settings.iter().find(|s| s["setting"] == name).unwrap();
    found["note"].as_str().unwrap_or_default().to_owned()
}

fn apply(daemon: &Lent, policy: &str) {
    assert!(daemon.apply(policy).status.success(), "{policy}");
}

#[test]
fn what_the_program_chose_stays_and_is_reported() {
    let Some(_alone) = alone() else { return };
    let daemon = Lent::with(&rule(ALL));
    let (here, there) = connect(choose);
    for end in [&here, &there] {
        has_its_own(end);
        let flow = daemon.flow(end.local_addr().unwrap());
        for name in [
            "congestion_control",
            "pacing_rate_bps",
            "notsent_lowat_bytes",
        ] {
            assert!(
                note(&flow, name).contains("override_application"),
                "{name}: {flow}"
            );
        }
        assert_eq!(
            setting(&flow, "pacing_rate_bps"),
            (json!(80_000_000), json!(40_000_000))
        );
    }
    // Also when it chooses later, and the flow meets a policy again.
    let (later, _other) = connect(|_| {});
    has_the_rules(&later);
    choose(&SockRef::from(&later).try_clone().unwrap());
    apply(&daemon, &rule(&ALL.replace("fp_aimd", "fp_reno")));
    has_its_own(&later);
    apply(&daemon, NO_RULE);
    for end in [&here, &there, &later] {
        has_its_own(end);
    }
}

#[test]
fn an_override_gives_the_rules_and_its_end_the_programs() {
    let Some(_alone) = alone() else { return };
    let overriding = format!("{ALL}\noverride_application = true");
    let daemon = Lent::with(&rule(&overriding));
    let (here, there) = connect(choose);
    for without in [rule(ALL), NO_RULE.to_owned()] {
        for end in [&here, &there] {
            has_the_rules(end);
        }
        apply(&daemon, &without);
        for end in [&here, &there] {
            has_its_own(end);
        }
        apply(&daemon, &rule(&overriding));
    }
}

#[test]
fn the_smaller_pacing_rate_holds() {
    let Some(_alone) = alone() else { return };
    let daemon = Lent::with(&rule("pacing_rate = '24mbit'"));
    let (here, _there) = connect(|socket| assert!(set(socket, PACING, 5_000_000)));
    let rate = || get(&here, PACING).unwrap();
    assert_eq!(rate(), 3_000_000);
    apply(&daemon, &rule("pacing_rate = '80mbit'"));
    assert_eq!(rate(), 5_000_000, "not more than the program allows");
    apply(&daemon, &rule("pacing_rate = '16mbit'"));
    assert_eq!(rate(), 2_000_000);
    assert!(set(&here, PACING, 1_000_000));
    apply(&daemon, &rule("pacing_rate = '24mbit'"));
    assert_eq!(rate(), 1_000_000);
    apply(&daemon, NO_RULE);
    assert_eq!(rate(), 1_000_000);
}

/// `net.ipv4.tcp_rto_min_us`, from 6.11 on.
#[test]
fn the_hosts_own_rto_min_returns() {
    let Some(_alone) = alone() else { return };
    let host = Host::make("rtomin");
    host.run("ip link set lo up");
    let sysctl = "/proc/sys/net/ipv4/tcp_rto_min_us";
    let is_there = host.on(|| std::fs::write(sysctl, "80000").is_ok());
    let daemon = Lent::with(&rule("rto_min = '20ms'"));
    let (here, _there) = host.on(|| connect(|_| {}));
    let Some(given) = get(&here, RTO_MIN).filter(|_| is_there) else {
        println!("left out: a kernel before 6.15 does not show its least RTO");
        return;
    };
    assert_eq!(given, 20_000);
    apply(&daemon, NO_RULE);
    assert_eq!(get(&here, RTO_MIN), Some(80_000));
}
