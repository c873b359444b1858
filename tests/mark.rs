// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mark on interfaces that come while the daemon runs, and what is left of it: nothing.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use support::host::Host;
use support::{Daemon, alone, until};

const POLICY: &str = "[[rule]]\nname = 'all'\ndestination = ['10.78.0.0/24']\nrude = 'always'\n";

trait Marks {
    fn marks(&self, device: &str) -> bool;

    /// Nothing of ours hangs on any interface.
    fn is_clean(&self) -> bool;
}

impl Marks for Host {
    fn marks(&self, device: &str) -> bool {
        self.run(&format!("tc filter show dev {device} egress"))
            .contains("mark_ethernet")
    }

    fn is_clean(&self) -> bool {
        !self.run("tc qdisc show").contains("clsact")
    }
}

fn ask(daemon: &Daemon, arguments: &[&str]) {
    let output = daemon.ask(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
}

/// A flow of a few megabytes: rude, and marked.
fn is_marked_and_rude(daemon: &Daemon, a: &Host, b: &Host) {
    const BYTES: usize = 3_000_000;
    let listener = b.on(|| TcpListener::bind("10.78.0.2:7020").unwrap());
    let mut sender = a.on(|| TcpStream::connect("10.78.0.2:7020").unwrap());
    let mut receiver = listener.accept().unwrap().0;
    std::thread::scope(|scope| {
        scope.spawn(|| sender.write_all(&vec![7; BYTES]).unwrap());
        receiver.read_exact(&mut vec![0; BYTES]).unwrap();
    });
    let flow = daemon.flow(sender.local_addr().unwrap());
    assert_eq!(flow["rude"]["mode"], "rude", "{flow}");
    let marked_pkts = flow["rude"]["marked_pkts"].as_u64().unwrap();
    assert!(marked_pkts > 0, "{flow}");
}

#[test]
fn an_interface_that_comes_is_marked_and_left_clean() {
    let Some(_alone) = alone() else { return };
    let (a, b) = (Host::make("markcome-a"), Host::make("markcome-b"));
    let mut daemon = Daemon::start_in(Some(&a.0), POLICY);
    ask(&daemon, &["rude", "on"]);
    a.lay_wire(&b);
    until("the interface that came to mark", || {
        a.marks("v0").then_some(())
    });
    is_marked_and_rude(&daemon, &a, &b);
    // With its interface the record goes, and the namespace no longer marks.
    a.run("ip link del v0");
    until("the interface that went to be forgotten", || {
        let status = daemon.json(&["rude", "status"]);
        (status["marked_namespaces"].as_array().unwrap().is_empty()).then_some(())
    });
    a.lay_wire(&b);
    until("one of the same name to mark", || {
        a.marks("v0").then_some(())
    });
    ask(&daemon, &["rude", "off"]);
    assert!(a.is_clean());
    let pins = daemon.pins().to_path_buf();
    daemon.unload();
    assert!(a.is_clean() && !pins.exists());
}

#[test]
fn an_interface_that_comes_without_a_daemon_is_marked_by_the_next_and_unload_leaves_nothing() {
    let Some(_alone) = alone() else { return };
    let (a, b) = (Host::make("marklate-a"), Host::make("marklate-b"));
    let mut daemon = Daemon::start_in(Some(&a.0), POLICY);
    ask(&daemon, &["rude", "on"]);
    a.run("ip link add w0 type veth peer name w1");
    until("the first to mark", || a.marks("w0").then_some(()));
    daemon.kill_9();
    a.lay_wire(&b);
    assert!(a.marks("w0") && !a.marks("v0"));
    daemon.restart();
    until("the one that came meanwhile to mark", || {
        a.marks("v0").then_some(())
    });
    is_marked_and_rude(&daemon, &a, &b);
    daemon.kill_9();
    daemon.unload();
    assert!(a.is_clean());
}

/// A wire from `a` to `b` that cannot mark, over which a socket with the mark 1 sends.
fn lay_a_way_around(a: &Host, b: &Host) {
    for command in [
        "ip link add x0 type veth peer name x1 netns B",
        "tc qdisc add dev x0 ingress",
        "ip addr add 10.79.0.1/24 dev x0",
        "ip link set x0 up",
        "ip rule add fwmark 1 table 100",
    ] {
        a.run(&command.replace('B', &b.0));
    }
    b.run("ip addr add 10.79.0.2/24 dev x1");
    b.run("ip link set x1 up");
    b.on(|| {
        for device in ["all", "x1"] {
            let filter = format!("/proc/sys/net/ipv4/conf/{device}/rp_filter");
            std::fs::write(filter, "0").unwrap();
        }
    });
    a.run("ip route add default via 10.79.0.2 dev x0 table 100");
}

/// One segment with a mark now and then does not do: most of them go another way.
#[test]
fn a_flow_of_which_a_few_segments_are_marked_goes_polite() {
    let Some(_alone) = alone() else { return };
    let (a, b) = (Host::make("markfew-a"), Host::make("markfew-b"));
    lay_a_way_around(&a, &b);
    let daemon = Daemon::start_in(Some(&a.0), POLICY);
    ask(&daemon, &["rude", "on"]);
    a.lay_wire(&b);
    until("the wire to mark", || a.marks("v0").then_some(()));
    assert!(!a.marks("x0"));
    let listener = b.on(|| TcpListener::bind("10.78.0.2:7021").unwrap());
    let sender = a.on(|| TcpStream::connect("10.78.0.2:7021").unwrap());
    let mut receiver = listener.accept().unwrap().0;
    let mode = || daemon.flow(sender.local_addr().unwrap())["rude"]["mode"].clone();
    assert_eq!(mode(), "rude");
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let over = std::sync::atomic::Ordering::Relaxed;
        scope.spawn(|| while matches!(receiver.read(&mut [0; 65536]), Ok(1..)) {});
        let mut writer = &sender;
        scope.spawn({
            let is_over = &is_over;
            move || {
                let socket = socket2::SockRef::from(writer);
                for write in 0.. {
                    // Each tenth on the wire that marks.
                    socket.set_mark(u32::from(write % 10 != 0)).unwrap();
                    let sent = writer.write_all(&[7; 10_000]);
                    std::thread::sleep(std::time::Duration::from_millis(5));
                    if sent.is_err() || is_over.load(over) {
                        return;
                    }
                }
            }
        });
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            until("it to be found out", || (mode() != "rude").then_some(()));
        }));
        is_over.store(true, over);
        sender.shutdown(std::net::Shutdown::Both).unwrap();
        found.unwrap();
    });
    let status = daemon.json(&["rude", "status"]);
    assert_eq!(status["flows_unmarked"], 1, "{status}");
}
