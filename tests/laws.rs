// SPDX-License-Identifier: MIT OR Apache-2.0
//! The laws and their start-up settings on the real kernel, over emulated paths: what a flow's
//! window does is compared with what the policy says.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};
use support::{Daemon, Lab, alone, until};

const PORT: u16 = 7001;

/// A rule for the flows to one port, whose buffers limit nothing.
fn rule(port: u16, keys: &str) -> String {
    format!(
        "[[rule]]\nname = 'port-{port}'\ndestination_ports = [{port}]\n\
         send_buffer = '8MiB'\nreceive_buffer = '8MiB'\n{keys}\n"
    )
}

fn policy(rules: &[String]) -> String {
    let prelude =
        "[host.sysctl]\n'net.core.rmem_max' = 'auto'\n'net.core.wmem_max' = 'auto'\n".to_owned();
    prelude + &rules.concat()
}

/// One flow from `a` to `b`, with what was sent read at once.
struct Transfer<'d> {
    daemon: &'d Daemon,
    sender: TcpStream,
    reader: Option<thread::JoinHandle<()>>,
}

impl<'d> Transfer<'d> {
    fn open(lab: &Lab, daemon: &'d Daemon, port: u16) -> Transfer<'d> {
        let (sender, mut receiver) = lab.connection(port);
        let reader =
            thread::spawn(move || while matches!(receiver.read(&mut [0; 65536]), Ok(1..)) {});
        Transfer {
            daemon,
            sender,
            reader: Some(reader),
        }
    }

    fn send(&self, bytes: usize) {
        (&self.sender).write_all(&vec![0; bytes]).unwrap();
    }

    /// Sends for as long as it lives.
    fn send_on(&self) {
        let mut sender = self.sender.try_clone().unwrap();
        thread::spawn(move || while sender.write(&[0; 65536]).is_ok() {});
    }

    fn flow(&self) -> Value {
        self.daemon.flow(self.sender.local_addr().unwrap())
    }

    /// Once so many bytes are acknowledged, and no more are on their way.
    fn quiet(&self, bytes: usize) -> Value {
        until("everything to be acknowledged", || {
            let flow = self.flow();
            let acked = number(&flow, "bytes_acked") >= bytes as f64;
            (acked && number(&flow, "in_flight_pkts") == 0.0).then_some(flow)
        })
    }
}

impl Drop for Transfer<'_> {
    fn drop(&mut self) {
        let _ = self.sender.shutdown(Shutdown::Both);
        self.reader.take().map(thread::JoinHandle::join);
    }
}

fn number(flow: &Value, key: &str) -> f64 {
    flow[key]
        .as_f64()
        .unwrap_or_else(|| panic!("no {key} in {flow:#}"))
}

fn cwnd(flow: &Value) -> f64 {
    number(flow, "cwnd_pkts")
}

/// Segments; none was found.
fn ssthresh(flow: &Value) -> Option<f64> {
    flow["ssthresh_pkts"].as_f64()
}

/// Mean window over three seconds.
fn mean_cwnd(transfer: &Transfer<'_>) -> f64 {
    let end = Instant::now() + Duration::from_secs(3);
    let mut windows = Vec::new();
    while Instant::now() < end {
        windows.push(cwnd(&transfer.flow()));
        thread::sleep(Duration::from_millis(7));
    }
    windows.iter().sum::<f64>() / windows.len() as f64
}

#[test]
fn each_law_has_the_window_of_its_formula_under_loss() {
    let Some(_alone) = alone() else { return };
    let loss: f64 = 0.001;
    let lab = Lab::up("formula", "delay = '4ms'\nloss = '0.1%'\nseed = 3");
    // AIMD: sqrt(a (2 - b) / (2 b p)); Scalable: the window that loses b W as often as it gains it,
    // a / (b p); HighSpeed: 0.12 / p^0.835 (RFC 3649, 5).
    let laws = [
        ("'fp_reno'", (1.5 / loss).sqrt()),
        ("{ law = 'fp_aimd', a = 6, b = 0.3 }", 130.4),
        (
            "{ law = 'fp_scalable', a = 0.02, b = 0.125 }",
            0.02 / (0.125 * loss),
        ),
        ("'fp_highspeed'", 0.12 / loss.powf(0.835)),
    ];
    let with = |law: &str| policy(&[rule(PORT, &format!("congestion_control = {law}"))]);
    let daemon = Daemon::start(&with(laws[0].0));
    for (law, formula_pkts) in laws {
        assert!(daemon.apply(&with(law)).status.success());
        let transfer = Transfer::open(&lab, &daemon, PORT);
        transfer.send_on();
        thread::sleep(Duration::from_secs(1));
        let mean_pkts = mean_cwnd(&transfer);
        let flow = transfer.flow();
        assert!(law.contains(flow["law"].as_str().unwrap()), "{flow}");
        assert!(
            (0.5..2.0).contains(&(mean_pkts / formula_pkts)),
            "{law}: {mean_pkts:.1} segments, {formula_pkts:.1} by its formula"
        );
    }
}

