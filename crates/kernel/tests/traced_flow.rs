// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real flows, traced: what the adapter met at every acknowledgement goes to the law on the host, which
//! must come to the same window and memory at every step.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use fatpath_cc::{Control, Law, Start, Window};
use fatpath_emulator::{Namespace, remove_namespace};
use fatpath_kernel::{Kernel, Places};
use fatpath_policy::{Classifier, Policy, parse};
use libbpf_rs::{Link, MapCore, Object, ObjectBuilder};
use socket2::{Domain, Socket, Type};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use support::ring::records_of;
use support::{alone, wire};

const TRACE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/trace.bpf.o"));

/// `TCP_CA_Open`.
const OPEN: u32 = 0;

/// `struct step` of bpf/trace.bpf.c.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Step {
    window: Window,
    delivered_pkts: u32,
    snd_una: u32,
    max_packets_out: u32,
    is_cwnd_limited: u32,
    ca_state: u32,
    tlp_high_seq: u32,
    local_port: u32,
}

impl Step {
    /// `tcp_is_cwnd_limited()`.
    fn is_in_full_use(&self) -> bool {
        let cwnd_pkts = self.window.cwnd_pkts;
        let is_slow_start = cwnd_pkts < self.window.ssthresh_pkts;
        self.is_cwnd_limited != 0 || is_slow_start && cwnd_pkts < 2 * self.max_packets_out
    }

    /// Only the law changes the window at the next acknowledgement: a window that was cut for a loss, or
    /// will be for what a tail loss probe repaired, is the kernel's.
    fn is_open(&self) -> bool {
        self.ca_state == OPEN && self.tlp_high_seq == 0
    }
}

/// One rule a law: slow start to 30 segments, and then the law.
fn policy(laws: &[(&str, Law)]) -> String {
    let rules = laws.iter().zip(1..).map(|((law, _), last_byte)| {
        format!(
            "[[rule]]\nname = 'law-{last_byte}'\ndestination = ['127.0.12.{last_byte}']\n\
             initial_window = 4\ninitial_ssthresh = 30\nhystart = false\ncongestion_control = {law}\n"
        )
    });
    rules.collect()
}

/// The kernel half, taken away when it is dropped.
struct Loaded(Kernel);

impl Loaded {
    fn with(policy: &str) -> Loaded {
        let pins = PathBuf::from(format!("/sys/fs/bpf/fatpath-trace-{}", std::process::id()));
        let (kernel, _, missing) =
            Kernel::load(Places::new(Some(pins), None).unwrap(), &Policy::default()).unwrap();
        let loaded = Loaded(kernel);
        assert!(missing.laws.is_none(), "{missing:?}");
        let policy = parse(policy, None).unwrap();
        loaded
            .0
            .publish(&policy, &Classifier::build(&policy))
            .unwrap();
        loaded
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if let Err(error) = self.0.unload() {
            eprintln!("unload: {error}");
        }
    }
}

/// A namespace in which the kernel leaves windows alone when a slow guest makes a pause.
struct Host(Namespace);

impl Host {
    fn new() -> Host {
        let host = Namespace::create(&format!("fpt-trace-{}", std::process::id())).unwrap();
        wire::run(&host, "ip link set lo up");
        host.set_sysctl("net.ipv4.tcp_slow_start_after_idle", "0")
            .unwrap();
        Host(host)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = remove_namespace(self.0.name());
    }
}

/// A connection with segments of 988 bytes.
struct Flow {
    sender: Socket,
    receiver: TcpStream,
}

impl Flow {
    fn open(to: &str) -> Flow {
        let listener = TcpListener::bind((to, 0)).unwrap();
        let sender = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        sender.set_tcp_mss(1000).unwrap();
        let address = listener.local_addr().unwrap().into();
        sender.connect(&address).unwrap();
        let receiver = listener.accept().unwrap().0;
        Flow { sender, receiver }
    }

