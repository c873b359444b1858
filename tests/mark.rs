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
