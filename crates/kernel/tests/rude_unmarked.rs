// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rude without marks: over a device that does not mark, or a tunnel, while another device of the namespace
//! marks; in a network namespace that got the inode of one that marked, which whoever may make namespaces
//! could wait for; and by turns, on a device that marks no longer.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use fatpath_api::RudeMark;
use fatpath_emulator::Namespace;
use fatpath_policy::{Classifier, parse};
use socket2::SockRef;
use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};
use support::option::{RUDE_OFF_NICELY, RUDE_OFF_NOW, RUDE_ON, set_rude};
use support::wire::{B4, Wire, run, transfer, try_run};
use support::{Loaded, alone};

/// Of `b` through a tunnel over the wire.
const TUNNELLED: &str = "10.78.0.2";

fn policy(rude: &str) -> String {
    let to = "['10.77.0.0/24', '10.78.0.0/24', '127.0.0.1']";
    format!("[[rule]]\nname = 'all'\ndestination = {to}\nrude = '{rude}'\n")
}

/// Namespaces that are made before one may have the inode: others make some too.
const TRIES: usize = 40;

/// A host on a wire to another; both are removed when it is dropped.
struct Host(Option<Wire>);

impl Host {
    fn make(name: &str) -> Host {
        let host = Host(Some(Wire::lay(name)));
        run(host.namespace(), "ip link set lo up");
        host
    }

    fn wire(&self) -> &Wire {
        self.0.as_ref().unwrap()
    }

    fn namespace(&self) -> &Namespace {
        &self.wire().a
    }

    fn inode(&self) -> u64 {
        Wire::file(self.namespace()).metadata().unwrap().ino()
    }

    fn over_loopback(&self) -> (TcpStream, TcpStream) {
        let both = || {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (sender, listener.accept().unwrap().0)
        };
        self.namespace().run(both).unwrap()
    }

    fn lay_tunnel(&self) {
        let Wire { a, b } = self.wire();
        for (host, device, n, remote) in [(a, "wa", 1, 2), (b, "wb", 2, 1)] {
            let kind = format!("type vxlan id 7 remote 10.77.0.{remote} dstport 4789 dev {device}");
            if !try_run(host, &format!("ip link add vx0 {kind}"))
                .status
                .success()
            {
                // A kernel without VXLAN, as in a guest.
                let ends = format!("remote 10.77.0.{remote} local 10.77.0.{n}");
                run(host, &format!("ip link add vx0 type ipip {ends}"));
            }
            run(host, &format!("ip addr add 10.78.0.{n}/24 dev vx0"));
            run(host, "ip link set vx0 up");
        }
    }

    /// What a connection to the other host hears when it asks to be rude.
    fn ask(&self) -> io::Result<()> {
        let (sender, _receiver) = self.wire().connection(B4);
        set_rude(&sender, RUDE_ON)
    }

    fn marks(&self) -> bool {
        run(self.namespace(), "tc qdisc show").contains("clsact")
    }
}

fn gate_open_in(host: &Host, rude: &str) -> Loaded {
    let loaded = Loaded::at("marked");
    let policy = parse(&policy(rude), None).unwrap();
    let tables = Classifier::build(&policy);
    loaded.kernel.publish(&policy, &tables).unwrap();
    let named = [host.namespace().name().to_owned()];
    let gate = loaded.kernel.open_rude_gate(RudeMark::default(), &named);
    gate.unwrap();
    loaded
}

fn is_rude(flow: &TcpStream) -> bool {
    SockRef::from(flow)
        .tcp_congestion()
        .unwrap()
        .starts_with(b"fp_rude")
}

fn refusal(flow: &TcpStream) -> Option<i32> {
    set_rude(flow, RUDE_ON).unwrap_err().raw_os_error()
}

#[test]
fn only_a_flow_whose_own_device_marks_may_be_rude() {
    let Some(_alone) = alone() else { return };
    let host = Host::make("device");
    host.lay_tunnel();
    let _loaded = gate_open_in(&host, "allowed");
    let (sender, _receiver) = host.wire().connection(B4);
    set_rude(&sender, RUDE_ON).unwrap();
    for (sender, _receiver) in [host.over_loopback(), host.wire().connection(TUNNELLED)] {
        assert_eq!(refusal(&sender), Some(libc::EPERM), "{sender:?}");
    }
}

/// Both ends, and before a byte is sent: a flow may be over before anybody looks for its marks.
#[test]
fn a_flow_that_is_always_to_be_rude_is_polite_where_its_device_does_not_mark() {
    let Some(_alone) = alone() else { return };
    let host = Host::make("always");
    host.lay_tunnel();
    let loaded = gate_open_in(&host, "always");
    let other_end = loaded.kernel.mark_in(&Wire::file(&host.wire().b)).unwrap();
    assert_eq!(other_end.interfaces, ["wb"]);
    let (sender, receiver) = host.wire().connection(B4);
    assert!(is_rude(&sender) && is_rude(&receiver));
    for (sender, receiver) in [host.over_loopback(), host.wire().connection(TUNNELLED)] {
        assert!(!is_rude(&sender) && !is_rude(&receiver), "{sender:?}");
    }
}

