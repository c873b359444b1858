// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parameters that no policy can give, written straight into the map of rules: the law goes on as
//! Reno, and each flow that meets them is counted once for each change.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use fatpath_api::Measures;
use fatpath_kernel::{Kernel, Places};
use fatpath_policy::{Classifier, Policy, parse};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use socket2::{Domain, Socket, Type};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use support::alone;

/// Congestion avoidance from the beginning.
const POLICY: &str = "[[rule]]\nname = 'loopback'\ndestination = ['127.0.11.0/24']\n\
                      initial_window = 4\ninitial_ssthresh = 4\n\
                      congestion_control = { law = 'fp_aimd', a = 5, b = 0.3 }\n";

/// `law_params` stand right before `law` in `struct fp_rule`: six of four bytes.
const PARAMS_BYTES: usize = 24;

/// The kernel half with pins of its own, taken away when it is dropped.
struct Loaded {
    kernel: Kernel,
    pin_dir: PathBuf,
}

impl Loaded {
    fn with_policy() -> Loaded {
        let pin_dir = PathBuf::from(format!("/sys/fs/bpf/fatpath-bad-{}", std::process::id()));
        let places = Places::new(Some(pin_dir.clone()), None).unwrap();
        let (kernel, _, missing) = Kernel::load(places, &Policy::default()).unwrap();
        let loaded = Loaded { kernel, pin_dir };
        assert!(missing.laws.is_none(), "{missing:?}");
        let policy = parse(POLICY, None).unwrap();
        let tables = Classifier::build(&policy);
        loaded.kernel.publish(&policy, &tables).unwrap();
        loaded
    }

    /// Writes into the rule that gives the law, of which `law` is the place of its name.
    fn change(&self, change: impl Fn(&mut [u8], usize)) {
        let rules = MapHandle::from_pinned_path(self.pin_dir.join("fp_rules")).unwrap();
        let mut written = 0;
        for key in rules.keys() {
            let mut rule = rules.lookup(&key, MapFlags::ANY).unwrap().unwrap();
            let Some(law) = rule.windows(3).position(|bytes| bytes == b"fp_") else {
                continue;
            };
            change(&mut rule, law);
            rules.update(&key, &rule, MapFlags::ANY).unwrap();
            written += 1;
        }
        assert_eq!(written, 1);
    }

    /// The first parameter, thousandths.
    fn set_a(&self, a_milli: u32) {
        self.change(|rule, law| {
            let first = law - PARAMS_BYTES;
            rule[first..first + 4].copy_from_slice(&a_milli.to_ne_bytes());
        });
    }

    /// As long as the name that was there.
    fn set_law(&self, name: &[u8; 7]) {
        self.change(|rule, law| rule[law..law + 7].copy_from_slice(name));
    }

    fn bad(&self) -> u64 {
        self.kernel.counts().unwrap().bad_law_parameters
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if let Err(error) = self.kernel.unload() {
            eprintln!("unload: {error}");
        }
    }
}

/// A flow over the loopback device, in segments of 988 bytes: windows that its buffers do not limit.
struct Flow<'l> {
    loaded: &'l Loaded,
    sender: Socket,
    receiver: TcpStream,
}

impl Flow<'_> {
    fn open(loaded: &Loaded) -> Flow<'_> {
        let listener = TcpListener::bind("127.0.11.1:0").unwrap();
        let sender = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        sender.set_tcp_mss(1000).unwrap();
        let address = listener.local_addr().unwrap();
        sender.connect(&address.into()).unwrap();
        let receiver = listener.accept().unwrap().0;
        Flow {
            loaded,
            sender,
            receiver,
        }
    }

    fn measures(&self) -> Measures {
        let local = self.sender.local_addr().unwrap().as_socket();
        let mut flows = self.loaded.kernel.flows().unwrap().into_iter();
        flows
            .find(|flow| Some(flow.flow.local) == local)
            .unwrap()
            .measures
    }

    /// Sends so many segments, and is back when they have arrived.
    fn carry(&mut self, pkts: u32) {
        let data = vec![0; (pkts * self.measures().mss_bytes) as usize];
        let (mut sender, receiver) = (&self.sender, &mut self.receiver);
        std::thread::scope(|scope| {
            scope.spawn(|| sender.write_all(&data).unwrap());
            receiver.read_exact(&mut vec![0; data.len()]).unwrap();
        });
    }

    /// The window after `pkts`, and the one to which a segments a round trip lead: w² / 2 grows by a
    /// for each acknowledged segment.
    fn windows_after(&mut self, pkts: u32, a: f64) -> (f64, f64) {
        let before = f64::from(self.measures().cwnd_pkts);
        self.carry(pkts);
        let after = f64::from(self.measures().cwnd_pkts);
        (after, (before * before + 2.0 * a * f64::from(pkts)).sqrt())
    }
}

#[test]
fn a_law_with_bad_parameters_is_reno_and_is_counted_once() {
    let Some(_alone) = alone() else { return };
    let loaded = Loaded::with_policy();
    for (change, a_milli) in [(1, 0), (2, u32::MAX)] {
        loaded.set_a(5000);
        let mut flow = Flow::open(&loaded);
        flow.carry(1);
        assert_eq!(loaded.bad(), change - 1);
        loaded.set_a(a_milli);
        let (window, renos) = flow.windows_after(2000, 1.0);
        assert!(
            (0.7..1.1).contains(&(window / renos)),
            "{window}, and Reno has {renos}"
        );
        assert_eq!(loaded.bad(), change);
        loaded.set_a(5000);
        let (window, aimds) = flow.windows_after(2000, 5.0);
        assert!(
            (0.7..1.1).contains(&(window / aimds)),
            "{window}, and AIMD has {aimds}"
        );
        assert_eq!(loaded.bad(), change);
        assert_eq!(flow.measures().law, "fp_aimd");
    }
}

#[test]
fn bad_parameters_that_come_back_are_counted_again() {
    let Some(_alone) = alone() else { return };
    let loaded = Loaded::with_policy();
    let mut flow = Flow::open(&loaded);
    loaded.set_a(0);
    flow.carry(200);
    assert_eq!(loaded.bad(), 1);
    // The rule gives another law, the flow keeps its own: with the law's initial parameters.
    loaded.set_law(b"fp_reno");
    flow.carry(200);
    assert_eq!(loaded.bad(), 1);
    loaded.set_law(b"fp_aimd");
    flow.carry(200);
    assert_eq!(loaded.bad(), 2);
}
