// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hosts without an emulator: network namespaces, and wires (veth) that are laid between them.

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::os::fd::AsFd;
use std::process::Command;

/// A host, removed when it is dropped.
pub struct Host(pub String);

impl Host {
    pub fn make(name: &str) -> Host {
        let host = Host(format!("fpt-{name}-{}", std::process::id()));
        run(&["ip", "netns", "add", &host.0]);
        host
    }

    pub fn run(&self, command: &str) -> String {
        let net = format!("--net=/run/netns/{}", self.0);
        let words: Vec<&str> = command.split(' ').collect();
        run(&[&["nsenter", &net], &words[..]].concat())
    }

    /// `work` there: sockets that it makes are the host's.
    pub fn on<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let namespace = File::open(format!("/run/netns/{}", self.0)).unwrap();
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let kind = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(namespace.as_fd(), kind).unwrap();
                work()
            });
            thread.join().unwrap()
        })
    }

    /// A wire to another host that was not there before.
    pub fn lay_wire(&self, other: &Host) {
        self.run(&format!(
            "ip link add v0 type veth peer name v1 netns {}",
            other.0
        ));
        for (host, device, address) in [(self, "v0", "10.78.0.1/24"), (other, "v1", "10.78.0.2/24")]
        {
            host.run(&format!("ip addr add {address} dev {device}"));
            host.run(&format!("ip link set {device} up"));
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).output();
    }
}

/// Runs a program, and answers what it printed.
pub fn run(words: &[&str]) -> String {
    let output = Command::new(words[0]).args(&words[1..]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}
