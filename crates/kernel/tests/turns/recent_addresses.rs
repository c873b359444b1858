// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each processor keeps which rules hold for the addresses that it saw last. A flow follows the live policy all the
//! same, and that of its own cgroup.

use crate::support::{Loaded, machine, turn};
use fatpath_policy::{Classifier, parse};
use libbpf_rs::{MapCore, MapFlags};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use socket2::{Domain, Socket, Type};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

const HOST: &str = "127.0.23.1";
const OTHER: &str = "127.0.23.2";
const TO_HOST: &str = "destination = ['127.0.23.1']";
const TO_OTHER: &str = "destination = ['127.0.23.2']";

/// A policy's rules: what they match, and the send buffer that tells which one a flow has.
type Rules<'a> = [(&'a str, usize)];

fn publish(loaded: &Loaded, rules: &Rules<'_>) {
    let rule = |(n, (matches, bytes)): (usize, &(&str, usize))| {
        format!("[[rule]]\nname = 'r{n}'\n{matches}\nsend_buffer = {bytes}\n")
    };
    let text: String = rules.iter().enumerate().map(rule).collect();
    let policy = parse(&format!("# rules\n{text}"), None).unwrap();
    let tables = Classifier::build(&policy);
    let published = loaded.kernel.publish(&policy, &tables).unwrap();
    assert_eq!(published.problems, Vec::<String>::new());
}

/// The first connection fills the memory of addresses, the second one is answered from it.
fn assert_given(from: &str, to: &str, bytes: Option<usize>) {
    for _ in 0..2 {
        let has = send_buffer_of_connection(from, to);
        match bytes {
            Some(bytes) => assert_eq!(has, bytes, "{from} to {to}"),
            None => assert!(has > LARGEST, "{from} to {to} has {has}"),
        }
    }
}

/// Of a rule here; the kernel gives a connection over loopback more.
const LARGEST: usize = 60_000;

fn send_buffer_of_connection(from: &str, to: &str) -> usize {
    let listener = TcpListener::bind((to, 0)).unwrap();
    let client = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let from = SocketAddr::new(from.parse().unwrap(), 0);
    client.bind(&from.into()).unwrap();
    let to = listener.local_addr().unwrap();
    client.connect(&to.into()).unwrap();
    client.send_buffer_size().unwrap() / 2 // setsockopt's; the kernel doubles it
}

/// A connection is opened and established by the processor of the thread that connects.
fn stay_on_one_processor() {
    let allowed = sched_getaffinity(None).unwrap();
    let mut one = CpuSet::new();
    let first = (0..CpuSet::MAX_CPU).find(|processor| allowed.is_set(*processor));
    one.set(first.unwrap());
    sched_setaffinity(None, &one).unwrap();
}

