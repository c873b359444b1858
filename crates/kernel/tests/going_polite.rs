// SPDX-License-Identifier: MIT OR Apache-2.0
//! RUDE_OFF_NICELY on the real kernel, against Table 1 of the paper: the artificial window R and the fair
//! one F, at every acknowledgement of a real flow over an emulated path.
#![allow(unsafe_code)] // a record is the bytes of a struct
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use fatpath_api::RudeMark;
use fatpath_emulator::unshaped::two_hosts;
use fatpath_emulator::{CellSpec, ChainSpec, ForwardOptions, Network};
use fatpath_policy::{Classifier, parse};
use libbpf_rs::{MapCore, Object, ObjectBuilder, RingBufferBuilder};
use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};
use support::option::{RUDE_OFF_NICELY, RUDE_ON, set_rude};
use support::{Loaded, Mode, alone};

const TRACE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/rude_trace.bpf.o"));

/// 90 % of a path: 180 segments a round trip, and a fair window of some 15. A guest carries a third of it.
const POLICY: &str = "[[rule]]\nname = 'path'\ndestination = ['10.99.0.0/24']\nsend_buffer = '4MB'\n\
                      receive_buffer = '4MB'\nrude = 'allowed'\nrude_rate = '9mbit'\n";
const RATE_BPS: u64 = 10_000_000;
const ONE_WAY_NS: u64 = 120_000_000;
const LOSS: f64 = 0.006;

/// `TCP_CA_Open`.
const OPEN: u32 = 0;

/// `struct rude_step` of bpf/rude_trace.bpf.c.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Step {
    mode: u32,
    ca_state: u32,
    r_pkts: u32,
    ssthresh_pkts: u32,
    fair_pkts: u32,
}

impl Step {
    fn is(&self, mode: Mode) -> bool {
        self.mode == mode as u32
    }

    fn is_far_above(&self) -> bool {
        self.ca_state == OPEN && self.r_pkts > 4 * self.fair_pkts
    }

    fn windows(&self) -> (u32, u32) {
        (self.r_pkts, self.fair_pkts)
    }
}

fn path() -> Network {
    let delay = || CellSpec::delay(ONE_WAY_NS);
    let rate = CellSpec::rate(RATE_BPS, Some(100_000));
    let mut topology = two_hosts(
        &format!("polite-{}", std::process::id()),
        &ChainSpec::of([delay(), CellSpec::loss(LOSS), rate]),
    );
    topology.links[0].directions[1] = ChainSpec::of([delay()]);
    Network::up(&topology).unwrap()
}

fn loaded(network: &Network) -> Loaded {
    let loaded = Loaded::at("polite");
    let missing = &loaded.laws_missing;
    assert!(missing.is_none(), "{missing:?}");
    let policy = parse(POLICY, None).unwrap();
    let tables = Classifier::build(&policy);
    loaded.kernel.publish(&policy, &tables).unwrap();
    let hosts = ["client", "server"].map(|host| network.host(host).unwrap().name().to_owned());
    loaded
        .kernel
        .open_rude_gate(RudeMark::default(), &hosts)
        .unwrap();
    loaded
}

fn connection(network: &Network) -> (TcpStream, TcpStream) {
    let (client, server) = ["client", "server"]
        .map(|host| network.host(host).unwrap())
        .into();
    let listen = || TcpListener::bind("10.99.0.2:7100").unwrap();
    let listener = server.run(listen).unwrap();
    let connect = || TcpStream::connect("10.99.0.2:7100").unwrap();
    let sender = client.run(connect).unwrap();
    (sender, listener.accept().unwrap().0)
}

/// Ends one end of a connection, whatever is still unsent, so that whoever sends or reads there ends too.
struct Ends<'s>(&'s TcpStream);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

/// What the steps of a flow that goes polite nicely show of Table 1: how often both windows grew and fell
/// between two ACKs in Open, and whether R began well above F. A loss rate decides how many of them there are,
/// so that several turns are taken until there are enough.
#[derive(Debug, Default)]
struct Seen {
    increases: u32,
    decreases: u32,
    apart: bool,
}

impl Seen {
    fn is_enough(&self) -> bool {
        self.increases > 10 && self.decreases > 1 && self.apart
    }
}

/// The steps of one flow, as they come.
struct Traced<'t> {
    ring: libbpf_rs::RingBuffer<'t>,
    steps: &'t RefCell<Vec<Step>>,
}