#[test]
fn no_device_that_encapsulates_counts_as_marking() {
    let Some(_alone) = alone() else { return };
    let host = Host::make("tunnels");
    let mut made = Vec::new();
    for (name, command) in [
        ("t0", "ip tuntap add dev t0 mode tun"),
        ("t1", "ip tuntap add dev t1 mode tap"),
        (
            "x0",
            "ip link add x0 type vxlan id 8 remote 10.77.0.2 dstport 4790 dev wa",
        ),
        (
            "g0",
            "ip link add g0 type gre remote 10.77.0.2 local 10.77.0.1",
        ),
        (
            "g1",
            "ip link add g1 type gretap remote 10.77.0.2 local 10.77.0.1",
        ),
        (
            "i0",
            "ip link add i0 type ipip remote 10.77.0.2 local 10.77.0.1",
        ),
        (
            "s0",
            "ip link add s0 type sit remote 10.77.0.2 local 10.77.0.1",
        ),
        ("w0", "ip link add w0 type wireguard"),
        ("n0", "ip link add n0 type geneve id 9 remote 10.77.0.2"),
        (
            "i6",
            "ip link add i6 type ip6tnl remote fd77::2 local fd77::1",
        ),
    ] {
        match try_run(host.namespace(), command).status.success() {
            true => made.push(name),
            false => println!("left out: the kernel has no {command}"),
        }
    }
    let loaded = gate_open_in(&host, "allowed");
    let mark = || {
        loaded
            .kernel
            .mark_in(&Wire::file(host.namespace()))
            .unwrap()
    };
    let marking = mark();
    assert_eq!(marking.interfaces, ["wa"]);
    for name in made {
        let why = format!("{name}: it encapsulates");
        assert!(
            marking.unmarked.iter().any(|text| text.starts_with(&why)),
            "{marking:?}"
        );
    }
    if try_run(host.namespace(), "ip link add r0 type bridge")
        .status
        .success()
    {
        assert_eq!(mark().interfaces, ["wa", "r0"]);
        if try_run(host.namespace(), "ip link set t1 master r0")
            .status
            .success()
        {
            assert_eq!(mark().interfaces, ["wa"], "a port of r0 is a tunnel");
        }
    }
}

/// At the first acknowledgement, not when it was looked for marks a second later.
#[test]
fn a_flow_whose_route_leaves_the_device_that_marks_is_polite() {
    let Some(_alone) = alone() else { return };
    let host = Host::make("moves");
    host.lay_tunnel();
    let _loaded = gate_open_in(&host, "allowed");
    run(&host.wire().b, "ip addr add 10.77.0.9/32 dev wb");
    let (sender, receiver) = host.wire().connection("10.77.0.9");
    set_rude(&sender, RUDE_ON).unwrap();
    transfer(&sender, &receiver, 100_000);
    assert!(is_rude(&sender));
    let moved = Instant::now();
    run(
        host.namespace(),
        "ip route add 10.77.0.9/32 dev vx0 src 10.77.0.1",
    );
    run(
        &host.wire().b,
        "ip route add 10.77.0.1/32 dev vx0 src 10.77.0.9",
    );
    sender.set_nonblocking(true).unwrap();
    while is_rude(&sender) {
        assert!(moved.elapsed() < Duration::from_secs(20), "it stays rude");
        let _ = (&sender).write(&[7; 1000]);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(refusal(&sender), Some(libc::EPERM), "until its end");
}

/// One with that inode, where this machine gives it out again.
fn with_inode(inode: u64) -> Option<Host> {
    let mut others = Vec::new();
    for n in 0..TRIES {
        let host = Host::make(&format!("markedb{n}"));
        if host.inode() == inode {
            return Some(host);
        }
        others.push(host);
        // A namespace ends a moment after its last reference.
        std::thread::sleep(Duration::from_millis(250));
    }
    None
}

#[test]
fn a_namespace_with_the_number_of_one_that_marked_is_a_stranger() {
    let Some(_alone) = alone() else { return };
    let marking = Host::make("markeda");
    let loaded = gate_open_in(&marking, "allowed");
    marking.ask().unwrap();
    assert!(marking.marks());
    let inode = marking.inode();
    drop(marking);
    let Some(stranger) = with_inode(inode) else {
        println!("skipped: no other namespace got the inode");
        return;
    };
    let refused = || stranger.ask().unwrap_err().raw_os_error();
    assert_eq!(refused(), Some(libc::EPERM));
    loaded.kernel.follow_marks().unwrap();
    assert_eq!(refused(), Some(libc::EPERM));
    assert!(!stranger.marks());
    let named = [stranger.namespace().name().to_owned()];
    let gate = loaded.kernel.open_rude_gate(RudeMark::default(), &named);
    gate.unwrap();
    stranger.ask().unwrap();
    assert!(stranger.marks());
}

/// Whoever is rude by turns never is for the second after which it is looked for marks.
#[test]
fn a_flow_that_is_rude_by_turns_is_found_out() {
    let Some(_alone) = alone() else { return };
    let host = Host::make("byturns");
    let _loaded = gate_open_in(&host, "allowed");
    run(host.namespace(), "tc filter del dev wa egress");
    for off in [RUDE_OFF_NOW, RUDE_OFF_NICELY] {
        let (sender, receiver) = host.wire().connection(B4);
        set_rude(&sender, RUDE_ON).unwrap();
        set_rude(&sender, off).unwrap();
        set_rude(&sender, RUDE_ON).unwrap();
        transfer(&sender, &receiver, 1_000_000);
        set_rude(&sender, off).unwrap();
        let refused = set_rude(&sender, RUDE_ON).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EPERM), "{off}");
    }
}