#[test]
fn a_new_policy_is_not_answered_from_the_addresses_of_the_last() {
    let Some(loaded) = turn() else { return };
    stay_on_one_processor();
    let both = "destination = ['127.0.23.0/24']";
    let policies: [(&Rules<'_>, _, _); 6] = [
        (&[(TO_HOST, 30_000)], Some(30_000), None),
        (&[(TO_OTHER, 31_000)], None, Some(31_000)),
        (
            &[(TO_OTHER, 32_000), (TO_HOST, 33_000)],
            Some(33_000),
            Some(32_000),
        ),
        (
            &[(both, 34_000), (TO_HOST, 35_000)],
            Some(34_000),
            Some(34_000),
        ),
        (&[], None, None),
        (
            &[(TO_HOST, 36_000), (both, 37_000)],
            Some(36_000),
            Some(37_000),
        ),
    ];
    for (rules, of_host, of_other) in policies {
        publish(&loaded, rules);
        assert_given(HOST, HOST, of_host);
        assert_given(HOST, OTHER, of_other);
    }
}

/// As after an unload that could not release the live flows: the pins stay, and the next daemon takes them over.
#[test]
fn policies_that_are_counted_anew_are_not_answered_from_those_before() {
    let Some(loaded) = turn() else { return };
    stay_on_one_processor();
    let policies: [(&Rules<'_>, _); 3] = [
        (&[(TO_HOST, 30_000), (TO_OTHER, 31_000)], Some(30_000)),
        (&[(TO_OTHER, 32_000), (TO_HOST, 33_000)], Some(33_000)),
        (&[(TO_OTHER, 34_000)], None),
    ];
    for (rules, of_host) in policies {
        publish(&loaded, rules);
        assert_given(HOST, HOST, of_host);
        let control = loaded.map("fp_control");
        let stopped = vec![0; control.value_size() as usize];
        control
            .update(&0u32.to_ne_bytes(), &stopped, MapFlags::ANY)
            .unwrap();
    }
}

#[test]
fn an_address_is_another_matter_as_source_than_as_destination() {
    let Some(loaded) = turn() else { return };
    stay_on_one_processor();
    publish(
        &loaded,
        &[
            (TO_HOST, 30_000),
            (
                "source = ['127.0.23.1']\ndestination = ['127.0.23.2']",
                31_000,
            ),
        ],
    );
    for _ in 0..2 {
        assert_given(HOST, HOST, Some(30_000));
        assert_given(HOST, OTHER, Some(31_000));
        assert_given(OTHER, HOST, Some(30_000));
        assert_given(OTHER, OTHER, None);
    }
}

/// Two cgroups below one of the test's own; the test leaves them when this is dropped.
struct Cgroups {
    root: PathBuf,
    parent: PathBuf,
}

impl Cgroups {
    const NAMES: [&str; 2] = ["a", "b"];

    fn new() -> Cgroups {
        let root = fatpath_mounts::first_mount_of("cgroup2").unwrap().unwrap();
        let parent = root.join(format!("fatpath-recent-{}", std::process::id()));
        for name in Cgroups::NAMES {
            std::fs::create_dir_all(parent.join(name)).unwrap();
        }
        Cgroups { root, parent }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.parent.join(name)
    }

    fn enter(cgroup: &Path) {
        std::fs::write(cgroup.join("cgroup.procs"), std::process::id().to_string()).unwrap();
    }
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        Cgroups::enter(&self.root);
        for directory in Cgroups::NAMES.map(|name| self.path(name)) {
            let _ = std::fs::remove_dir(directory);
        }
        let _ = std::fs::remove_dir(&self.parent);
    }
}

#[test]
fn an_address_is_another_matter_in_another_cgroup_of_the_policy() {
    let Some(loaded) = turn() else { return };
    stay_on_one_processor();
    let cgroups = Cgroups::new();
    let matches = Cgroups::NAMES.map(|name| {
        let path = cgroups.path(name);
        let path = path.strip_prefix(&cgroups.root).unwrap().display();
        format!("cgroup = '/{path}'\n{TO_HOST}")
    });
    publish(&loaded, &[(&matches[0], 30_000), (&matches[1], 31_000)]);
    for (name, bytes) in [("a", 30_000), ("b", 31_000), ("a", 30_000)] {
        Cgroups::enter(&cgroups.path(name));
        assert_given(HOST, HOST, Some(bytes));
    }
    Cgroups::enter(&cgroups.root);
    assert_given(HOST, HOST, None);
}

#[test]
fn an_address_is_another_matter_to_another_instance() {
    let Some(_machine) = machine() else { return };
    stay_on_one_processor();
    let cgroups = Cgroups::new();
    let instances = [("a", 30_000), ("b", 31_000)];
    let loaded = instances.map(|(name, bytes)| {
        let loaded = Loaded::for_cgroup(&format!("recent-{name}"), Some(cgroups.path(name)));
        publish(&loaded, &[(TO_HOST, bytes)]);
        loaded
    });
    for (name, bytes) in instances.into_iter().chain(instances) {
        Cgroups::enter(&cgroups.path(name));
        assert_given(HOST, HOST, Some(bytes));
    }
    Cgroups::enter(&cgroups.root);
    drop(loaded);
}
