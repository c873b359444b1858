// SPDX-License-Identifier: MIT OR Apache-2.0
//! The laws on the real kernel, over emulated paths: what a flow's window does is compared with the
//! law's formula and with the window before a loss that was none.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use std::thread;
use std::time::{Duration, Instant};
use support::transfer::{PORT, Transfer, cwnd, policy, rule, ssthresh};
use support::{Daemon, Lab, alone, until};

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
