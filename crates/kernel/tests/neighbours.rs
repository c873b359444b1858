// SPDX-License-Identifier: MIT OR Apache-2.0
//! Another program on the same cgroup (BPF_F_ALLOW_MULTI), called before ours or after it.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use fatpath_kernel::{Event, Places};
use fatpath_policy::{Classifier, parse};
use libbpf_rs::{Link, MapCore, MapFlags, Object, ObjectBuilder};
use socket2::SockRef;
use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};
use support::ring::until;
use support::{Loaded, alone};

const NEIGHBOUR: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/neighbour.bpf.o"));

/// The most that a record of a flow's end, or a share that is free, is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

const TICK: Duration = Duration::from_millis(10);

/// setsockopt's, below what a host permits; the kernel doubles it.
const BUFFER_BYTES: usize = 200_000;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    OursFirst,
    OursLast,
}

/// The other program's maps, and its links for as long as it is attached.
struct Neighbour {
    object: Object,
    _links: Vec<Link>,
}

/// What it counts: indices of its map.
const ESTABLISHED: u32 = 0;
const ROUND_TRIPS: u32 = 1;
const OPTIONS: u32 = 2;

impl Neighbour {
    fn attach(overwrites: bool) -> Neighbour {
        let object = ObjectBuilder::default().open_memory(NEIGHBOUR).unwrap();
        let object = object.load().unwrap();
        let root = fatpath_mounts::first_mount_of("cgroup2").unwrap().unwrap();
        let cgroup = std::fs::File::open(root).unwrap();
        let links = object.progs_mut();
        let links = links.map(|program| program.attach_cgroup(cgroup.as_raw_fd()).unwrap());
        let links = links.collect();
        let neighbour = Neighbour {
            object,
            _links: links,
        };
        let (zero, overwrites) = (0u32.to_ne_bytes(), u32::from(overwrites).to_ne_bytes());
        let map = neighbour.map("overwrites");
        map.update(&zero, &overwrites, MapFlags::ANY).unwrap();
        neighbour
    }

    fn map(&self, name: &str) -> libbpf_rs::Map<'_> {
        self.object.maps().find(|map| map.name() == name).unwrap()
    }

    fn counted(&self, what: u32) -> u64 {
        let counts = self.map("counts");
        let value = counts.lookup(&what.to_ne_bytes(), MapFlags::ANY).unwrap();
        u64::from_ne_bytes(value.unwrap().try_into().unwrap())
    }
}

fn publish(loaded: &Loaded) {
    let text = format!(
        "[[rule]]\nname = 'r'\ndestination = ['127.0.24.0/24']\ncongestion_control = 'fp_reno'\n\
         send_buffer = {BUFFER_BYTES}\ndivide = true\noverride_application = true\n"
    );
    let policy = parse(&text, None).unwrap();
    let tables = Classifier::build(&policy);
    loaded.kernel.publish(&policy, &tables).unwrap();
}

fn both_in(order: Order, overwrites: bool) -> (Loaded, Neighbour) {
    let load = || {
        let loaded = Loaded::at("neighbours");
        publish(&loaded);
        loaded
    };
    match order {
        Order::OursFirst => {
            let loaded = load();
            (loaded, Neighbour::attach(overwrites))
        }
        Order::OursLast => {
            let neighbour = Neighbour::attach(overwrites);
            (load(), neighbour)
        }
    }
}

/// Both ends of a connection over which data went both ways.
fn flow(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let there = listener.accept().unwrap().0;
    for _ in 0..5 {
        (&here).write_all(b"x").unwrap();
        (&there).read_exact(&mut [0]).unwrap();
        (&there).write_all(b"y").unwrap();
        (&here).read_exact(&mut [0]).unwrap();
    }
    (here, there)
}

fn send_buffer(flow: &TcpStream) -> usize {
    SockRef::from(flow).send_buffer_size().unwrap()
}

