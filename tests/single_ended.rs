// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rate of a path whose other end has no fatpath, over emulated paths: against the emulator's truth, by what each method can know.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use serde_json::Value;
use std::process::Command;
use std::time::Duration;
use support::{Daemon, FATPATH, Lab, alone, until_within};

/// On a busy host a run fails, says that it may be wrong by half, or is wrong (docs/performance.md): it is then made again.
const LONG: Duration = Duration::from_secs(180);
/// How far an estimate may be from the emulator's rate.
const TOLERANCE: f64 = 0.2;

struct Path {
    lab: Lab,
    address: String,
}

impl Path {
    fn over(name: &str, link: &str) -> Path {
        let lab = Lab::up(name, link);
        let address = lab.address("b");
        Path { lab, address }
    }

    fn outcome(&self, more: &[&str]) -> Value {
        let words = [FATPATH, "measure", "single-ended", &self.address, "--json"];
        let output = self.lab.command("a", &[&words[..], more].concat()).output();
        serde_json::from_slice(&output.unwrap().stdout).unwrap()
    }

    /// An estimate of `name` that is near `bps`, and what it took.
    fn found(&self, name: &str, bps: f64, more: &[&str]) -> Value {
        let mut last = Value::Null;
        let values = until_within(LONG, name, || {
            last = self.outcome(more);
            eprintln!("{more:?}: {last}");
            Some(last["values"].clone()).filter(|values| is_near(values, name, bps))
        });
        // What was found may be above the rate by the tolerance, and decides what was sent.
        let sent = number(&values, "sent").unwrap();
        let most = bps * (1.0 + TOLERANCE) / 8.0;
        assert!(sent < most, "more than a second of the rate: {values}");
        values
    }
}

fn number(values: &Value, name: &str) -> Option<f64> {
    values[name][0].as_f64()
}

/// Within the tolerance, and without a doubt that keeps rules from heeding it.
fn is_near(values: &Value, name: &str, bps: f64) -> bool {
    let doubt = number(values, &format!("{name}_doubt"));
    let near = number(values, name).is_some_and(|found| (found / bps - 1.0).abs() < TOLERANCE);
    near && doubt.is_some_and(|doubt| doubt < 0.5)
}

#[test]
fn both_methods_find_the_rates_of_paths() {
    let Some(_alone) = alone() else { return };
    for (rate, bps) in [("10mbit", 10e6), ("100mbit", 100e6)] {
        let link = format!("rate = '{rate}'\ndelay = '10ms'\nqueue = '1bdp'");
        let path = Path::over(rate, &link);
        let values = path.found("slower_way_rate", bps, &[]);
        assert!(values["rate"].is_null(), "{values}");
        let values = path.found("rate", bps, &["--method", "tcp"]);
        let share = number(&values, "short_packet_share").unwrap();
        assert!(share > 0.75, "{values}");
    }
}

/// Of packets by themselves the emulator and both hosts on two processors have no 1 Gb/s: what answers then limits packets.
#[test]
fn where_the_hosts_are_slower_than_the_path_it_is_said() {
    let Some(_alone) = alone() else { return };
    let path = Path::over("fast", "rate = '1gbit'\ndelay = '10ms'\nqueue = '1bdp'");
    for (name, more) in [("slower_way_rate", &[][..]), ("rate", &["--method", "tcp"])] {
        until_within(LONG, "a true estimate", || {
            let values = path.outcome(more)["values"].clone();
            eprintln!("{more:?}: {values}");
            let least = number(&values, &format!("{name}_at_least"));
            let doubt = number(&values, &format!("{name}_doubt"));
            let is_true = least.is_some_and(|least| least < 1.05e9)
                || doubt.is_some_and(|doubt| doubt >= 0.5)
                || is_near(&values, name, 1e9);
            is_true.then_some(())
        });
    }
}

/// An answer by ICMP is as long as the packet, a RST is short.
#[test]
fn the_way_back_is_told_from_the_way_there() {
    let Some(_alone) = alone() else { return };
    let link = "forward.rate = '100mbit'\nbackward.rate = '20mbit'\ndelay = '5ms'\nqueue = '1bdp'";
    let path = Path::over("ways", link);
    path.found("slower_way_rate", 20e6, &[]);
    path.found("rate", 100e6, &["--method", "tcp"]);
}

#[test]
fn who_does_not_answer_gets_no_trains() {
    let Some(_alone) = alone() else { return };
    let path = Path::over("silent", "rate = '50mbit'\ndelay = '5ms'\nqueue = '1bdp'");
    path.lab.on("b", || {
        std::fs::write("/proc/sys/net/ipv4/icmp_echo_ignore_all", "1").unwrap();
    });
    let sent = || path.lab.output("a", &["cat", "/proc/net/snmp"]);
    let said = path.outcome(&[]).to_string();
    assert!(
        said.contains("answered no packet; try --method tcp"),
        "{said}"
    );
    let snmp = sent();
    let mut rows = snmp.lines().filter(|line| line.starts_with("Icmp:"));
    let (names, values) = (rows.next().unwrap(), rows.next().unwrap());
    let mut both = names.split(' ').zip(values.split(' '));
    let (_, echoes) = both.find(|(name, _)| *name == "OutEchos").unwrap();
    assert!(
        echoes.parse::<u32>().unwrap() <= 6,
        "{echoes} echo requests"
    );
}

/// On a schedule, into the archive, by whoever runs the tests.
#[test]
fn its_result_is_archived() {
    let Some(_alone) = alone() else { return };
    let path = Path::over("kept", "rate = '50mbit'\ndelay = '5ms'\nqueue = '1bdp'");
    let daemon = Daemon::start_in(Some(&path.lab.namespace("a")), "[archive]\n");
    let test = format!(
        "[[test]]\nname = 'far'\ntool = 'single_ended'\nmethod = 'tcp'\nto = '{}'\nevery = '10s'\nduration = '10s'\n\
         most_rate = '1gbit'\n",
        path.address
    );
    std::fs::write(daemon.path("measure.toml"), test).unwrap();
    daemon.hang_up();
    let archived = || {
        let words = ["archive", "query", "--json", "--kind", "test", "--archive"];
        let output = Command::new(FATPATH)
            .args(words)
            .arg(daemon.path("archive"))
            .output();
        let lines = String::from_utf8(output.unwrap().stdout).unwrap();
        let mut runs = lines
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        runs.find(|run| is_near(&run["body"]["values"], "rate", 50e6))
    };
    let run = until_within(LONG, "its event", archived);
    assert_eq!(run["name"], "test.single_ended");
    assert_eq!(run["value"], run["body"]["values"]["rate"][0]);
}
