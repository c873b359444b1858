// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scenarios in the simulator, as a command: the same results on any number of threads and after any
//! end, and what is refused. No lab: this program runs while tests of the host do.
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees that only inside #[test]"
)]

mod bench;
mod sweep;

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use bench::{kill, wait_for};
use rustix::process::{Pid, Signal};
use serde_json::Value;
use sweep::{Folder, SWEEP, assert_alike, said};

#[test]
fn results_are_the_same_on_any_number_of_threads() {
    let folder = Folder::new("jobs", SWEEP);
    for jobs in [1, 3] {
        let output = folder.output(&format!("sim x.toml --jobs {jobs} --out out{jobs} --quiet"));
        assert!(output.status.success(), "{}", said(&output));
    }
    let one = folder.results("out1");
    assert_alike(&one, &folder.results("out3"));
    let series = one.keys().filter(|name| name.starts_with("series")).count();
    assert_eq!(series, 6, "{:?}", one.keys());
    for plot in ["throughput.png", "cwnd.svg", "sweep-loss.svg"] {
        assert!(one.contains_key(Path::new(plot)), "{plot}");
    }
    let rows = folder.rows("out1");
    assert_eq!(rows.len(), 6);
    let programs = rows[0]["programs"].as_array().unwrap();
    let labels: Vec<&str> = programs
        .iter()
        .map(|one| one["program"].as_str().unwrap())
        .collect();
    assert_eq!(labels, ["2-a-iperf3", "1-a-chunks", "2-b-web", "3-a-udp"]);
    assert_eq!(programs[1]["transfers"]["count"], 5);
    assert!(
        programs[2]["transfers"]["p99_s"].as_f64() >= programs[2]["transfers"]["median_s"].as_f64()
    );
    assert_eq!(programs[3]["udp"]["lost_packets"], 0);
    assert_eq!(rows[0]["directions"].as_array().unwrap().len(), 2);
    // Losses were drawn anew for the second repeat.
    assert_ne!(rows[4]["goodput_mbps"], rows[5]["goodput_mbps"]);
}

#[test]
fn a_case_that_draws_nothing_is_simulated_once_and_has_no_interval() {
    let scenario = r#"
name = "x"
[hosts.a]
[hosts.b]
[links.wan]
between = ["a", "b"]
rate = "20mbit"
delay = "10ms"
loss = "{loss}"
[vary]
loss = ["0%", "0.1%"]
[experiment]
repeats = 3
[[flow]]
from = "a"
to = "b"
source = "bulk"
stop = "2s"
law = "fp_reno"
"#;
    let folder = Folder::new("once", scenario);
    let listed = folder.output("sim x.toml --list");
    assert_eq!(String::from_utf8(listed.stdout).unwrap().lines().count(), 4);
    let output = folder.output("sim x.toml --out out --quiet");
    assert!(output.status.success(), "{}", said(&output));
    let table = said(&output);
    assert_eq!(
        table.lines().filter(|line| line.contains('±')).count(),
        1,
        "{table}"
    );
    let rows = folder.rows("out");
    let every = |row: &Value| row["every_repeat"] == true;
    assert_eq!(
        rows.iter().map(every).collect::<Vec<_>>(),
        [true, false, false, false]
    );
    let summary = fs::read(folder.0.join("out/summary.json")).unwrap();
    let summary: Value = serde_json::from_slice(&summary).unwrap();
    let goodput = |case: usize| &summary[case]["figures"]["goodput_mbps"];
    assert_eq!(
        (&goodput(0)["n"], &goodput(0)["ci95"]),
        (&1.into(), &Value::Null)
    );
    assert_eq!(goodput(1)["n"], 3);
    assert!(goodput(1)["ci95"].as_f64() > Some(0.0));
    let again = folder.output("sim x.toml --out out");
    assert!(
        said(&again).contains("all 4 runs are already in out"),
        "{}",
        said(&again)
    );
}

/// One segment is lost, the other late: both reduce the window, and one reduction is taken back.
#[test]
fn reductions_are_counted_and_those_taken_back() {
    let scenario = r#"
name = "x"
[hosts.a]
[hosts.b]
[links.wan]
between = ["a", "b"]
rate = "20mbit"
delay = "10ms"
queue = "10MB"
[[path]]
name = "lost"
links.wan.forward = { loss = { packets = [500] } }
[[path]]
name = "reordered"
links.wan.forward = { reorder = { share = "0.1%", by = 20 } }
[[flow]]
from = "a"
to = "b"
source = "bulk"
bytes = "8MB"
law = "fp_reno"
detection = "sack"
"#;
    let folder = Folder::new("reductions", scenario);
    let output = folder.output("sim x.toml --out out --quiet");
    assert!(output.status.success(), "{}", said(&output));
    let rows = folder.rows("out");
    let counts = |row: &Value| ["congestion_events", "undone_events"].map(|key| row[key].as_u64());
    assert_eq!(counts(&rows[0]), [Some(1), Some(0)]);
    let [events, undone] = counts(&rows[1]);
    assert!(
        undone > Some(0) && undone <= events,
        "{undone:?} of {events:?}"
    );
}

