// SPDX-License-Identifier: MIT OR Apache-2.0
//! The laws on the real kernel, over emulated paths: what a flow's window does is compared with the
//! law's formula and with the window before a loss that was none.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use support::transfer::{PORT, Transfer, cwnd, number, policy, rule, ssthresh};
use support::{Daemon, Lab, alone, shared, until};

const LAWS: [&str; 5] = [
    "fp_reno",
    "fp_aimd",
    "fp_scalable",
    "fp_highspeed",
    "fp_cubic",
];

/// Mean window between the first loss and the fourth: three whole periods.
fn mean_cwnd(transfer: &Transfer<'_>) -> f64 {
    let mut windows = Vec::new();
    until("three losses after the first", || {
        let flow = transfer.flow();
        let losses = number(&flow, "segments_retransmitted");
        if losses >= 1.0 {
            windows.push(cwnd(&flow));
        }
        (losses >= 4.0).then_some(())
    });
    windows.iter().sum::<f64>() / windows.len() as f64
}

#[test]
fn each_law_has_the_window_of_its_formula_under_loss() {
    let Some(_alone) = alone() else { return };
    // One of so many is lost, for the formulas are of a period between two losses.
    let loss: f64 = 1e-4;
    let link = "delay = '10ms'\nforward = { loss = { every = 10000, first = 3000 } }";
    let lab = Lab::up("formula", link);
    // AIMD: sqrt(a (2 - b) / (2 b p)). Scalable: 1/p segments in log(1 / (1 - b)) / a round trips.
    // HighSpeed: 0.12 / p^0.835 (RFC 3649, 5), more than twice what Reno has here.
    let laws = [
        ("'fp_reno'", (1.5 / loss).sqrt()),
        ("{ law = 'fp_aimd', a = 6, b = 0.5 }", (9.0 / loss).sqrt()),
        (
            "{ law = 'fp_scalable', a = 0.004, b = 0.125 }",
            0.004 / (loss * (1.0_f64 / 0.875).ln()),
        ),
        ("'fp_highspeed'", 0.12 / loss.powf(0.835)),
    ];
    // Slow start is over before the first loss, near the window that there will be.
    let with = |law: &str, formula_pkts: f64| {
        let keys = format!("congestion_control = {law}\ninitial_ssthresh = {formula_pkts:.0}");
        policy(&[rule(PORT, &keys)])
    };
    let daemon = Daemon::start(&with(laws[0].0, laws[0].1));
    for (law, formula_pkts) in laws {
        assert!(daemon.apply(&with(law, formula_pkts)).status.success());
        // A sender that is kept from the processor does not use its window, which then does not grow.
        let mut printed = String::new();
        let is_near = (0..3).any(|_| {
            let mean_pkts = mean_cwnd_of_new_flow(&lab, &daemon, law);
            printed +=
                &format!("{law}: {mean_pkts:.1} segments, {formula_pkts:.1} by its formula\n");
            (0.7..1.4).contains(&(mean_pkts / formula_pkts))
        });
        assert!(is_near, "{printed}");
        print!("{printed}");
    }
}

fn mean_cwnd_of_new_flow(lab: &Lab, daemon: &Daemon, law: &str) -> f64 {
    let transfer = Transfer::open(lab, daemon, PORT);
    transfer.send_on();
    let mean_pkts = mean_cwnd(&transfer);
    let flow = transfer.flow();
    assert!(law.contains(flow["law"].as_str().unwrap()), "{flow}");
    mean_pkts
}

/// The clamp: all of the window is in use, and each loss finds it.
const WINDOW_PKTS: f64 = 100.0;

/// The first of the ports of a test whose flows share the daemon: one port for each law.
mod ports {
    pub const LOSS: u16 = 7101;
    pub const TIMEOUT: u16 = 7111;
    pub const MTU: u16 = 7121;
    pub const CHANGE: u16 = 7131;
}

fn all_rules() -> String {
    // The laws do nothing but lose a part of the window and get it back.
    let clamp = format!(
        "initial_window = {WINDOW_PKTS}\ncwnd_clamp = {WINDOW_PKTS}\ninitial_ssthresh = 50"
    );
    let rules = [
        (ports::LOSS, &*clamp),
        (ports::TIMEOUT, &clamp),
        (ports::MTU, ""),
        (ports::CHANGE, ""),
    ];
    let each_law = rules.into_iter().flat_map(|(first, keys)| {
        let rules = (first..).zip(LAWS);
        rules.map(move |(port, law)| rule(port, &format!("congestion_control = '{law}'\n{keys}")))
    });
    policy(&each_law.collect::<Vec<_>>())
}

