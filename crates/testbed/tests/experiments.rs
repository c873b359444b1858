// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments on the real kernel: repeats, resume, full disks, many hosts, links that change. After
//! each of them, nothing of the lab may be left on the machine. See `bench` for what it needs.
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees that only inside #[test]"
)]

mod bench;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use bench::{Bench, kill, lasting, wait_for};
use serde_json::Value;

const RUN: [&str; 5] = ["run", "scenario.toml", "--out", "out", "--quiet"];

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The runs in the history, as lines.
fn history(bench: &Bench) -> Vec<String> {
    let text = fs::read_to_string(bench.folder.join("out/history.jsonl")).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().skip(1).map(str::to_owned).collect()
}

fn started(output: &Output) -> String {
    format!("{}\n{}", text(&output.stdout), text(&output.stderr))
}

const REPEATED: &str = r#"
[experiment]
repeats = 3
observe = true
lateness_limit = "1us"
"#;

#[test]
fn a_killed_experiment_goes_on_where_it_stopped() {
    let scenario = format!("{REPEATED}{}", lasting("1.021"));
    let Some(bench) = Bench::new("resume", &scenario) else {
        return;
    };
    let mut run = bench.command(&RUN).stdout(Stdio::null()).spawn().unwrap();
    let is_in_second = || !history(&bench).is_empty() && !bench::processes("1.021").is_empty();
    let began = wait_for(Duration::from_secs(20), is_in_second);
    kill(run.id() as i32);
    run.wait().unwrap();
    assert!(began, "no second run began");
    bench.assert_nothing_remains("1.021");
    let before = history(&bench);

    let output = bench.output(&[&RUN[..], &["--json"]].concat());
    assert!(output.status.success(), "{}", started(&output));
    let after = history(&bench);
    assert_eq!(after.len(), 3);
    assert_eq!(
        after[..before.len()],
        before,
        "a finished run was made again"
    );
    let rows = bench.json("results.json");
    let of = |key: &str| -> Vec<u64> {
        let rows = rows.as_array().unwrap().iter();
        rows.map(|row| row[key].as_u64().unwrap()).collect()
    };
    assert_eq!((of("repeat"), of("run")), (vec![1, 2, 3], vec![1, 2, 3]));

    let again = bench.output(&RUN);
    assert!(
        text(&again.stdout).contains("3 of these runs"),
        "{}",
        started(&again)
    );
    assert_eq!(history(&bench), after);
    assert_summary_and_marks(&bench, &text(&again.stdout));

    bench.write_scenario(&format!("{}{REPEATED}{}", bench::HOSTS, bench::IPERF3));
    let refused = bench.output(&RUN);
    assert_eq!(refused.status.code(), Some(1));
    let message = text(&refused.stderr);
    assert!(
        message.contains("has changed since") && message.contains("--fresh"),
        "{message}"
    );
    bench.assert_nothing_remains("1.021");
}

/// What three repeats with a limit of 1 us give beside their rows.
fn assert_summary_and_marks(bench: &Bench, table: &str) {
    let rows = bench.json("results.json");
    let row = &rows[0];
    assert_eq!(row["trusted"], false, "{row}");
    let why = row["distrust"].as_str().unwrap();
    assert!(why.contains("the limit is 1 us"), "{why}");
    assert!(table.contains("! ") && table.contains(" ± "), "{table}");
    for part in ["lateness", "waiting"] {
        let histogram = &row["emulator"][part]["histogram"];
        assert!(histogram.as_array().unwrap().len() > 1, "{part}: {row}");
    }
    let summary = &bench.json("summary.json")[0];
    assert_eq!(
        (&summary["runs"], &summary["untrusted"]),
        (&3.into(), &3.into())
    );
    let goodput = &summary["figures"]["goodput_mbps"];
    assert_eq!(goodput["n"], 3);
    assert!(goodput["ci95"].as_f64().unwrap() >= 0.0);
    let there = &row["directions"][0];
    assert_eq!(
        (&there["from"], &there["to"]),
        (&"client".into(), &"server".into())
    );
    let utilisation = there["utilisation"].as_f64().unwrap();
    let left_mbps = there["left_mbps"].as_f64().unwrap();
    assert!((utilisation - left_mbps / 100.0).abs() < 1e-3, "{there}");
    assert!((0.02..1.05).contains(&utilisation), "{there}");
    let csv = fs::read_to_string(bench.folder.join("out/results.csv")).unwrap();
    assert_eq!(csv.lines().count(), 4);
    for plot in ["throughput.png", "throughput.svg"] {
        assert!(bench.folder.join("out").join(plot).exists(), "{plot}");
    }
    assert_observed(bench);
}