/// Windows from the first data on, each with the round trips since, rounded up.
fn windows(transfer: &Transfer<'_>, rtt: Duration, round_trips: u32) -> Vec<(f64, f64)> {
    let start = Instant::now();
    transfer.send_on();
    let mut seen = Vec::new();
    while start.elapsed() < rtt * round_trips {
        let pkts = cwnd(&transfer.flow());
        seen.push((start.elapsed().as_secs_f64() / rtt.as_secs_f64(), pkts));
    }
    seen
}

#[test]
fn limited_slow_start_adds_half_of_max_ssthresh_a_round_trip() {
    let Some(_alone) = alone() else { return };
    let lab = Lab::up("limited", "delay = '25ms'");
    let keys = "congestion_control = 'fp_reno'\nmax_ssthresh = 20";
    let daemon = Daemon::start(&policy(&[rule(PORT, keys)]));
    let transfer = Transfer::open(&lab, &daemon, PORT);
    let seen = windows(&transfer, Duration::from_millis(50), 24);
    // RFC 3742: past max_ssthresh by at most max_ssthresh / 2 a round trip; doubling would be at 2^20.
    for (round_trips, pkts) in &seen {
        assert!(
            *pkts <= 20.0 + 10.0 * round_trips + 2.0,
            "{pkts} at {round_trips}"
        );
    }
    assert!(seen.last().unwrap().1 > 60.0, "{seen:?}");
    assert_eq!(ssthresh(&transfer.flow()), None, "it is still slow start");
}

#[test]
fn slow_start_ends_at_the_initial_ssthresh() {
    let Some(_alone) = alone() else { return };
    let lab = Lab::up("ssthresh", "delay = '25ms'");
    // A clamp sets the kernel's own ssthresh, which must not win.
    let keys = "congestion_control = 'fp_reno'\ninitial_ssthresh = 40\ncwnd_clamp = 1000";
    let bdp =
        "congestion_control = 'fp_reno'\ninitial_ssthresh = 'bdp'\nrtt = '50ms'\nrate = '16mbit'";
    let daemon = Daemon::start(&policy(&[rule(PORT, keys), rule(PORT + 1, bdp)]));
    // 100,000 bytes in segments of 1448.
    for (port, threshold_pkts) in [(PORT, 40.0), (PORT + 1, 69.0)] {
        let transfer = Transfer::open(&lab, &daemon, port);
        let seen = windows(&transfer, Duration::from_millis(50), 16);
        for (round_trips, pkts) in &seen {
            assert!(
                *pkts <= threshold_pkts + round_trips + 2.0,
                "{pkts} at {round_trips}"
            );
        }
        assert!(seen.last().unwrap().1 > threshold_pkts, "{seen:?}");
        assert_eq!(ssthresh(&transfer.flow()), Some(threshold_pkts));
    }
}

#[test]
fn a_paced_start_spreads_the_first_window_over_the_round_trip() {
    let Some(_alone) = alone() else { return };
    let lab = Lab::up("paced", "delay = '1s'");
    let keys = "congestion_control = 'fp_reno'\ninitial_rate = '220kbit'";
    let daemon = Daemon::start(&policy(&[rule(PORT, keys)]));
    let transfer = Transfer::open(&lab, &daemon, PORT);
    let before = number(&transfer.flow(), "bytes_acked");
    // The threshold is the rate times the round-trip time of the handshake, and fits in the window
    // of a SYN, which is never more than 64 KiB.
    transfer.send(4_000_000);
    let mut in_flight: Vec<u64> = Vec::new();
    let first = until("an acknowledgement", || {
        let flow = transfer.flow();
        if number(&flow, "bytes_acked") > before {
            return Some(flow);
        }
        let target_pkts = ssthresh(&flow).unwrap();
        assert!((30.0..45.0).contains(&target_pkts), "{flow}");
        assert_eq!(cwnd(&flow), target_pkts);
        in_flight.push(number(&flow, "in_flight_pkts") as u64);
        None
    });
    // In a burst all of the first window would have been in flight at once.
    assert!(in_flight.is_sorted());
    in_flight.dedup();
    assert!(in_flight.len() >= 5, "{in_flight:?}");
    // Congestion avoidance follows: it sent what the path was said to hold.
    let target_pkts = ssthresh(&first).unwrap();
    assert!(
        (0.8 * target_pkts..=target_pkts + 2.0).contains(&cwnd(&first)),
        "{first}"
    );
}

