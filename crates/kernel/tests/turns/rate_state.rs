// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is kept of a flow under a law that samples the delivery rate: people see it, and a flow for which there is no
//! memory goes on without it.

use crate::support::path::over;
use crate::support::turn;
use fatpath_api::{BbrPhase, Sample, TunedFlow};
use fatpath_emulator::CellSpec;
use fatpath_kernel::Kernel;
use fatpath_policy::{Classifier, parse};
use socket2::SockRef;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const RATE_BPS: u64 = 20_000_000;
/// With the 20 ms of the path, 34 segments; and as many in its queue.
const QUEUE_BYTES: u64 = 50_000;
/// In an emulated machine all is slow.
const LONG: Duration = Duration::from_secs(60);

fn path() -> [CellSpec; 2] {
    let rate = CellSpec::rate(RATE_BPS, Some(QUEUE_BYTES));
    [CellSpec::loss(1.0 / 300.0), rate]
}

fn publish(kernel: &Kernel, text: &str) {
    let policy = parse(text, None).unwrap();
    kernel
        .publish(&policy, &Classifier::build(&policy))
        .unwrap();
}

/// Sends until `is_enough`, or for too long.
fn send(connection: (TcpStream, TcpStream), mut is_enough: impl FnMut(&TcpStream) -> bool) {
    let (mut sender, mut receiver) = connection;
    std::thread::scope(|scope| {
        scope.spawn(move || while receiver.read(&mut [0; 1 << 16]).unwrap() > 0 {});
        let end = Instant::now() + LONG;
        while !is_enough(&sender) {
            assert!(Instant::now() < end, "not within {LONG:?}");
            sender.write_all(&[0; 1 << 16]).unwrap();
        }
        drop(sender);
    });
}

fn listed(kernel: &Kernel, sender: &TcpStream) -> Option<TunedFlow> {
    let local = sender.local_addr().unwrap();
    let mut flows = kernel.flows().unwrap().into_iter();
    flows.find(|flow| flow.flow.local == local)
}

fn walked(kernel: &Kernel, sender: &TcpStream) -> Sample {
    let local = sender.local_addr().unwrap();
    let mut found = None;
    let take = |sample: Sample| {
        if sample.flow.local == local {
            found = Some(sample);
        }
    };
    kernel.walk_samples(take).unwrap();
    found.unwrap()
}

#[test]
fn a_flow_shows_its_model_of_the_path() {
    let Some(turn) = turn() else { return };
    let rule =
        "[[rule]]\nname = 'bbr'\ndestination = ['10.99.0.2']\ncongestion_control = 'fp_bbr'\n";
    over("model", &path(), |path| {
        publish(&turn.kernel, rule);
        let mut shown = None;
        send(path.connection(), |sender| {
            let bbr = listed(&turn.kernel, sender).unwrap().bbr.unwrap();
            if bbr.phase == BbrPhase::Startup || bbr.bw_shortterm_bytes_per_s.is_none() {
                return false;
            }
            shown = Some((bbr, walked(&turn.kernel, sender).bbr.unwrap()));
            true
        });
        let (of_list, of_walk) = shown.unwrap();
        assert!(
            of_list.min_rtt_us.is_some_and(|us| us >= 20_000),
            "{of_list:?}"
        );
        for bbr in [of_list, of_walk] {
            let share = bbr.max_bw_bytes_per_s as f64 * 8.0 / RATE_BPS as f64;
            assert!((0.02..1.2).contains(&share), "{share}: {bbr:?}");
            assert!(bbr.bw_bytes_per_s <= bbr.max_bw_bytes_per_s, "{bbr:?}");
        }
        publish(&turn.kernel, &rule.replace("fp_bbr", "fp_reno"));
        send(path.connection(), |sender| {
            let flow = listed(&turn.kernel, sender).unwrap();
            assert_eq!(flow.bbr, None);
            true
        });
    });
}

#[test]
fn without_memory_a_flow_has_renos_window_and_is_counted() {
    let Some(turn) = turn() else { return };
    over("memory", &path(), |path| {
        if let Err(error) = path.host("client").set_sysctl("net.core.optmem_max", "0") {
            println!("left out: this kernel has no net.core.optmem_max of a namespace: {error}");
            return;
        }
        let uncounted = || turn.kernel.status().unwrap().counts.flows_without_storage;
        let (connection, before) = (path.connection(), uncounted());
        SockRef::from(&connection.0)
            .set_tcp_congestion(b"fp_bbr")
            .unwrap();
        assert_eq!(uncounted(), before + 1);
        let (mut sent, mut most_pkts) = (0, 0);
        send(connection, |sender| {
            let sample = walked(&turn.kernel, sender);
            assert_eq!((sample.law.as_str(), sample.bbr), ("fp_bbr", None));
            most_pkts = most_pkts.max(sample.cwnd_pkts);
            sent = sample.bytes_acked;
            sent > 3_000_000
        });
        // Slow start may double the 68 that the path and its queue hold before it hears of the loss.
        assert!((11..200).contains(&most_pkts), "{most_pkts}");
    });
}
