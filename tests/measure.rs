// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scheduled tests of a daemon: real tools over an emulated path, results in the archive, and
//! nothing that outlives a daemon that is killed.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use fatpath_api::NoQuery;
use fatpath_api::endpoint::GetMeshes;
use fatpath_daemon::client;
use serde_json::Value;
use std::process::Command;
use support::{Daemon, FATPATH, Lab, alone, until};

const POLICY: &str =
    "[archive]\n[[rule]]\nname = 'far'\ndestination = ['10.78.0.0/24']\nsend_buffer = '1MiB'\n";

/// Archived events of tests, of one test.
fn runs(daemon: &Daemon, test: &str) -> Vec<Value> {
    let archive = daemon.path("archive");
    let output = Command::new(FATPATH)
        .args(["archive", "query", "--json", "--kind", "test", "--archive"])
        .arg(archive)
        .output()
        .unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    lines
        .filter(|run: &Value| run["body"]["test"] == test)
        .collect()
}

fn status(daemon: &Daemon) -> Value {
    daemon.json(&["status"])["measure"].clone()
}

fn is_installed(program: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .output();
    found.is_ok_and(|found| found.status.success())
}

/// Of 20 ms and 50 Mb/s.
const TRUTHS: [(&str, &str, &str, f64, f64); 4] = [
    ("ping", "ping", "rtt_avg", 20.0, 40.0),
    ("iperf3", "iperf3", "goodput", 2e7, 5e7),
    ("traceroute", "traceroute", "hops", 1.0, 1.0),
    ("path_mtu", "tracepath", "path_mtu", 1500.0, 1500.0),
];

const PATH: &str = "rate = '50mbit'\ndelay = '10ms'\nqueue = '1bdp'";

/// iperf3 waits at `b` for one test.
fn serve_once(lab: &Lab) {
    let server = ["iperf3", "--server", "--one-off"];
    drop(lab.command("b", &server).spawn().unwrap());
    until("iperf3 to listen", || {
        let listening = lab.output("b", &["ss", "-Hltn", "sport", "=", ":5201"]);
        listening.contains("5201").then_some(())
    });
}

#[test]
fn real_tools_measure_an_emulated_path() {
    let Some(_alone) = alone() else { return };
    let lab = Lab::up("measure", PATH);
    serve_once(&lab);
    let peer = lab.address("b");
    let test = |(tool, ..): &(&str, &str, &str, f64, f64)| {
        format!(
            "[[test]]\nname = '{tool}'\ntool = '{tool}'\nto = '{peer}'\nevery = '1min'\nduration = '3s'\n"
        )
    };
    let file = lab.scratch().join("measure.toml");
    std::fs::write(&file, TRUTHS.iter().map(test).collect::<String>()).unwrap();
    let file = file.to_str().unwrap();
    for (tool, program, value, least, most) in TRUTHS {
        if !is_installed(program) {
            println!("left out: {program} is not installed");
            continue;
        }
        let run = [FATPATH, "measure", "run", tool, "--json", "--file", file];
        let outcome: Value = serde_json::from_str(&lab.output("a", &run)).unwrap();
        let number = outcome["values"][value][0].as_f64();
        assert!(
            number.is_some_and(|number| (least..=most).contains(&number)),
            "{tool}: {outcome}"
        );
    }
}

const BEATS: &str = "[[test]]\nname = 'beat'\ntool = 'program'\nevery = '1s'\nduration = '1s'\n\
    run = ['echo', '{\"x\": 7}']\nvalues.x = { field = 'x', unit = 'ms' }\n";

#[test]
fn a_daemon_runs_tests_and_archives_what_they_gave() {
    let Some(_alone) = alone() else { return };
    let daemon = Daemon::start(POLICY);
    assert!(status(&daemon).is_null(), "no file, no tests");
    let file = daemon.path("measure.toml");
    let fails = BEATS.replace("beat", "fails").replace("'echo'", "'false'");
    std::fs::write(&file, format!("{BEATS}{fails}")).unwrap();
    daemon.hang_up();
    until("two runs", || {
        (runs(&daemon, "beat").len() >= 2).then_some(())
    });
    let run = &runs(&daemon, "beat")[0];
    assert_eq!(
        (&run["name"], &run["value"]),
        (&"test.program".into(), &7.0.into())
    );
    assert_eq!(run["body"]["values"]["x"], serde_json::json!([7.0, "ms"]));
    let (due, start) = (&run["body"]["due_us"], &run["body"]["start_us"]);
    let late_us = start.as_i64().unwrap() - due.as_i64().unwrap();
    assert!((0..60_000_000).contains(&late_us), "{run}");
    let failed = until("a run that failed", || runs(&daemon, "fails").pop());
    assert_eq!(failed["body"]["note"]["level"], "error");
    assert_eq!(failed["body"]["note"]["message"], "exit status: 1");
    let text = String::from_utf8(daemon.ask(&["status"]).stdout).unwrap();
    assert!(
        text.contains("tests        ") && text.contains("2 tests"),
        "{text}"
    );
    // A file that is wrong changes nothing, and is reported.
    std::fs::write(&file, format!("{BEATS}nam = 1\n")).unwrap();
    daemon.hang_up();
    let error = until("the error", || {
        let status = status(&daemon);
        Some((
            status["file_error"].as_str()?.to_owned(),
            status["tests"].as_u64(),
        ))
    });
    assert!(
        error
            .0
            .contains("measure.toml:8:1: error: unknown key `nam`")
            && error.1 == Some(2),
        "{error:?}"
    );
    std::fs::remove_file(&file).unwrap();
    daemon.hang_up();
    until("the end of tests", || {
        status(&daemon).is_null().then_some(())
    });
}