/// The file of the observation, as `lab observe` shows it.
fn assert_observed(bench: &Bench) {
    let observe = |arguments: &[&str]| {
        let file = "out/runs/default.default.1.observation";
        let output = bench.output(&[&["observe", file], arguments].concat());
        assert!(output.status.success(), "{}", started(&output));
        text(&output.stdout)
    };
    let summary: Value = serde_json::from_str(&observe(&["--json"])).unwrap();
    let mbps = summary["directions"][0]["left_mbps"].as_f64().unwrap();
    let lines = observe(&["--csv", "-", "--interval", "10ms", "--link", "wan"]);
    let bytes = lines.lines().filter(|line| line.starts_with("wan,client"));
    let bytes: f64 = bytes
        .map(|line| line.split(',').nth(7).unwrap().parse::<f64>().unwrap())
        .sum();
    let duration_s = summary["to_s"].as_f64().unwrap() - summary["from_s"].as_f64().unwrap();
    let of_lines = bytes * 8.0 / duration_s / 1e6;
    assert!(
        (of_lines / mbps - 1.0).abs() < 1e-3,
        "{of_lines} Mb/s in lines, {mbps} in all"
    );
    for plot in ["o.png", "o.svg"] {
        observe(&["--plot", plot]);
        assert!(fs::metadata(bench.folder.join(plot)).unwrap().len() > 1000);
    }
    assert!(observe(&[]).contains("wan, client to server"));
    let beyond: Value = serde_json::from_str(&observe(&["--json", "--to", "1000"])).unwrap();
    assert_eq!(beyond["to_s"], summary["to_s"]);
    for wrong in [
        &["--from", "5", "--to", "2"][..],
        &["--from", "1000"],
        &["--interval", "1.5ms"],
    ] {
        let file = "out/runs/default.default.1.observation";
        let output = bench.output(&[&["observe", file], wrong].concat());
        assert_eq!(output.status.code(), Some(1), "{}", started(&output));
    }
}

#[test]
fn a_run_that_is_not_to_be_trusted_is_made_again_so_often() {
    let scenario = format!(
        "[experiment]\nlateness_limit = \"1us\"\nretries = 1\n{}",
        lasting("1.022")
    );
    let Some(bench) = Bench::new("retries", &scenario) else {
        return;
    };
    let attempts = |retries: &[&str]| {
        let output = bench.output(&[&RUN[..], retries].concat());
        assert!(output.status.success(), "{}", started(&output));
        let row = &bench.json("results.json")[0];
        assert_eq!(row["trusted"], false, "{row}");
        (row["attempts"].as_u64().unwrap(), history(&bench).len())
    };
    assert_eq!(attempts(&[]), (2, 2));
    assert_eq!(attempts(&[]), (2, 2), "there are no more");
    assert_eq!(attempts(&["--retries", "2"]), (3, 3), "one is left");
    assert_eq!(attempts(&["--retries", "0"]), (3, 3));
    bench.assert_nothing_remains("1.022");
}

#[test]
fn the_runs_can_be_listed_without_making_them() {
    let Some(bench) = Bench::new("list", &format!("{REPEATED}{}", bench::IPERF3)) else {
        return;
    };
    let output = bench.output(&[
        "run",
        "scenario.toml",
        "--list",
        "--repeats",
        "2",
        "--seed",
        "1",
    ]);
    let mut names: Vec<String> = text(&output.stdout).lines().map(str::to_owned).collect();
    names.sort();
    assert_eq!(names, ["default.default.1", "default.default.2"]);
    assert!(!bench.folder.join("out").exists());
}

