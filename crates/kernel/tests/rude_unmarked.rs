// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rude without marks: in a network namespace that got the inode of one that marked, which whoever may
//! make namespaces could wait for; and by turns, on a device that does not mark.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use fatpath_api::RudeMark;
use fatpath_emulator::{Namespace, remove_namespace};
use fatpath_policy::{Classifier, parse};
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use support::option::{RUDE_OFF_NICELY, RUDE_OFF_NOW, RUDE_ON, set_rude};
use support::wire::{Wire, run, transfer};
use support::{Loaded, alone};

const POLICY: &str = "[[rule]]\nname = 'lo'\ndestination = ['127.0.0.1']\nrude = 'allowed'\n";

/// Namespaces that are made before one may have the inode: others make some too.
const TRIES: usize = 40;

/// Removed when it is dropped.
struct Host(Option<Namespace>);

impl Host {
    fn make(name: &str) -> Host {
        let host = Namespace::create(&format!("fpt-{name}-{}", std::process::id())).unwrap();
        run(&host, "ip link set lo up");
        run(&host, "ip link add d0 type veth peer name d1");
        Host(Some(host))
    }

    fn namespace(&self) -> &Namespace {
        self.0.as_ref().unwrap()
    }

    fn inode(&self) -> u64 {
        Wire::file(self.namespace()).metadata().unwrap().ino()
    }

    fn connection(&self) -> (TcpStream, TcpStream) {
        let both = || {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (sender, listener.accept().unwrap().0)
        };
        self.namespace().run(both).unwrap()
    }

    /// What a connection within it hears when it asks to be rude.
    fn ask(&self) -> io::Result<()> {
        let (sender, _receiver) = self.connection();
        set_rude(&sender, RUDE_ON)
    }

    fn marks(&self) -> bool {
        run(self.namespace(), "tc qdisc show").contains("clsact")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let name = self.namespace().name().to_owned();
        drop(self.0.take());
        let _ = remove_namespace(&name);
    }
}

fn gate_open_in(host: &Host) -> Loaded {
    let loaded = Loaded::at("marked");
    let policy = parse(POLICY, None).unwrap();
    let tables = Classifier::build(&policy);
    loaded.kernel.publish(&policy, &tables).unwrap();
    let named = [host.namespace().name().to_owned()];
    let gate = loaded.kernel.open_rude_gate(RudeMark::default(), &named);
    gate.unwrap();
    loaded
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
        std::thread::sleep(std::time::Duration::from_millis(250));
    }
    None
}

#[test]
fn a_namespace_with_the_number_of_one_that_marked_is_a_stranger() {
    let Some(_alone) = alone() else { return };
    let marking = Host::make("markeda");
    let loaded = gate_open_in(&marking);
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

/// Loopback does not mark: whoever is rude there by turns never is for the second after which it is looked.
#[test]
fn a_flow_that_is_rude_by_turns_is_found_out() {
    let Some(_alone) = alone() else { return };
    let host = Host::make("byturns");
    let _loaded = gate_open_in(&host);
    for off in [RUDE_OFF_NOW, RUDE_OFF_NICELY] {
        let (sender, receiver) = host.connection();
        set_rude(&sender, RUDE_ON).unwrap();
        set_rude(&sender, off).unwrap();
        set_rude(&sender, RUDE_ON).unwrap();
        transfer(&sender, &receiver, 1_000_000);
        set_rude(&sender, off).unwrap();
        let refused = set_rude(&sender, RUDE_ON).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EPERM), "{off}");
    }
}
