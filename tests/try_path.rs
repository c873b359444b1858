// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath try` over an emulated path: what it sees is the path, and what it forecasts is what a transfer gets.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use serde_json::Value;
use support::{Lab, alone, until};

const FATPATH: &str = env!("CARGO_BIN_EXE_fatpath");

/// 2 MiB, half of Linux's own send buffer, each 80 ms are 210 Mb/s: more than the path carries. The MTU is a router's.
const LINK: &str = "rate = '100mbit'\ndelay = '40ms'\nqueue = '2bdp'\npath_mtu = 1300";

fn tried(lab: &Lab, more: &[&str]) -> Value {
    let address = lab.address("b");
    let words = [&[FATPATH, "try", &address, "--json"], more].concat();
    serde_json::from_str(&lab.output("a", &words)).unwrap()
}

#[test]
fn what_is_seen_is_the_path_and_what_is_forecast_is_what_a_transfer_gets() {
    let Some(_alone) = alone() else { return };
    let lab = Lab::up("try", LINK);
    // Nobody listens: a refusal shows the round trip.
    let known = tried(&lab, &["--rate", "1gbit"]);
    let shakes = &known["handshakes"];
    assert_eq!(
        (&shakes["port"], &shakes["refused"]),
        (&443.into(), &true.into())
    );
    let least_us = shakes["least_us"].as_f64().unwrap();
    assert!((80_000.0..90_000.0).contains(&least_us), "{known:#}");
    assert_eq!(
        known["forecast"]["defaults"]["limit"], "window",
        "{known:#}"
    );
    assert_eq!(known["forecast"]["tuned"]["limit"], "rate", "{known:#}");

    let rule = lab.scratch().join("policy.toml");
    let suggest = [
        FATPATH,
        "policy",
        "suggest",
        &lab.address("b"),
        "--rate",
        "1gbit",
    ];
    std::fs::write(&rule, lab.output("a", &suggest)).unwrap();
    let checked = lab.output("a", &[FATPATH, "policy", "check", rule.to_str().unwrap()]);
    assert!(checked.contains("1 rule, "), "{checked}");

    drop(
        lab.command("b", &["iperf3", "--server", "--one-off"])
            .spawn()
            .unwrap(),
    );
    until("iperf3 to listen", || {
        let listening = lab.output("b", &["ss", "-Hltn", "sport", "=", ":5201"]);
        listening.contains("5201").then_some(())
    });
    let measured = tried(&lab, &["--port", "22", "--iperf3", "--seconds", "4"]);
    let goodput_bps = measured["transfer"]["goodput_bps"].as_f64().unwrap();
    assert!((50e6..100e6).contains(&goodput_bps), "{measured:#}");
    // The transfer made the kernel learn what a router does not let through.
    let after = tried(&lab, &["--rate", "100mbit"]);
    assert_eq!(after["mtu_bytes"], 1300, "{after:#}");
    assert_eq!(after["forecast"]["mss_bytes"], 1300 - 52);
    let forecast_bps = after["forecast"]["defaults"]["rate_bps"].as_f64().unwrap();
    assert!(
        (0.9..1.8).contains(&(forecast_bps / goodput_bps)),
        "{after:#}"
    );
}