/// A tmpfs, unmounted with its content when this goes.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn new(folder: &Path, size: &str) -> SmallDisk {
        fs::create_dir(folder).unwrap();
        let size = format!("size={size}");
        let tmpfs = ["-t", "tmpfs", "-o", &size, "fatpath-test"];
        let mounted = Command::new("mount").args(tmpfs).arg(folder).status();
        assert!(mounted.unwrap().success());
        SmallDisk(folder.to_owned())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_keeps_the_earlier_results_whole() {
    let programs = r#"
[set]
command = "iperf3 -c 10.77.0.2 -t 1.022 --json"
[[path]]
name = "works"
[[path]]
name = "fills"
set.command = "head -c 8000000 /dev/zero"
[[program]]
host = "server"
run = "iperf3 -s"
ready = { port = 5201 }
[[program]]
host = "client"
run = "{command}"
result = "iperf3"
"#;
    let Some(bench) = Bench::new("full", programs) else {
        return;
    };
    let _disk = SmallDisk::new(&bench.folder.join("out"), "3m");
    let output = bench.output(&RUN);
    assert_eq!(output.status.code(), Some(1), "{}", started(&output));
    let message = text(&output.stderr);
    assert!(
        message.contains("free some disk space and start the same command again"),
        "{message}"
    );
    bench.assert_nothing_remains("1.022");
    let rows = bench.json("results.json");
    assert_eq!(rows.as_array().unwrap().len(), 1, "{rows}");
    assert_eq!(rows[0]["path"], "works");
    assert!(rows[0]["goodput_mbps"].as_f64().unwrap() > 1.0);
    assert_eq!(history(&bench).len(), 1);
    assert_eq!(bench.json("summary.json").as_array().unwrap().len(), 1);

    // Room for a line, but not for the files of a run.
    let _disk = SmallDisk::new(&bench.folder.join("tiny"), "900k");
    let output = bench.output(&["run", "scenario.toml", "--out", "tiny", "--quiet"]);
    assert!(
        text(&output.stderr).contains("free some disk space"),
        "{}",
        started(&output)
    );
    let runs = fs::read_dir(bench.folder.join("tiny/runs")).unwrap();
    assert_eq!(runs.count(), 0, "a run was made");
}

/// `n` hosts a side behind one bottleneck.
fn dumbbell(n: usize) -> String {
    format!(
        r#"
[hosts.left]
count = {n}
[hosts.right]
count = {n}
[hosts.r1]
router = true
[hosts.r2]
router = true
[links.a]
between = ["left", "r1"]
[links.b]
between = ["right", "r2"]
[links.wan]
between = ["r1", "r2"]
rate = "100mbit"
delay = "5ms"
[[program]]
host = "right"
run = "iperf3 -s -1 -J"
ready = {{ port = 5201 }}
[[program]]
host = "left"
run = "iperf3 -c {{right}} -t 2.023 --json --get-server-output"
result = "iperf3"
"#
    )
}

fn assert_all_of_a_dumbbell_send(test: &str, n: usize) {
    let Some(bench) = Bench::of(test, &dumbbell(n)) else {
        return;
    };
    let output = bench.output(&RUN);
    assert!(output.status.success(), "{}", started(&output));
    let row = bench.json("results.json")[0].clone();
    let programs = row["programs"].as_array().unwrap();
    assert_eq!(programs.len(), n, "{row}");
    let share = |program: &Value| program["goodput_mbps"].as_f64().unwrap();
    assert!(programs.iter().all(|program| share(program) > 0.1), "{row}");
    assert_eq!(row["bottleneck_mbps"], 100.0, "{row}");
    let goodput_mbps = row["goodput_mbps"].as_f64().unwrap();
    assert!((10.0..=100.0).contains(&goodput_mbps), "{row}");
    bench.assert_nothing_remains("2.023");
}

#[test]
fn eight_hosts_a_side_share_a_bottleneck() {
    assert_all_of_a_dumbbell_send("bell", 8);
}

#[test]
#[ignore = "long"]
fn sixteen_hosts_a_side_share_a_bottleneck() {
    assert_all_of_a_dumbbell_send("bell16", 16);
}