#[test]
fn what_was_killed_goes_on_and_gives_what_it_would_have_given() {
    let scenario = SWEEP.replace("repeats = 2", "repeats = 12");
    let folder = Folder::new("resume", &scenario);
    let mut run = folder
        .command("sim x.toml --jobs 1 --out out --quiet")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let history = folder.0.join("out/history.jsonl");
    let lines = || fs::read_to_string(&history).map_or(0, |text| text.lines().count());
    let began = wait_for(Duration::from_secs(60), || lines() > 3);
    kill(run.id() as i32);
    run.wait().unwrap();
    assert!(began, "no runs were made");
    let kept = lines();
    let output = folder.output("sim x.toml --out out");
    assert!(output.status.success(), "{}", said(&output));
    assert!(
        said(&output).contains("runs are already in out"),
        "{}",
        said(&output)
    );
    assert!(kept < 37, "all runs were made before the kill");
    assert!(lines() >= 37, "runs are missing");
    let output = folder.output("sim x.toml --out whole --quiet");
    assert!(output.status.success(), "{}", said(&output));
    assert_alike(&folder.results("out"), &folder.results("whole"));
    let message = folder.refused("sim x.toml --out out --seed 7");
    assert!(
        message.contains("another --seed") && message.contains("--fresh"),
        "{message}"
    );
}

#[test]
fn what_was_interrupted_has_its_tables_and_goes_on() {
    let scenario = SWEEP.replace("repeats = 2", "repeats = 200");
    let folder = Folder::new("interrupted", &scenario);
    let run = folder
        .command("sim x.toml --jobs 1 --out out --quiet")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let history = folder.0.join("out/history.jsonl");
    let made =
        || fs::read_to_string(&history).map_or(0, |text| text.lines().count().saturating_sub(1));
    let began = wait_for(Duration::from_secs(60), || history.exists() && made() > 3);
    let pid = Pid::from_raw(run.id() as i32).unwrap();
    rustix::process::kill_process(pid, Signal::INT).unwrap();
    let output = run.wait_with_output().unwrap();
    assert!(began, "no runs were made");
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    assert!(said(&output).contains("interrupted; "), "{}", said(&output));
    let kept = made();
    assert!((3..600).contains(&kept), "{kept} of 600 runs were made");
    assert_eq!(folder.rows("out").len(), kept);
    let output = folder.output("sim x.toml --repeats 2 --out out");
    assert!(output.status.success(), "{}", said(&output));
    assert!(
        said(&output).contains("runs are already in out"),
        "{}",
        said(&output)
    );
    let kept_and_new = folder.rows("out");
    let output = folder.output("sim x.toml --repeats 2 --out whole --quiet");
    assert!(output.status.success(), "{}", said(&output));
    for row in folder.rows("whole") {
        assert!(kept_and_new.contains(&row), "{row}");
    }
}

#[test]
fn flows_one_after_the_other_never_exceed_their_link_and_keep_their_time_limit() {
    let scenario = r#"
name = "x"
[hosts.a]
[hosts.b]
[links.wan]
between = ["a", "b"]
rate = "10mbit"
delay = "5ms"
[[flow]]
from = "a"
to = "b"
source = "bulk"
stop = "2s"
law = "fp_reno"
[[flow]]
from = "a"
to = "b"
source = "bulk"
start = "2s"
bytes = "2MB"
time_limit = "60s"
law = "fp_reno"
[[flow]]
from = "b"
to = "a"
source = "udp"
rate = "100kbit"
stop = "9s"
"#;
    let folder = Folder::new("after", scenario);
    let output = folder.output("sim x.toml --out out --quiet");
    assert!(output.status.success(), "{}", said(&output));
    let row = folder.rows("out").remove(0);
    assert!(row["goodput_mbps"].as_f64() < Some(10.0), "{row}");
    // Two megabytes take 1.6 s at least; the datagrams go on for longer.
    let limited = scenario.replace("60s", "1s");
    fs::write(folder.0.join("x.toml"), limited).unwrap();
    let output = folder.output("sim x.toml --out limited --quiet");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let error = folder.rows("limited").remove(0)["error"].to_string();
    assert!(
        error.contains("2-a-bulk: did not end within its time limit of 1 s"),
        "{error}"
    );
}

