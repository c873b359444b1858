// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules whose path is measured: an emulated path changes while a flow lives, and what the rule gives follows it.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use serde_json::Value;
use std::process::Command;
use std::time::{Duration, Instant};
use support::transfer::{PORT, Transfer, number};
use support::{Daemon, FATPATH, Lab, alone, until, until_within};

/// A rule for flows to a port of `b`. What its other end shows, on the same kernel, is another path's.
fn rule(lab: &Lab, name: &str, port: u16, law: &str) -> String {
    format!(
        "[[rule]]\nname = '{name}'\ndestination = ['{}']\nsource = ['{}']\ndestination_ports = [{port}]\n\
         rtt = 'measured'\nrate = 'measured'\nrtt_otherwise = '10ms'\nrate_otherwise = '20mbit'\n\
         send_buffer = '2bdp'\ncongestion_control = {law}\n",
        lab.address("b"),
        lab.address("a")
    )
}

fn policy(lab: &Lab) -> String {
    let floyd = "{ law = 'fp_aimd', highspeed_buffer = 'bdp' }";
    let rules = rule(lab, "far", PORT, "'fp_scalable'") + &rule(lab, "floyd", PORT + 1, floyd);
    format!("[archive]\n[host.sysctl]\n'net.core.wmem_max' = 'auto'\n{rules}")
}

/// A buffer that brought nothing is tried again after a minute: a host that was busy then has that time, too.
const TRIED_AGAIN: Duration = Duration::from_secs(150);

/// The rule's path in force, once it is so: round-trip time in ms and Mb/s.
fn in_force(daemon: &Daemon, what: &str, is_so: impl Fn(f64, f64) -> bool) -> (f64, f64) {
    let begun = Instant::now();
    until_within(TRIED_AGAIN, what, || {
        let rule = daemon.json(&["status"])["measured"][0].clone();
        let of = |key: &str| rule[key].as_f64().unwrap_or_default();
        let (rtt_ms, mbps) = (of("rtt_us") / 1e3, of("rate_bps") / 1e6);
        let is_it = rule["by"].is_string() && is_so(rtt_ms, mbps);
        let took_s = begun.elapsed().as_secs_f64();
        is_it.then(|| println!("{what}: {rtt_ms:.1} ms, {mbps:.0} Mb/s after {took_s:.1} s"))?;
        Some((rtt_ms, mbps))
    })
}

/// The live flow has a send buffer of twice the path's product.
fn followed(transfer: &Transfer, (rtt_ms, mbps): (f64, f64)) {
    let wanted = 2.0 * mbps * rtt_ms * 1e3 / 8.0;
    until("the live flow to follow", || {
        let flow = transfer.flow();
        let mut settings = flow["settings"].as_array()?.iter();
        let buffer = settings.find(|one| one["setting"] == "send_buffer_bytes")?;
        let off = number(buffer, "has") / wanted - 1.0;
        (off.abs() < 0.26).then_some(())
    });
}

/// What `policy explain` says that a flow to `b` gets: the law's (a, b), and why its buffer is what it is.
fn explained(lab: &Lab, daemon: &Daemon) -> (f64, f64, String) {
    let peer = format!("{}:{}", lab.address("b"), PORT + 1);
    let file = daemon.path("policy.toml");
    let (file, source) = (file.to_str().unwrap(), lab.address("a"));
    let asked = [
        "policy", "explain", &peer, "--source", &source, "--policy", file,
    ];
    let explained = daemon.json(&asked);
    let of = |setting: &str| {
        let mut lines = explained["settings"].as_array().unwrap().iter();
        lines
            .find(|line| line["setting"] == setting)
            .unwrap()
            .clone()
    };
    let law = of("congestion_control");
    let parameters = &law["value"]["parameters"];
    let reason = of("send_buffer")["reason"].as_str().unwrap().to_owned();
    let number = |index: usize| number(&parameters[index], "value");
    (number(0), number(1), reason)
}

/// The decisions that the archive has of the rule, oldest first.
fn decisions(daemon: &Daemon) -> Vec<Value> {
    let asked = [
        "archive",
        "query",
        "--json",
        "--kind",
        "decision",
        "--archive",
    ];
    let output = Command::new(FATPATH)
        .args(asked)
        .arg(daemon.path("archive"))
        .output();
    let lines = String::from_utf8(output.unwrap().stdout).unwrap();
    let events = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let of_rule = |event: &Value| event["name"] == "rule.measured" && event["rule"] == "far";
    events.filter(of_rule).collect()
}