/// The receiver's rates in the whole intervals of a client's output, each with its middle, seconds. The
/// last one may be a few milliseconds, in which a single burst is a high rate.
fn received_mbps(output: &str) -> Vec<(f64, f64)> {
    let json: Value = serde_json::from_str(output).unwrap();
    let intervals = json["server_output_json"]["intervals"].as_array().unwrap();
    let one = |interval: &Value| {
        let of = |key: &str| interval["sum"][key].as_f64().unwrap();
        let (start_s, end_s) = (of("start"), of("end"));
        let is_whole = end_s - start_s > 0.4;
        is_whole.then_some(((start_s + end_s) / 2.0, of("bits_per_second") / 1e6))
    };
    intervals.iter().filter_map(one).collect()
}

/// From 100 to 10 Mb/s after `at_s`; what the queue held takes a while to drain.
fn assert_slower_after(at_s: f64, output: &str) {
    let rates = received_mbps(output);
    let before = rates.iter().filter(|(s, _)| *s < at_s - 0.3);
    let fastest = before.map(|(_, mbps)| *mbps).fold(0.0, f64::max);
    let after: Vec<f64> = rates
        .iter()
        .filter(|(s, _)| *s > at_s + 1.0)
        .map(|(_, mbps)| *mbps)
        .collect();
    assert!(fastest > 15.0, "{rates:?}");
    assert!(
        after.len() > 1 && after.iter().all(|mbps| *mbps < 12.0),
        "{rates:?}"
    );
}

#[test]
fn a_link_can_be_set_while_traffic_runs() {
    let Some(bench) = Bench::new("set", "") else {
        return;
    };
    assert!(bench.output(&["up", "scenario.toml"]).status.success());
    let exec = |host: &str, words: &[&str]| {
        let mut command = bench.command(&["exec", "--lab", &bench.lab, host, "--"]);
        command.args(words).stdout(Stdio::piped()).spawn().unwrap()
    };
    let server = exec("server", &["iperf3", "-s", "-1", "-J", "-i", "0.5"]);
    sleep(Duration::from_millis(500));
    let words = "iperf3 -c 10.77.0.2 -t 5.024 -i 0.5 -J --get-server-output";
    let client = exec("client", &words.split(' ').collect::<Vec<_>>());
    let begun = Instant::now();
    sleep(Duration::from_secs(2));
    let set = bench.output(&["set", "wan", "rate=10mbit", "--lab", &bench.lab]);
    let set_s = begun.elapsed().as_secs_f64();
    assert!(set.status.success(), "{}", started(&set));
    assert!(
        text(&set.stdout).contains("client to server: rate 10 Mb/s"),
        "{}",
        started(&set)
    );
    let output = text(&client.wait_with_output().unwrap().stdout);
    assert!(server.wait_with_output().unwrap().status.success());
    for (arguments, why) in [
        (
            ["set", "lan", "rate=10mbit"],
            "no such link: lan; the links are: wan",
        ),
        (["set", "wan", "rate=fast"], "rate"),
        (["set", "wan", "colour=red"], "colour"),
    ] {
        let refused = bench.output(&[&arguments[..], &["--lab", &bench.lab]].concat());
        assert_eq!(refused.status.code(), Some(1));
        assert!(text(&refused.stderr).contains(why), "{}", started(&refused));
    }
    let down = bench.output(&["down", &bench.lab]);
    assert!(down.status.success(), "{}", started(&down));
    assert_eq!(bench.remains("5.024"), Vec::<String>::new());
    assert_slower_after(set_s, &output);
}