    /// Carries thirty megabytes. The sender's port.
    fn carry(&mut self) -> u32 {
        // Written to, so that a slow guest's receiver reads at once: its window would close while the kernel
        // finds it memory.
        let (data, mut arrived) = (vec![1; 30_000_000], vec![1; 30_000_000]);
        std::thread::scope(|scope| {
            scope.spawn(|| self.receiver.read_exact(&mut arrived).unwrap());
            self.sender.write_all(&data).unwrap();
        });
        let address = self.sender.local_addr().unwrap();
        address.as_socket().unwrap().port().into()
    }
}

fn traced(object: &Object, transfer: impl FnOnce() -> u32) -> Vec<Step> {
    let ring = object.maps().find(|map| map.name() == "steps").unwrap();
    let (mut steps, port) = records_of::<Step, u32>(&ring, transfer);
    steps.retain(|step| step.local_port == port);
    steps
}

/// The trace, while the link is kept.
fn tracing() -> (Object, Link) {
    let open = ObjectBuilder::default().open_memory(TRACE).unwrap();
    let object = open.load().unwrap();
    let link = object.progs_mut().next().unwrap().attach().unwrap();
    (object, link)
}

/// What the law on the host makes of each acknowledgement; how many let the window grow.
fn follow(law: Law, steps: &[Step]) -> usize {
    let mut control = Control::new(law, Start::default());
    let mut grown = 0;
    for pair in steps.windows(2) {
        let (step, next) = (&pair[0], &pair[1]);
        if !step.is_open() || next.ca_state != OPEN {
            continue;
        }
        let mut window = Window {
            srtt_us: next.window.srtt_us,
            now_us: next.window.now_us,
            ..step.window
        };
        if step.snd_una != next.snd_una && step.is_in_full_use() {
            control.acked(&mut window, next.delivered_pkts - step.delivered_pkts);
        }
        assert_eq!(window, next.window, "{law} at {step:?}");
        grown += usize::from(window.cwnd_pkts > step.window.cwnd_pkts);
    }
    grown
}

#[test]
fn a_real_flow_has_the_window_of_the_law_on_the_host() {
    let Some(_alone) = alone() else { return };
    let cubic = Law::from_values("cubic", &[2_000, 600]).unwrap();
    let laws = [
        ("'fp_reno'", Law::RENO),
        (
            "{ law = 'fp_aimd', a = 5, b = 0.3 }",
            Law::aimd(5.0, 0.3).unwrap(),
        ),
        ("'fp_scalable'", Law::named("scalable").unwrap()),
        ("'fp_highspeed'", Law::named("highspeed").unwrap()),
        ("{ law = 'fp_cubic', c = 2, beta = 0.6 }", cubic),
    ];
    let _loaded = Loaded::with(&policy(&laws));
    let host = Host::new();
    let (object, _link) = tracing();
    for ((name, law), last_byte) in laws.into_iter().zip(1..) {
        let to = format!("127.0.12.{last_byte}");
        let steps = traced(&object, || host.0.run(|| Flow::open(&to).carry()).unwrap());
        let grown = follow(law, &steps);
        println!("{name}: {} acknowledgements, {grown} grew", steps.len());
        assert!(steps.len() > 100 && grown > 20, "{} steps", steps.len());
    }
}

#[test]
fn a_flow_whose_program_changes_the_law_goes_on_by_the_new_one() {
    let Some(_alone) = alone() else { return };
    let _loaded = Loaded::with(&policy(&[("'fp_scalable'", Law::RENO)]));
    let host = Host::new();
    let (object, _link) = tracing();
    let mut flow = host.0.run(|| Flow::open("127.0.12.1")).unwrap();
    for law in ["scalable", "cubic", "highspeed"] {
        flow.sender
            .set_tcp_congestion(format!("fp_{law}").as_bytes())
            .unwrap();
        let steps = traced(&object, || flow.carry());
        let grown = follow(Law::named(law).unwrap(), &steps);
        println!("{law}: {} acknowledgements, {grown} grew", steps.len());
        assert!(grown > 5, "{law}: {} steps", steps.len());
    }
}