/// The link, with a queue that suits it.
fn change(lab: &Lab, changes: [&str; 2]) {
    changes.iter().for_each(|change| lab.set(change));
    lab.set("queue=1bdp");
}

#[test]
fn a_rule_follows_a_path_that_changes_under_a_live_flow() {
    let Some(_alone) = alone() else { return };
    let lab = Lab::up(
        "measured",
        "rate = '50mbit'\ndelay = '10ms'\nqueue = '1bdp'",
    );
    let daemon = Daemon::start(&policy(&lab));
    let transfer = Transfer::open(&lab, &daemon, PORT);
    transfer.send_on();
    let near = in_force(&daemon, "the near path", |rtt_ms, mbps| {
        (20.0..27.0).contains(&rtt_ms) && (38.0..65.0).contains(&mbps)
    });
    followed(&transfer, near);
    let (a_near, b_near, _) = explained(&lab, &daemon);
    change(&lab, ["rate=100mbit", "delay=20ms"]);
    let far = in_force(&daemon, "the far path", |rtt_ms, mbps| {
        (39.0..56.0).contains(&rtt_ms) && (75.0..130.0).contains(&mbps)
    });
    followed(&transfer, far);
    let (a_far, b_far, reason) = explained(&lab, &daemon);
    assert!(
        reason.contains(", x 2, measured on 10.77.0.0/24 by flows"),
        "{reason}"
    );
    assert!(
        a_far > a_near && b_far < b_near,
        "{a_near} {b_near}, {a_far} {b_far}"
    );
    let said = String::from_utf8(daemon.ask(&["status"]).stdout).unwrap();
    assert!(said.contains("path         of rule far: "), "{said}");

    change(&lab, ["rate=30mbit", "delay=20ms"]);
    let slow = in_force(&daemon, "the slower path", |_, mbps| {
        (22.0..40.0).contains(&mbps)
    });
    followed(&transfer, slow);
    let decided = until("the decisions to be archived", || {
        let decided = decisions(&daemon);
        (decided.len() >= 3).then_some(decided)
    });
    assert_eq!(decided[0]["body"]["before"], Value::Null, "{decided:#?}");
    assert!(
        decided[1]["body"]["before"]["rate_bps"].is_number(),
        "{decided:#?}"
    );
}

/// What a tool says of a path far away: 80 ms, 200 Mb/s.
const TEST: &str = "[[test]]\nname = 'far'\ntool = 'program'\nto = '192.0.2.7'\nevery = '1s'\nduration = '1s'\n\
    run = ['echo', '{\"rtt\": 80, \"rate\": 2e8}']\nvalues.rtt = { field = 'rtt', unit = 'ms' }\n\
    values.rate = { field = 'rate', unit = 'b/s' }\n";

#[test]
fn a_rule_goes_by_tests_where_no_flow_said_anything() {
    let Some(_alone) = alone() else { return };
    let rule = "[[rule]]\nname = 'far'\ndestination = ['192.0.2.0/24']\nrtt = 'measured'\nrate = 'measured'\n\
        send_buffer = 'bdp'\n";
    let daemon = Daemon::start(rule);
    let unmeasured = &daemon.json(&["status"])["measured"][0];
    assert!(
        unmeasured["rtt_us"].is_null() && unmeasured["by"].is_null(),
        "{unmeasured}"
    );
    std::fs::write(daemon.path("measure.toml"), TEST).unwrap();
    daemon.hang_up();
    let by_test = in_force(&daemon, "the test to count", |_, _| true);
    assert_eq!(by_test, (80.0, 200.0));
    let file = daemon.path("policy.toml");
    let asked = [
        "policy",
        "explain",
        "192.0.2.9",
        "--policy",
        file.to_str().unwrap(),
    ];
    let buffer = &daemon.json(&asked)["settings"][0];
    assert_eq!(buffer["value"], 2_000_000);
    let why = "200 Mb/s x 80 ms = 2 MB (bdp), measured on 192.0.2.0/24 by a test";
    assert_eq!(buffer["reason"], why);
    // Another policy with the same rule has it from the start.
    assert!(
        daemon
            .apply(&format!("{rule}receive_buffer = '3bdp'\n"))
            .status
            .success()
    );
    let at_once = in_force(&daemon, "the next policy", |_, _| true);
    assert_eq!(at_once, by_test);
}