#[test]
fn links_change_at_the_times_of_the_scenario() {
    let changes = "[experiment]\nobserve = true\n[[change]]\nat = \"2s\"\nlink = \"wan\"\nrate = \"10mbit\"\n";
    let Some(bench) = Bench::new("change", &(changes.to_owned() + &lasting("5.025"))) else {
        return;
    };
    let output = bench.output(&RUN);
    assert!(output.status.success(), "{}", started(&output));
    let file = bench
        .folder
        .join("out/runs/default.default.1.2-client-iperf3.out");
    assert_slower_after(2.0, &fs::read_to_string(file).unwrap());
    // Neither rate was the link's throughout.
    let row = bench.json("results.json")[0].clone();
    assert_eq!(row["bottleneck_mbps"], Value::Null, "{row}");
    assert_eq!(row["directions"][0]["utilisation"], Value::Null, "{row}");
    assert!(row["directions"][0]["left_mbps"].as_f64().unwrap() > 1.0);
    bench.assert_nothing_remains("5.025");
}

#[test]
fn a_setting_of_the_machine_that_somebody_changes_is_told() {
    let Some(bench) = Bench::new("hand", &lasting("1.028")) else {
        return;
    };
    let mut run = bench.command(&RUN).stdout(Stdio::null()).spawn().unwrap();
    let began = wait_for(Duration::from_secs(20), || {
        !bench::processes("1.028").is_empty()
    });
    let setting = "/proc/sys/net/core/wmem_max";
    let message = bench
        .folder
        .join("out/runs/default.default.1.emulator.json");
    let ended = {
        // No other lab comes or goes meanwhile.
        let all = fs::File::open("/run/fatpath/lab/.lock").unwrap();
        rustix::fs::flock(&all, rustix::fs::FlockOperation::LockExclusive).unwrap();
        let set = fs::read_to_string(setting).unwrap();
        fs::write(setting, "212990").unwrap();
        // Written when the lab goes down, which is after the look at the settings.
        let ended = wait_for(Duration::from_secs(30), || message.exists());
        fs::write(setting, set).unwrap();
        ended
    };
    assert!(run.wait().unwrap().success() && began && ended);
    let row = bench.json("results.json")[0].clone();
    assert_eq!(row["trusted"], false, "{row}");
    let why = row["distrust"].as_str().unwrap();
    assert!(
        why.contains("net.core.wmem_max was 212992 and became 212990"),
        "{why}"
    );
    bench.assert_nothing_remains("1.028");
}

#[test]
#[ignore = "long"]
fn an_experiment_survives_being_killed_at_any_moment() {
    let scenario = format!("[experiment]\nrepeats = 4\n{}", lasting("1.026"));
    let Some(bench) = Bench::new("anytime", &scenario) else {
        return;
    };
    let mut kept: Vec<String> = vec![];
    for kills in 0..12u64 {
        let mut run = bench.command(&RUN).stdout(Stdio::null()).spawn().unwrap();
        sleep(Duration::from_millis(137 + 251 * kills));
        kill(run.id() as i32);
        run.wait().unwrap();
        let now = history(&bench);
        assert_eq!(now[..kept.len()], kept, "a finished run was lost");
        kept = now;
    }
    let output = bench.output(&RUN);
    assert!(output.status.success(), "{}", started(&output));
    assert_eq!(history(&bench)[..kept.len()], kept);
    assert_eq!(bench.json("results.json").as_array().unwrap().len(), 4);
    bench.assert_nothing_remains("1.026");
}

#[test]
#[ignore = "long"]
fn a_disk_that_fills_during_the_observation_is_told() {
    let programs = r#"
[experiment]
observe = { flows = true }
[[path]]
name = "works"
set.seconds = "1.027"
[[path]]
name = "fills"
set.seconds = "30.027"
[set]
seconds = ""
[[program]]
host = "server"
run = "iperf3 -s"
ready = { port = 5201 }
[[program]]
host = "client"
run = "iperf3 -c {server} -P 64 -t {seconds} --json"
result = "iperf3"
"#;
    let Some(bench) = Bench::new("fullobs", programs) else {
        return;
    };
    let disk = SmallDisk::new(&bench.folder.join("out"), "3m");
    let output = bench.output(&RUN);
    assert_eq!(output.status.code(), Some(1), "{}", started(&output));
    assert!(
        text(&output.stderr).contains("free some disk space"),
        "{}",
        started(&output)
    );
    assert_eq!(bench.json("results.json").as_array().unwrap().len(), 1);
    bench.assert_nothing_remains("30.027");
    drop(disk);
}