/// With each law: the kernel counts a loss as none, and the window and the threshold are those of before.
fn each_law_takes_back(daemon: &Daemon, lab: &Lab, first_port: u16, undos: &[&str]) {
    for (port, law) in (first_port..).zip(LAWS) {
        let transfer = Transfer::open(lab, daemon, port);
        let before = lab.counted("a", undos);
        transfer.send_on();
        until("an undo", || {
            (lab.counted("a", undos) > before).then_some(())
        });
        // Within the same round trip: acknowledgements alone would take many from any smaller window.
        let flow = transfer.flow();
        assert_eq!(flow["law"], law);
        assert_eq!(cwnd(&flow), WINDOW_PKTS, "{flow}");
        // tcp_current_ssthresh(): three quarters of the window that was no loss's.
        assert!(ssthresh(&flow).unwrap() >= 0.75 * WINDOW_PKTS, "{flow}");
    }
}

#[test]
fn a_loss_that_was_none_is_undone() {
    let Some(shared) = shared(&all_rules()) else {
        return;
    };
    // Later than RACK waits at first (a quarter of the round trip, RFC 8985), sooner than a timeout.
    let link = "rate = '50mbit'\ndelay = '100ms'\nqueue = '4bdp'\n\
                forward = { reorder = { share = '0.1%', by = 150, hold = '90ms' } }\nseed = 5";
    let lab = Lab::up("undo", link);
    let undos = ["TCPFullUndo", "TCPPartialUndo", "TCPDSACKUndo"];
    each_law_takes_back(&shared.daemon, &lab, ports::LOSS, &undos);
}

#[test]
fn a_timeout_that_was_none_is_undone() {
    let Some(shared) = shared(&all_rules()) else {
        return;
    };
    let link = "delay = '100ms'\nrepeat_after = '3s'\nqueue = '2MiB'\n\
                rate_steps = [{ at = '0s', rate = '50mbit' }, { at = '2s', rate = '0bit' }]";
    let lab = Lab::up("frto", link);
    // F-RTO (RFC 5682) decides where timestamps do not.
    lab.output("a", &["sysctl", "-w", "net.ipv4.tcp_timestamps=0"]);
    each_law_takes_back(&shared.daemon, &lab, ports::TIMEOUT, &["TCPSpuriousRTOs"]);
}

/// Flows at once, and the losses that they find together.
const FLOWS: usize = 100;
const RECOVERIES: u64 = 8000;

/// At 5 % of loss Reno has five segments (sqrt(1.5 / p)), and slow start ends at ten.
const MOST_PKTS: f64 = 200.0;

/// A threshold that no law gave becomes the window when recovery ends (docs/kernel.md).
#[test]
#[ignore = "long"]
fn no_flow_of_many_over_a_lossy_path_has_a_window_that_its_law_does_not_give() {
    let Some(_alone) = alone() else { return };
    let lab = Lab::up("lossy", "delay = '25ms'\nforward = { loss = '5%' }");
    let keys = "congestion_control = 'fp_reno'\ninitial_ssthresh = 10";
    let daemon = Daemon::start(&policy(&[rule(PORT, keys)]));
    let connections = lab.connections(PORT, FLOWS).into_iter();
    let transfers: Vec<_> = connections
        .map(|ends| Transfer::over(&daemon, ends))
        .collect();
    transfers.iter().for_each(Transfer::send_on);
    while lab.counted("a", &["TCPSackRecovery"]) < RECOVERIES {
        for flow in daemon.flows() {
            assert!(cwnd(&flow) <= MOST_PKTS, "{flow:#}");
        }
    }
}

/// tcp_simple_retransmit(): what was too long is retransmitted, and nothing was congested.
#[test]
fn a_path_whose_mtu_is_smaller_lowers_no_threshold() {
    let Some(shared) = shared(&all_rules()) else {
        return;
    };
    let lab = Lab::up("mtu", "delay = '20ms'\npath_mtu = 1300");
    for port in (ports::MTU..).take(LAWS.len()) {
        let transfer = Transfer::open(&lab, &shared.daemon, port);
        transfer.send(50_000);
        let flow = transfer.quiet(50_000);
        assert_eq!(ssthresh(&flow), None, "{flow:#}");
        lab.output("a", &["ip", "route", "flush", "cache"]);
    }
}

#[test]
fn a_law_that_comes_in_recovery_leaves_the_threshold_of_the_one_before() {
    let Some(shared) = shared(&all_rules()) else {
        return;
    };
    let link = "delay = '300ms'\nforward = { loss = { every = 1000000, first = 60 } }";
    let lab = Lab::up("change", link);
    let transfer = Transfer::open(&lab, &shared.daemon, ports::CHANGE);
    transfer.send_on();
    // Recovery lasts a round trip.
    let given = until("recovery", || ssthresh(&transfer.flow()));
    transfer.take_law("fp_scalable");
    let sent = number(&transfer.flow(), "bytes_acked");
    let after = until("three windows to be acknowledged", || {
        let flow = transfer.flow();
        let acked = number(&flow, "bytes_acked") - sent;
        (acked > 3.0 * given * 1448.0).then_some(flow)
    });
    assert_eq!(after["law"], "fp_scalable");
    // It would have left seven eighths of the window, where Reno left a half.
    assert_eq!(ssthresh(&after), Some(given), "{after:#}");
}