#[test]
fn what_is_not_simulated_is_refused_with_its_place_before_anything_runs() {
    let message = |from: &str, to: &str| {
        assert!(SWEEP.contains(from), "{from}");
        let folder = Folder::new("refused", &SWEEP.replacen(from, to, 1));
        let message = folder.refused("sim x.toml --quiet");
        assert!(!folder.0.join("out").exists(), "{message}");
        message
    };
    let message = [
        message("iperf3 -c {b} -t 2", "iperf3 -c {b} --bidir"),
        message("iperf3 -c {b} -t 2", "ping {b}"),
        message("iperf3 -c {b} -t 2", "iperf3 -c {b} -p 5300"),
        message(
            "\"net.ipv4.tcp_congestion_control\" = \"reno\"",
            "\"net.ipv4.tcp_sack\" = 0",
        ),
        message("to = \"b\"", "to = \"a\""),
        message("every = \"200ms\"", "every = \"200ms\"\nsleep = \"1s\""),
        message("rate = \"200kbit\"", "rate = \"0bit\""),
        message("between = [\"a\", \"b\"]", "between = [\"a\", \"c\"]").replace("\n", ""),
    ];
    insta::assert_snapshot!(message.join(""), @r#"
    fatpath: x.toml:23:1: error: --bidir: the simulator cannot do what this option of iperf3 asks for
    fatpath: x.toml:23:1: error: ping: the simulator runs no programs but iperf3; write a [[flow]]
    fatpath: x.toml:23:1: error: no iperf3 before it listens on port 5300 of b
    fatpath: x.toml: host a: net.ipv4.tcp_sack = 0: is not simulated; leave it out, or run the scenario in the lab
    fatpath: x.toml:29:6: error: flow[1].to: a is where the flow begins; it ends at another
    fatpath: x.toml:33:1: error: unknown key `sleep` in flow[1]; allowed: from, to, start, streams, time_limit, transport, source, law, mss, window, pacing_rate, send_buffer, receive_buffer, initial_window, cwnd_clamp, fragment, detection, dupthresh, sack_blocks, reduction, growth, max_burst, pacing, pacing_quantum, drop, rto_min, delayed_acks, delayed_ack_max, delayed_ack_count, tail_loss_probe, max_ssthresh, initial_ssthresh, initial_rate, idle, hystart, rude, chunk, first_chunk, every, count, stop
    fatpath: x.toml:46:8: error: flow[3].rate: found the text "0bit"; allowed: a rate from "1kbit" to "1tbit" (bit, kbit, mbit, gbit, tbit; decimal)
    fatpath: x.toml:8:11: error: links.wan.between: "c" is not a host; the hosts are: a, b
    "#);
}

#[test]
fn a_case_with_a_law_that_is_not_simulated_fails_alone() {
    let scenario = SWEEP
        .replace(
            "loss = [\"0%\", \"0.1%\", \"1%\"]",
            "law = [\"fp_aimd\", \"vegas\"]",
        )
        .replace("{loss}", "0%")
        .replace("-C fp_aimd", "-C {law}");
    let folder = Folder::new("law", &scenario);
    let output = folder.output("sim x.toml --out out --quiet");
    assert_eq!(output.status.code(), Some(1));
    let rows = folder.rows("out");
    assert!(rows[0]["goodput_mbps"].as_f64() > Some(0.0), "{}", rows[0]);
    let error = rows[2]["error"].as_str().unwrap();
    assert!(
        error.contains("law vegas") && error.contains("fp_aimd"),
        "{error}"
    );
}

#[test]
fn earlier_results_are_compared_without_a_run() {
    let folder = Folder::new("compare", SWEEP);
    for (out, seed) in [("one", ""), ("other", "--seed 5")] {
        let output = folder.output(&format!("sim x.toml --out {out} --quiet {seed}"));
        assert!(output.status.success(), "{}", said(&output));
    }
    let same = "lab compare x.toml --lab-out one --sim-out one --max-error 0 --json";
    let output = folder.output(same);
    assert!(output.status.success(), "{}", said(&output));
    let cases: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(cases.len(), 3);
    assert_eq!(cases[0]["error_percent"], 0.0);
    let other = same
        .replace("--sim-out one", "--sim-out other")
        .replace("--json", "");
    let output = folder.output(&other);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(
        said(&output).contains("are not within 0 %"),
        "{}",
        said(&output)
    );
    let edited = SWEEP.replace("rate = \"5mbit\"", "rate = \"6mbit\"");
    fs::write(folder.0.join("x.toml"), edited).unwrap();
    let message = folder.refused(same);
    assert!(
        message.contains("another version of the scenario"),
        "{message}"
    );
}
