// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real flows over an emulated path that loses, traced: what the adapter asks of a law that samples the delivery
//! rate goes to the law on the host, which must come to the same state at every step.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use fatpath_cc::{BbrPhase, Law, RateControl, RateFlow, RateSample};
use fatpath_emulator::unshaped::two_hosts;
use fatpath_emulator::{CellSpec, ChainSpec, ForwardOptions, Network};
use fatpath_kernel::{Build, Kernel, Places};
use fatpath_policy::{Classifier, Policy, parse};
use libbpf_rs::MapHandle;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use support::alone;
use support::ring::records_of;

const TRACED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/rate_trace.bpf.o"));

const POLICY: &str = "[[rule]]\nname = 'bbr'\ndestination = ['10.99.0.2']\n\
    congestion_control = { law = 'fp_bbr', headroom = 0.2 }\n";

/// Longer than `ProbeRTTInterval`, so that every phase is met.
const LASTS: Duration = Duration::from_secs(8);

/// `struct rate_step` of bpf/rate_trace.bpf.c.
#[repr(C)]
#[derive(Clone, Copy)]
struct Step {
    flow: RateFlow,
    sample: RateSample,
    question: u32,
    cwnd_pkts: u32,
    local_port: u32,
    pad: u32,
}

const BEGIN: u32 = 0;
const ACKED: u32 = 1;
const RECOVERY_BEGINS: u32 = 2;
const UNDONE: u32 = 3;

/// The kernel half with the law that tells, taken away when it is dropped.
struct Loaded {
    kernel: Kernel,
    pins: PathBuf,
}

impl Loaded {
    fn new() -> Loaded {
        let pins = PathBuf::from(format!("/sys/fs/bpf/fatpath-rate-{}", std::process::id()));
        let places = Places::new(Some(pins.clone()), None).unwrap();
        let build = Build::of_version(1003).with_object("rate_laws", TRACED.to_vec());
        let (kernel, _, missing) = Kernel::load_build(places, &Policy::default(), &build).unwrap();
        let loaded = Loaded { kernel, pins };
        assert!(missing.laws.is_none(), "{missing:?}");
        let policy = parse(POLICY, None).unwrap();
        let tables = Classifier::build(&policy);
        loaded.kernel.publish(&policy, &tables).unwrap();
        loaded
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if let Err(error) = self.kernel.unload() {
            eprintln!("unload: {error}");
        }
    }
}

/// 100 Mb/s, 20 ms, a queue of half of what that holds, one loss in 300.
fn path() -> Network {
    let delay = || CellSpec::delay(10_000_000);
    let rate = CellSpec::rate(100_000_000, Some(125_000));
    let name = format!("rate-{}", std::process::id());
    let lossy = ChainSpec::of([delay(), CellSpec::loss(1.0 / 300.0), rate]);
    let mut topology = two_hosts(&name, &lossy);
    topology.links[0].directions[1] = ChainSpec::of([delay()]);
    Network::up(&topology).unwrap()
}

/// As much as goes, with a pause in the middle; the sender's port.
fn send(network: &Network) -> u32 {
    let (client, server) = ["client", "server"]
        .map(|host| network.host(host).unwrap())
        .into();
    let listener = server
        .run(|| TcpListener::bind("10.99.0.2:0").unwrap())
        .unwrap();
    let to = listener.local_addr().unwrap();
    let mut sender = client.run(|| TcpStream::connect(to).unwrap()).unwrap();
    let mut receiver = listener.accept().unwrap().0;
    let port = sender.local_addr().unwrap().port();
    let received_bytes = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut bytes = vec![0; 1 << 20];
            while let Ok(more @ 1..) = receiver.read(&mut bytes) {
                received_bytes.fetch_add(more, Ordering::Relaxed);
            }
        });
        let mut sent_bytes = 0;
        for part in [LASTS.mul_f64(0.9), LASTS.mul_f64(0.1)] {
            let end = Instant::now() + part;
            while Instant::now() < end {
                sender.write_all(&[0; 1 << 16]).unwrap();
                sent_bytes += 1 << 16;
            }
            // The pause begins when nothing is left to send.
            let deadline = Instant::now() + Duration::from_secs(60);
            while received_bytes.load(Ordering::Relaxed) < sent_bytes {
                assert!(Instant::now() < deadline, "the receiver has not got it all");
                std::thread::sleep(Duration::from_millis(10));
            }
            std::thread::sleep(Duration::from_millis(500));
        }
        drop(sender);
    });
    port.into()
}

fn traced(loaded: &Loaded, work: impl FnOnce() -> u32) -> Vec<Step> {
    let ring = MapHandle::from_pinned_path(loaded.pins.join("fp_rate_steps")).unwrap();
    let (mut steps, port) = records_of::<Step, u32>(&ring, work);
    steps.retain(|step| step.local_port == port);
    steps
}

/// The host's flow after what the adapter asked of the kernel's.
fn ask(control: Option<RateControl>, law: Law, step: &Step) -> Option<RateControl> {
    if step.question == BEGIN {
        let clamp_pkts = RateControl::from_flow(law, step.flow).clamp_pkts();
        return Some(RateControl::new(
            law,
            step.cwnd_pkts,
            clamp_pkts,
            &step.sample,
        ));
    }
    let mut control = control?;
    control.set_cwnd_pkts(step.cwnd_pkts);
    match step.question {
        ACKED => control.acked(&RateSample {
            tx_in_flight_pkts: 0, // the law found it out
            lost_since_sent_pkts: 0,
            ..step.sample
        }),
        RECOVERY_BEGINS => control.recovery_begins(),
        UNDONE => control.undone(),
        _ => control.transmission_starts(&step.sample),
    }
    Some(control)
}

#[test]
fn a_real_flow_is_in_step_with_the_law_on_the_host() {
    let Some(_alone) = alone() else { return };
    let law = Law::named("bbr").unwrap().with("headroom", 0.2).unwrap();
    let network = path();
    let loaded = Loaded::new();
    let (steps, _) = network
        .forward_while(ForwardOptions::default(), |_| {
            traced(&loaded, || send(&network))
        })
        .unwrap();
    let mut control = None;
    let (mut asked, mut phases) = ([0; 5], BTreeSet::new());
    for (at, step) in steps.iter().enumerate() {
        control = ask(control, law, step);
        let ours = control.as_ref().expect("it begins before all else");
        assert_eq!(ours.flow(), &step.flow, "step {at}: {:?}", step.sample);
        asked[step.question as usize] += 1;
        phases.insert(ours.bbr().unwrap().phase.name());
    }
    println!("begin, acknowledged, recovery, undone, transmission: {asked:?}; {phases:?}");
    // An emulated machine sends a part of what the path takes.
    assert!(asked[1] > 300 && asked[2] > 3 && asked[4] > 0, "{asked:?}");
    assert!(phases.contains(BbrPhase::ProbeBwUp.name()), "{phases:?}");
    let bbr = control.unwrap().bbr().unwrap();
    let share = bbr.max_bw_pkts_per_s * 1448.0 * 8.0 / 95e6;
    // Of an emulated path that was late, a burst comes faster than the path's rate.
    assert!((0.05..1.5).contains(&share), "{share} of the path: {bbr:?}");
}