#[test]
fn a_test_runs_when_it_is_asked_for() {
    let Some(_alone) = alone() else { return };
    let daemon = Daemon::start(POLICY);
    let once = BEATS.replace("every = '1s'", "every = '168h'");
    let twin = once
        .replace("beat", "slow")
        .replace("['echo', '{\"x\": 7}']", "['sh', '-c', 'sleep 1; echo {}']");
    let held = |test: String| test.replace("run =", "resource = 'disk'\nrun =");
    let file = format!("{}{}", held(once), held(twin));
    std::fs::write(daemon.path("measure.toml"), file).unwrap();
    daemon.hang_up();
    until("the file", || (status(&daemon)["tests"] == 2).then_some(()));
    let outcome = daemon.json(&["measure", "now", "beat"]);
    assert_eq!(outcome["values"]["x"], serde_json::json!([7.0, "ms"]));
    assert!(outcome["due_us"].is_null(), "{outcome}");
    let run = until("its event", || runs(&daemon, "beat").pop());
    assert_eq!(run["body"]["start_us"], outcome["start_us"]);
    let unknown = daemon.ask(&["measure", "now", "none"]);
    let error = String::from_utf8(unknown.stderr).unwrap();
    assert!(error.contains("none: the file has no such test"), "{error}");
    // Of two tests on one resource the second starts when the first has ended; of one test no second run starts.
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| daemon.ask(&["measure", "now", "slow"]));
        until("the slow test", || {
            let running = status(&daemon)["running"].to_string();
            running.contains("slow").then_some(())
        });
        let again = daemon.ask(&["measure", "now", "slow"]);
        let error = String::from_utf8(again.stderr).unwrap();
        assert!(error.contains("slow: the test runs already"), "{error}");
        let after = daemon.json(&["measure", "now", "beat"]);
        let slow = slow.join().unwrap();
        assert_eq!(slow.status.code(), Some(1), "its output has no value");
        let slow = until("its event", || runs(&daemon, "slow").pop());
        let end_us = slow["body"]["start_us"].as_i64().unwrap()
            + (slow["body"]["duration_s"].as_f64().unwrap() * 1e6) as i64;
        assert!(
            after["start_us"].as_i64().unwrap() >= end_us,
            "{after} {slow}"
        );
    });
    std::fs::remove_file(daemon.path("measure.toml")).unwrap();
    daemon.hang_up();
}

#[test]
fn a_test_of_throughput_says_what_the_instruments_saw_of_its_flows() {
    let Some(_alone) = alone() else { return };
    let lab = Lab::up("flows", PATH);
    serve_once(&lab);
    let peer = lab.address("b");
    let policy = POLICY.replace("10.78.0.0/24", &peer);
    let daemon = Daemon::start_in(Some(&lab.namespace("a")), &policy);
    let test =
        "[[test]]\nname = 'rate'\ntool = 'iperf3'\nevery = '1h'\nduration = '2s'\nstreams = 2\n";
    std::fs::write(
        daemon.path("measure.toml"),
        format!("{test}to = '{peer}'\n"),
    )
    .unwrap();
    daemon.hang_up();
    until("the file", || (status(&daemon)["tests"] == 1).then_some(()));
    let outcome = daemon.json(&["measure", "now", "rate"]);
    let run = until("its event", || runs(&daemon, "rate").pop());
    assert_eq!(run["body"]["flows"], outcome["flows"]);
    let flows = outcome["flows"].as_array().unwrap();
    assert_eq!(flows.len(), 2, "{outcome}");
    let mut acked = 0.0;
    for flow in flows {
        assert_eq!(flow["remote"], *format!("{peer}:5201"));
        let summary = &flow["summary"];
        assert_eq!(
            (&summary["rule"], &summary["has_ended"]),
            (&"far".into(), &true.into()),
            "{outcome}"
        );
        let of = |variable: &str| summary["variables"][variable].as_f64().unwrap();
        assert!((20e3..40e3).contains(&of("MinRTT")), "{flow}");
        assert!(of("ElapsedSecs") >= 2.0, "{flow}");
        assert!(of("MaxRTO") >= of("CurRTO"), "{flow}");
        assert!(of("MaxPipeSize") >= of("CurMSS"), "{flow}");
        acked += of("HCThruOctetsAcked");
    }
    // What the peer had read when the time was over it had acknowledged, but for what delayed acknowledgements of two flows
    // waited with when a RST ended them.
    let bytes = outcome["values"]["bytes"][0].as_f64().unwrap();
    let least = bytes - 4.0 * 1448.0;
    assert!((least..2.0 * bytes).contains(&acked), "{acked} of {bytes}");
    std::fs::remove_file(daemon.path("measure.toml")).unwrap();
    daemon.hang_up();
}

