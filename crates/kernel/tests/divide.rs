// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flows of a rule share its buffers: which of them count.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use fatpath_policy::{Classifier, parse};
use socket2::SockRef;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};
use support::{Loaded, alone};

/// setsockopt's; the kernel doubles it.
const BUFFER_BYTES: usize = 200_000;

/// Idle flows count for some seconds, and an emulated machine is slow.
const PATIENCE: Duration = Duration::from_secs(120);

struct Server(TcpListener);

impl Server {
    fn new() -> Server {
        Server(TcpListener::bind("127.0.22.1:0").unwrap())
    }

    /// Both ends; only the first one's destination is the rule's.
    fn flow(&self) -> (TcpStream, TcpStream) {
        let here = TcpStream::connect(self.0.local_addr().unwrap()).unwrap();
        (here, self.0.accept().unwrap().0)
    }
}

fn send(flows: &[&(TcpStream, TcpStream)]) {
    for (here, there) in flows {
        (&*here).write_all(b"x").unwrap();
        (&*there).read_exact(&mut [0]).unwrap();
    }
}

fn publish(loaded: &Loaded) {
    let text = format!(
        "[[rule]]\nname = 'r'\ndestination = ['127.0.22.0/24']\nsend_buffer = {BUFFER_BYTES}\ndivide = true\n"
    );
    let policy = parse(&text, None).unwrap();
    let tables = Classifier::build(&policy);
    let published = loaded.kernel.publish(&policy, &tables).unwrap();
    assert_eq!(published.problems, Vec::<String>::new());
}

/// Until the first of `flows`, which all send, has the buffer of one of so many.
fn wait_for_share(loaded: &Loaded, flows: &[&(TcpStream, TcpStream)], share: usize) {
    let end = Instant::now() + PATIENCE;
    let has = || SockRef::from(&flows[0].0).send_buffer_size().unwrap();
    while has() != BUFFER_BYTES / share * 2 {
        assert!(Instant::now() < end, "1/{share}: it has {} bytes", has());
        send(flows);
        loaded.kernel.share_again().unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn flows_that_are_idle_take_no_share() {
    let Some(_alone) = alone() else { return };
    let loaded = Loaded::at("idle");
    publish(&loaded);
    let server = Server::new();
    let (busy, idle, other) = (server.flow(), server.flow(), server.flow());
    wait_for_share(&loaded, &[&busy, &idle, &other], 3);
    wait_for_share(&loaded, &[&busy], 1);
    wait_for_share(&loaded, &[&busy, &idle], 2);
}

/// A kernel may refuse them (docs/kernel.md).
#[test]
fn flows_are_listed_and_share_without_iterators_over_maps() {
    let Some(_alone) = alone() else { return };
    let loaded = Loaded::without_iterators_over_maps("plain");
    publish(&loaded);
    let server = Server::new();
    let (one, another) = (server.flow(), server.flow());
    wait_for_share(&loaded, &[&one, &another], 2);
    let locals = [&one, &another].map(|flow| flow.0.local_addr().unwrap());
    let listed = loaded.kernel.flows().unwrap();
    let is_here = |local| listed.iter().filter(|it| it.flow.local == local).count() == 1;
    assert!(locals.into_iter().all(is_here), "{listed:?}");
    assert!(!loaded.iterates_over_maps());
}

/// Before Linux 6.12 nothing is heard of their end.
#[test]
fn flows_from_before_fatpath_leave_no_count_behind() {
    let Some(_alone) = alone() else { return };
    let server = Server::new();
    let (stays, second, third) = (server.flow(), server.flow(), server.flow());
    let loaded = Loaded::at("before");
    for _ in 0..3 {
        publish(&loaded);
    }
    wait_for_share(&loaded, &[&stays, &second, &third], 3);
    drop((second, third));
    wait_for_share(&loaded, &[&stays], 1);
    for _ in 0..3 {
        publish(&loaded);
    }
    let new = server.flow();
    wait_for_share(&loaded, &[&new, &stays], 2);
}