/// The cookies of the flows whose ends are told, up to that of one that ends now.
fn told_ends(loaded: &Loaded, last: (TcpStream, TcpStream)) -> Vec<u64> {
    let last_cookie = cookie(&last.0);
    drop(last);
    let told = RefCell::new(Vec::new());
    let begun = Instant::now();
    let stop = || told.borrow().contains(&last_cookie) || begun.elapsed() > PATIENCE;
    let note = |event| {
        if let Event::FlowEnd(flow) = event {
            told.borrow_mut().push(flow.flow.cookie);
        }
    };
    let mut events = loaded.kernel.events().unwrap();
    events.follow(until(TICK, stop), note).unwrap();
    told.into_inner()
}

fn cookie(flow: &TcpStream) -> u64 {
    rustix::net::sockopt::socket_cookie(flow).unwrap()
}

/// A flow that lives through it all, so that the share of one that ended would be seen.
fn until_alone(loaded: &Loaded, stays: &TcpStream) {
    let end = Instant::now() + PATIENCE;
    while send_buffer(stays) != 2 * BUFFER_BYTES {
        assert!(Instant::now() < end, "it has {}", send_buffer(stays));
        (&*stays).write_all(b"x").unwrap();
        loaded.kernel.share_again().unwrap();
        std::thread::sleep(TICK);
    }
}

/// Tunes as without the neighbour, which hears what it hears without us. Answers whether the end of a flow is told.
fn ends_are_told_beside(order: Order, overwrites: bool) -> bool {
    let (loaded, neighbour) = both_in(order, overwrites);
    let listener = TcpListener::bind("127.0.24.1:0").unwrap();
    let (stays, ends) = (flow(&listener), flow(&listener));
    let law = SockRef::from(&ends.0).tcp_congestion().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&law).trim_end_matches('\0'),
        "fp_reno"
    );
    let shared = send_buffer(&ends.0);
    assert!(shared <= 2 * BUFFER_BYTES, "{shared}");
    SockRef::from(&ends.0).set_send_buffer_size(5000).unwrap();
    assert_eq!(send_buffer(&ends.0), 2 * 5000, "it reads back what it set");
    let ending = cookie(&ends.0);
    let kept = loaded.send_buffer_bytes(|flow| flow.flow.cookie == ending);
    assert_eq!(kept, Some(shared as u64 / 2), "overridden");
    assert_eq!(neighbour.counted(ESTABLISHED), 4, "both ends of both flows");
    assert!(neighbour.counted(ROUND_TRIPS) > 0, "its callbacks");
    assert!(neighbour.counted(OPTIONS) > 0, "its look at options");
    drop(ends);
    until_alone(&loaded, &stays.0);
    let listed = loaded.kernel.flows().unwrap();
    assert!(
        listed.iter().all(|listed| listed.flow.cookie != ending),
        "it is forgotten"
    );
    drop(neighbour);
    told_ends(&loaded, flow(&listener)).contains(&ending)
}

#[test]
fn a_neighbour_that_keeps_our_callbacks_costs_nothing() {
    let Some(_alone) = alone() else { return };
    for order in [Order::OursFirst, Order::OursLast] {
        assert!(ends_are_told_beside(order, false), "{order:?}");
    }
}

#[test]
fn a_neighbour_that_overwrites_callbacks_before_ours_costs_nothing() {
    let Some(_alone) = alone() else { return };
    assert!(ends_are_told_beside(Order::OursLast, true));
}

/// Callback flags are the socket's: who is called last has the last word. The flow is tuned, its share goes back, and its
/// record is all that is missing.
#[test]
fn a_neighbour_that_overwrites_ours_costs_the_record_of_the_end() {
    let Some(_alone) = alone() else { return };
    assert!(!ends_are_told_beside(Order::OursFirst, true));
}

#[test]
fn a_sockops_program_of_somebody_else_is_named_and_ours_are_not() {
    let Some(_alone) = alone() else { return };
    let (loaded, _neighbour) = both_in(Order::OursLast, false);
    let places = Places::new(Some(loaded.pin_dir.clone()), None).unwrap();
    let others = fatpath_kernel::sockops_of_others(&places).unwrap();
    let seen = others.iter().filter(|it| it.name == "neighbour");
    assert_eq!(seen.count(), 1, "{others:?}");
    assert!(others.iter().all(|it| it.name != "tune"), "{others:?}");
    assert!(others.iter().all(|it| !it.is_exclusive), "{others:?}");
}