/// A flow that has grown its window, and then has nothing to send for longer than its RTO. What it
/// sends then is still on its way when it is looked at.
fn after_pause(transfer: &Transfer<'_>) -> (f64, Value) {
    transfer.send(400_000);
    let before = transfer.quiet(400_000);
    thread::sleep(Duration::from_secs(4));
    transfer.send(1);
    let acked = number(&before, "bytes_acked");
    let flow = until("a segment to leave", || {
        let flow = transfer.flow();
        (number(&flow, "in_flight_pkts") > 0.0).then_some(flow)
    });
    assert_eq!(number(&flow, "bytes_acked"), acked, "looked too late");
    (cwnd(&before), flow)
}

#[test]
fn a_pause_leaves_of_the_window_what_the_rule_says_whatever_the_host_says() {
    let Some(_alone) = alone() else { return };
    let lab = Lab::up("pause", "delay = '300ms'");
    let rules = [(PORT, "keep"), (PORT + 1, "restart"), (PORT + 2, "pace")].map(|(port, idle)| {
        let keys =
            format!("congestion_control = 'fp_reno'\nafter_idle = '{idle}'\ninitial_ssthresh = 60");
        rule(port, &keys)
    });
    let daemon = Daemon::start(&policy(&rules));
    for slow_start_after_idle in ["1", "0"] {
        let sysctl = format!("net.ipv4.tcp_slow_start_after_idle={slow_start_after_idle}");
        lab.output("a", &["sysctl", "-w", &sysctl]);
        let [keep, restart, pace] =
            [PORT, PORT + 1, PORT + 2].map(|port| Transfer::open(&lab, &daemon, port));
        thread::scope(|scope| {
            scope.spawn(|| {
                let (before, after) = after_pause(&keep);
                assert_eq!(cwnd(&after), before, "{sysctl}");
            });
            scope.spawn(|| {
                let (before, after) = after_pause(&restart);
                assert!(cwnd(&after) <= before / 4.0, "{sysctl}: {after}");
            });
            scope.spawn(|| {
                let (before, after) = after_pause(&pace);
                assert_eq!(ssthresh(&after), Some(cwnd(&after)), "{sysctl}");
                assert!(cwnd(&after) >= (0.74 * before).floor(), "{sysctl}: {after}");
            });
        });
    }
}

/// A counter of the kernel, of host `a`.
fn counter(lab: &Lab, name: &str) -> u64 {
    let text = lab.output("a", &["nstat", "-asz", name]);
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_loss_that_was_none_is_undone() {
    let Some(_alone) = alone() else { return };
    let link = "rate = '50mbit'\ndelay = '20ms'\nqueue = '4bdp'\n\
                reorder = { share = '0.2%', by = 150, hold = '60ms' }\nseed = 5";
    let lab = Lab::up("undo", link);
    let keys = "congestion_control = { law = 'fp_scalable', b = 0.5 }\ninitial_ssthresh = 100";
    let daemon = Daemon::start(&policy(&[rule(PORT, keys)]));
    let transfer = Transfer::open(&lab, &daemon, PORT);
    transfer.send_on();
    let undone = || {
        ["TcpExtTCPDSACKUndo", "TcpExtTCPFullUndo"]
            .iter()
            .map(|name| counter(&lab, name))
            .sum::<u64>()
    };
    until("an undo", || (undone() > 0).then_some(()));
    // Nothing was lost: with each undo the threshold is again what it was.
    until("the window of before", || {
        let flow = transfer.flow();
        (ssthresh(&flow)? >= 100.0 && cwnd(&flow) >= 100.0).then_some(())
    });
}