impl<'t> Traced<'t> {
    fn of(trace: &Object, steps: &'t RefCell<Vec<Step>>) -> Traced<'t> {
        let map = trace.maps().find(|map| map.name() == "rude_steps").unwrap();
        let mut ring = RingBufferBuilder::new();
        ring.add(&map, |bytes| {
            assert!(bytes.len() >= size_of::<Step>());
            // SAFETY: a struct of integers, written by its twin.
            let step: Step = unsafe { bytes.as_ptr().cast::<Step>().read_unaligned() };
            steps.borrow_mut().push(step);
            0
        })
        .unwrap();
        let ring = ring.build().unwrap();
        Traced { ring, steps }
    }

    fn until(&self, is_so: impl Fn(&[Step]) -> bool) {
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(120) {
            self.ring.poll(Duration::from_millis(50)).unwrap();
            if is_so(&self.steps.borrow()) {
                return;
            }
        }
        panic!(
            "it does not come, after {} steps",
            self.steps.borrow().len()
        );
    }

    /// Rude until its fair window is that of the path's loss and R is well above it, then polite nicely; the
    /// steps of it.
    fn turn(&self, sender: &TcpStream) -> Vec<Step> {
        self.steps.borrow_mut().clear();
        set_rude(sender, RUDE_ON).unwrap();
        self.until(|steps| steps.len() > 1_000 && steps.last().unwrap().is_far_above());
        set_rude(sender, RUDE_OFF_NICELY).unwrap();
        self.until(|steps| steps.last().unwrap().is(Mode::Polite));
        self.steps.take()
    }
}

/// At most this many turns; each shows some decreases, or none if it began in a recovery that lasted.
const TURNS: u32 = 10;

fn turns(network: &Network, trace: &Object) -> Seen {
    let steps = RefCell::default();
    let traced = Traced::of(trace, &steps);
    let (sender, mut receiver) = connection(network);
    let reading = receiver.try_clone().unwrap();
    let mut seen = Seen::default();
    thread::scope(|scope| {
        scope.spawn(|| while matches!(receiver.read(&mut [0; 65536]), Ok(1..)) {});
        scope.spawn(|| while (&sender).write(&[0; 65536]).is_ok() {});
        let _ends = [Ends(&sender), Ends(&reading)];
        for turn in 1..=TURNS {
            see(&traced.turn(&sender), &mut seen);
            println!("after turn {turn}: {seen:?}");
            if seen.is_enough() {
                break;
            }
        }
    });
    seen
}

/// Both grew by as much, or R was not in use and F grew alone.
fn is_increase(before: &Step, after: &Step) -> bool {
    let (r_more, fair_more) = (
        after.r_pkts.checked_sub(before.r_pkts),
        after.fair_pkts.checked_sub(before.fair_pkts),
    );
    fair_more.is_some() && (r_more == fair_more || r_more == Some(0))
}

/// Reno's half, up to three times in one recovery, of both, and what the ACK before it and the one that ends
/// it add to both: a step is what an ACK finds, not what it leaves.
fn is_decrease(before: &Step, after: &Step) -> bool {
    (0..=1).any(|grown| {
        let (r_pkts, fair_pkts) = before.windows();
        is_halved((r_pkts + grown, fair_pkts + grown), after)
    })
}

fn is_halved((mut r_pkts, mut fair_pkts): (u32, u32), after: &Step) -> bool {
    (1..=3).any(|_| {
        let half_pkts = (fair_pkts / 2).max(2);
        let ratio = f64::from(half_pkts) / f64::from(fair_pkts);
        r_pkts = (r_pkts / 2)
            .min((f64::from(r_pkts) * ratio) as u32)
            .max(half_pkts);
        fair_pkts = half_pkts;
        (0..=2).any(|more| after.windows() == (r_pkts + more, fair_pkts + more))
    })
}

/// Every two ACKs in Open of one turn against Table 1, and its end: R is F again.
fn see(steps: &[Step], seen: &mut Seen) {
    let going: Vec<&Step> = steps
        .iter()
        .filter(|step| step.is(Mode::GoingPolite))
        .collect();
    let open: Vec<usize> = (0..going.len())
        .filter(|at| going[*at].ca_state == OPEN)
        .collect();
    for pair in open.windows(2) {
        let (before, after) = (going[pair[0]], going[pair[1]]);
        if pair[1] == pair[0] + 1 {
            assert!(is_increase(before, after), "{before:?} {after:?}");
            seen.increases += u32::from(after.fair_pkts > before.fair_pkts);
        } else if before.windows() != after.windows() {
            let meanwhile = &going[pair[0]..=pair[1]];
            assert!(is_decrease(before, after), "{meanwhile:?}");
            seen.decreases += 1;
        }
    }
    let (Some(first), Some(last)) = (open.first(), going.last()) else {
        return;
    };
    let first = going[*first];
    println!("{} steps, from {first:?} to {last:?}", going.len());
    seen.apart |= first.r_pkts > 2 * first.fair_pkts;
    let polite = steps.last().unwrap();
    assert!(polite.r_pkts <= last.fair_pkts + 1, "{last:?} {polite:?}");
    // In recovery the kernel has R on its way down, and the ACK that ends it ends this too.
    if last.ca_state == OPEN {
        assert!(last.r_pkts - last.fair_pkts <= 2, "{last:?}");
    }
}

#[test]
fn nicely_both_windows_go_as_table_1_says() {
    let Some(_alone) = alone() else { return };
    let network = path();
    let loaded = loaded(&network);
    let mut builder = ObjectBuilder::default();
    let open = builder
        .pin_root_path(&loaded.pin_dir)
        .unwrap()
        .open_memory(TRACE)
        .unwrap();
    let trace = open.load().unwrap();
    let program = trace.progs_mut().next().unwrap();
    let _link = program.attach().unwrap();
    let flow = |_: &_| turns(&network, &trace);
    let (seen, _) = network
        .forward_while(ForwardOptions::default(), flow)
        .unwrap();
    assert!(seen.is_enough(), "{seen:?}");
}
