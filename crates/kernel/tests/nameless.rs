// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flows of a network namespace that no process is in any more and that has no name: no walk finds them.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use fatpath_policy::{Classifier, parse};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};
use support::{Loaded, alone};

const PATIENCE: Duration = Duration::from_secs(30);

/// A policy of one rule, for flows to `net`.
fn publish(loaded: &Loaded, name: &str, net: &str, settings: &str) {
    let text = format!("[[rule]]\nname = '{name}'\ndestination = ['{net}']\n{settings}\n");
    let policy = parse(&text, None).unwrap();
    let tables = Classifier::build(&policy);
    let published = loaded.kernel.publish(&policy, &tables).unwrap();
    assert_eq!(published.problems, Vec::<String>::new());
}

/// Both ends of a flow of a namespace that has nothing but them.
fn nameless_flow() -> (TcpStream, TcpStream) {
    let make = || {
        enter_new_namespace();
        let mut up = Command::new("ip");
        assert!(
            up.args(["link", "set", "lo", "up"])
                .status()
                .unwrap()
                .success()
        );
        let listener = TcpListener::bind("127.0.23.1:0").unwrap();
        let mut here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut there = listener.accept().unwrap().0;
        here.write_all(b"x").unwrap();
        there.read_exact(&mut [0]).unwrap();
        (here, there)
    };
    std::thread::spawn(make).join().unwrap()
}

#[allow(unsafe_code)]
fn enter_new_namespace() {
    // SAFETY: a network namespace is a thread's own; no descriptor is unshared.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET).unwrap() };
}

fn rules(loaded: &Loaded) -> HashSet<String> {
    loaded.kernel.rule_names().unwrap().into_values().collect()
}

fn names<const N: usize>(names: [&str; N]) -> HashSet<String> {
    names.map(str::to_owned).into()
}

/// A flow has storage of its own once a law of ours sends its data, and a place in a table before.
#[test]
fn a_rule_that_is_gone_keeps_its_number_while_a_flow_is_on_it() {
    let Some(_alone) = alone() else { return };
    for settings in ["congestion_control = 'fp_reno'", "send_buffer = 200000"] {
        let loaded = Loaded::at("nameless");
        if !loaded.iterates_over_maps() {
            println!(
                "skipped: this kernel refuses iterators over maps, which alone find such a flow"
            );
            return;
        }
        publish(&loaded, "one", "127.0.23.0/24", settings);
        let flow = nameless_flow();
        publish(&loaded, "two", "127.0.24.0/24", settings);
        assert_eq!(rules(&loaded), names(["one", "two"]), "{settings}");
        drop(flow);
        // The kernel frees a socket a moment after it is closed.
        let end = Instant::now() + PATIENCE;
        loop {
            publish(&loaded, "three", "127.0.24.0/24", settings);
            if rules(&loaded) == names(["three"]) {
                break;
            }
            assert!(Instant::now() < end, "{settings}: {:?}", rules(&loaded));
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
