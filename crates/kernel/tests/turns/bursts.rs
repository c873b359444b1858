// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pacing` and `max_burst` on real flows: how much of a window leaves at once, and that a rule that no longer
//! gives them takes them back from a live flow.

use crate::support::path::{Path, over};
use crate::support::{Turn, turn};
use fatpath_api::TunedFlow;
use fatpath_emulator::CellSpec;
use fatpath_kernel::Kernel;
use fatpath_policy::{Classifier, Policy, parse};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// So long that no acknowledgement comes while a test looks at what left: 20 ms are the path's own.
const DELAY: Duration = Duration::from_millis(380);
/// The initial window; the peer takes it at once from the beginning.
const WINDOW_PKTS: u32 = 30;
const MSS_BYTES: usize = 1448;
/// Half of a window that is paced at twice its rate (slow start) has left by then.
const SOON: Duration = Duration::from_millis(100);
/// In an emulated machine all is slow.
const LONG: Duration = Duration::from_secs(60);

fn publish(kernel: &Kernel, keys: &str) {
    let text = format!(
        "[[rule]]\nname = 'burst'\ndestination = ['10.99.0.2']\nsend_buffer = 4000000\n\
         initial_window = {WINDOW_PKTS}\n{keys}\n"
    );
    publish_policy(kernel, &parse(&text, None).unwrap());
}

fn publish_policy(kernel: &Kernel, policy: &Policy) {
    kernel.publish(policy, &Classifier::build(policy)).unwrap();
}

/// A connection whose window of `WINDOW_PKTS` is written and read, again and again.
struct Sent<'t> {
    kernel: &'t Kernel,
    sender: TcpStream,
    receiver: TcpStream,
}

impl<'t> Sent<'t> {
    fn over(path: &Path, kernel: &'t Kernel) -> Sent<'t> {
        let (sender, receiver) = path.connection();
        sender.set_nodelay(true).unwrap();
        Sent {
            kernel,
            sender,
            receiver,
        }
    }

    fn flow(&self) -> TunedFlow {
        let local = self.sender.local_addr().unwrap();
        let flows = self.kernel.flows().unwrap();
        flows
            .into_iter()
            .find(|flow| flow.flow.local == local)
            .unwrap()
    }

    fn in_flight_pkts(&self) -> u32 {
        self.flow().measures.in_flight_pkts
    }

    /// What is in flight right after a whole window was written. A slow machine that looked too late tries again.
    fn burst_pkts(&mut self) -> u32 {
        let end = Instant::now() + LONG;
        loop {
            let written = Instant::now();
            let (in_flight_pkts, seen) = self.write_window();
            if seen - written < SOON {
                return in_flight_pkts;
            }
            assert!(Instant::now() < end, "looked too late each time");
        }
    }

    /// What is in flight after it, and when that was known; then all arrives.
    fn write_window(&mut self) -> (u32, Instant) {
        self.sender
            .write_all(&[0; WINDOW_PKTS as usize * MSS_BYTES])
            .unwrap();
        let in_flight = (self.in_flight_pkts(), Instant::now());
        let mut got = [0; WINDOW_PKTS as usize * MSS_BYTES];
        self.receiver.read_exact(&mut got).unwrap();
        self.settle();
        in_flight
    }

    /// Until all is acknowledged.
    fn settle(&self) {
        let end = Instant::now() + LONG;
        while self.in_flight_pkts() > 0 {
            assert!(Instant::now() < end, "{:?}", self.flow().measures);
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn with_slow_path(name: &str, work: impl FnOnce(&Turn, &Path)) {
    let Some(turn) = turn() else { return };
    let delay = CellSpec::delay(DELAY.as_nanos() as u64);
    over(name, &[delay], |path| {
        let client = path.host("client");
        client
            .set_sysctl("net.ipv4.tcp_slow_start_after_idle", "0")
            .unwrap();
        work(&turn, path);
    });
}

#[test]
fn max_burst_bounds_what_leaves_at_once_and_loses_no_window() {
    with_slow_path("max-burst", |turn, path| {
        let laws = ["fp_reno", "fp_cubic"];
        for law in laws {
            let rule =
                |more: &str| format!("congestion_control = '{law}'\nhystart = false\n{more}");
            publish(&turn.kernel, &rule("max_burst = 10"));
            let mut sent = Sent::over(path, &turn.kernel);
            assert_eq!(sent.burst_pkts(), 10, "{law}");
            publish(&turn.kernel, &rule(""));
            assert_eq!(sent.burst_pkts(), WINDOW_PKTS, "{law}: the window is whole");
            publish(&turn.kernel, &rule("max_burst = 20"));
            sent.burst_pkts();
            assert_eq!(sent.burst_pkts(), 20, "{law}");
        }
    });
}

#[test]
fn pacing_spreads_the_window_of_any_law_and_ends_with_the_rule() {
    with_slow_path("pacing", |turn, path| {
        for law in ["reno", "fp_reno"] {
            let rule = |more: &str| format!("congestion_control = '{law}'\n{more}");
            publish(&turn.kernel, &rule("pacing = true"));
            let mut sent = Sent::over(path, &turn.kernel);
            assert!(sent.burst_pkts() < WINDOW_PKTS, "{law}");
            assert!(sent.burst_pkts() < WINDOW_PKTS, "{law}: also later");
            publish(&turn.kernel, &rule(""));
            assert_eq!(sent.flow().measures.law, law);
            assert_eq!(
                sent.burst_pkts(),
                WINDOW_PKTS,
                "{law}: without the rule's pacing"
            );
            publish(&turn.kernel, &rule("pacing = true"));
            assert!(sent.burst_pkts() < WINDOW_PKTS, "{law}: a live flow");
            publish_policy(&turn.kernel, &Policy::default());
            publish(&turn.kernel, &rule(""));
            assert_eq!(sent.burst_pkts(), WINDOW_PKTS, "{law}: its rule was gone");
            publish(&turn.kernel, &rule("pacing = true"));
            publish(&turn.kernel, &rule("pacing = true\npacing_rate = '1gbit'"));
            publish(&turn.kernel, &rule("pacing_rate = '1gbit'"));
            assert!(
                sent.burst_pkts() < WINDOW_PKTS,
                "{law}: its rate still paces it"
            );
        }
    });
}