/// Each host has the same file; the archive says of this one what it found of the others.
#[test]
fn a_host_of_a_mesh_tests_the_others_and_the_table_shows_it() {
    let Some(_alone) = alone() else { return };
    let daemon = Daemon::start(POLICY);
    let own = rustix::system::uname()
        .nodename()
        .to_str()
        .unwrap()
        .to_owned();
    let mesh = BEATS.replace("every = '1s'", "every = '5s'");
    let mesh = mesh.replace("[[test]]\nname = 'beat'", "[[mesh]]\nname = 'core'");
    let file = daemon.path("measure.toml");
    std::fs::write(
        &file,
        format!("{mesh}hosts = ['{own}', 'peer1', 'peer2']\n"),
    )
    .unwrap();
    daemon.hang_up();
    let asked = |form: &[&str]| {
        let mut mesh = Command::new(FATPATH);
        mesh.args(["measure", "mesh"]).arg(&file).args(form);
        let output = mesh.arg("--archive").arg(daemon.path("archive")).output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    let pairs = until("both results", || {
        let meshes: Value = serde_json::from_str(&asked(&["--json"])).ok()?;
        let pairs = meshes[0]["pairs"].as_array()?.clone();
        let known = pairs.iter().filter(|pair| pair["value"] == 7.0);
        (known.count() == 2).then_some(pairs)
    });
    assert_eq!(pairs.len(), 6);
    let known = |pair: &&Value| pair["value"] == 7.0;
    assert!(
        pairs
            .iter()
            .filter(known)
            .all(|pair| pair["from"] == *own && pair["unit"] == "ms")
    );
    let view = daemon.path("run/view.sock");
    let answered = client::ask::<GetMeshes>(&view, &NoQuery {});
    let answered = serde_json::to_value(answered.unwrap().unwrap()).unwrap();
    assert_eq!(answered[0]["hosts"][0], *own);
    let known = |pair: &Value| pair["from"] == *own && pair["value"] == 7.0;
    let answered = answered[0]["pairs"].as_array().unwrap();
    assert_eq!(answered.iter().filter(|pair| known(pair)).count(), 2);
    let table = asked(&[]);
    let row = table.lines().find(|line| line.starts_with(&own)).unwrap();
    assert_eq!(row.matches("7 ms").count(), 2, "{table}");
    std::fs::remove_file(&file).unwrap();
    daemon.hang_up();
}

#[test]
fn nothing_outlives_a_daemon_that_is_killed() {
    let Some(_alone) = alone() else { return };
    let mut daemon = Daemon::idle(POLICY);
    let pids = daemon.path("pids");
    let script = format!(
        "setsid sleep 1000 & echo $! >>{0}; echo $$ >>{0}; sleep 1000",
        pids.display()
    );
    let long = BEATS.replace(
        "['echo', '{\"x\": 7}']",
        &format!("['sh', '-c', '''{script}''']"),
    );
    std::fs::write(daemon.path("measure.toml"), long).unwrap();
    daemon.restart();
    let both = || {
        let pids = std::fs::read_to_string(&pids).ok()?;
        let pids: Vec<String> = pids.lines().map(str::to_owned).collect();
        (pids.len() >= 2).then_some(pids)
    };
    let pids = until("the run", both);
    daemon.kill_9();
    for pid in &pids {
        until("its end", || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
            stat.map_or(true, |stat| stat.contains(") Z "))
                .then_some(())
        });
    }
    std::fs::remove_file(daemon.path("measure.toml")).unwrap();
    daemon.restart();
}
