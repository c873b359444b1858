// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lab on the real kernel: short runs, and whatever may befall the processes of a lab. After
//! each of them, nothing of the lab may be left on the machine.
//!
//! Needs root and iperf3; without them the tests say that they were skipped, and why. They drive the
//! example `lab`, which `cargo test -p fatpath-lab` builds (with `--test kernel` alone it does not).
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees that only inside #[test]"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The settings that a lab changes are the whole machine's, so one test runs at a time.
static MACHINE: Mutex<()> = Mutex::new(());

const SYSCTLS: [&str; 3] = [
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.ipv4.tcp_allowed_congestion_control",
];

/// A test's lab: its scenario file, and the machine as it was before.
struct Bench {
    lab: String,
    folder: PathBuf,
    sysctls: BTreeMap<&'static str, String>,
    _alone: MutexGuard<'static, ()>,
}

impl Bench {
    /// `None`, with a line that says why, where the kernel tests cannot run.
    fn new(test: &str, programs: &str) -> Option<Bench> {
        let iperf3 = Command::new("iperf3").arg("--version").output();
        if !rustix::process::geteuid().is_root() {
            println!("skipped: {test} needs root");
            return None;
        }
        if iperf3.is_err() {
            println!("skipped: {test} needs iperf3");
            return None;
        }
        let alone = MACHINE
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let lab = format!("t-{test}-{}", std::process::id() % 10_000);
        let folder = std::env::temp_dir().join(format!("fatpath-{lab}"));
        fs::create_dir_all(&folder).unwrap();
        let text = format!("name = \"{lab}\"\n{HOSTS}\n{programs}");
        fs::write(folder.join("scenario.toml"), text).unwrap();
        Some(Bench {
            lab,
            folder,
            sysctls: sysctls(),
            _alone: alone,
        })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command
            .arg("lab")
            .args(arguments)
            .current_dir(&self.folder)
            .stdin(Stdio::null());
        command
    }

    fn output(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Starts `lab run` and waits until its client, a program that tests know by its arguments, runs.
    fn run_until_client(&self, client: &str) -> Child {
        let mut run = self
            .command(&["run", "scenario.toml", "--quiet"])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let started = wait_for(Duration::from_secs(10), || !processes(client).is_empty());
        if !started {
            let _ = run.kill();
        }
        assert!(started, "the client did not start");
        run
    }

    fn keeper(&self) -> Option<i32> {
        let text = fs::read_to_string(format!("/run/fatpath/lab/{}/keeper.pid", self.lab)).ok()?;
        text.parse().ok()
    }

    /// What is still there of the lab.
    fn remains(&self, client: &str) -> Vec<String> {
        let mut remains: Vec<String> = ["client", "server"]
            .iter()
            .map(|host| format!("/run/netns/fp-{}-{host}", self.lab))
            .chain([format!("/run/fatpath/lab/{}", self.lab), self.cgroup()])
            .filter(|path| Path::new(path).exists())
            .collect();
        remains.extend(processes(client).iter().map(|pid| format!("process {pid}")));
        remains.extend(
            processes(&self.lab)
                .iter()
                .map(|pid| format!("keeper {pid}")),
        );
        remains.extend(self.changed_sysctls());
        remains
    }

    fn changed_sysctls(&self) -> Vec<String> {
        let others_up = fs::read_dir("/run/fatpath/lab").is_ok_and(|labs| {
            labs.flatten()
                .any(|lab| lab.path().is_dir() && lab.file_name() != self.lab.as_str())
        });
        if others_up {
            println!(
                "another lab is up: whether the machine's settings are put back is not checked"
            );
            return vec![];
        }
        let now = sysctls();
        let changed = now
            .iter()
            .filter(|(name, value)| self.sysctls[*name] != **value);
        changed
            .map(|(name, value)| format!("{name} = {value}"))
            .collect()
    }

    fn cgroup(&self) -> String {
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        let root = mounts
            .lines()
            .find(|line| line.contains(" cgroup2 "))
            .unwrap();
        format!(
            "{}/fatpath-lab-{}",
            root.split(' ').nth(1).unwrap(),
            self.lab
        )
    }

    fn assert_nothing_remains(&self, client: &str) {
        wait_for(Duration::from_secs(10), || self.remains(client).is_empty());
        assert_eq!(self.remains(client), Vec::<String>::new());
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

const HOSTS: &str = r#"
[hosts.client]
[hosts.server]
[links.wan]
between = ["client", "server"]
rate = "100mbit"
delay = "5ms"
"#;

const IPERF3: &str = r#"
[[program]]
host = "server"
run = "iperf3 -s -1 -J -i 0.5"
ready = { port = 5201 }
[[program]]
host = "client"
run = "iperf3 -c {server} -t 2 -i 0.5 --json --get-server-output"
result = "iperf3"
"#;

/// Seconds that iperf3 rounds down; by their fraction the client is known among all processes.
fn lasting(client: &str) -> String {
    IPERF3.replace("-t 2", &format!("-t {client}"))
}

fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test
        .parent()
        .unwrap()
        .parent()
        .unwrap()
        .join("examples/lab");
    assert!(
        program.exists(),
        "cargo test builds the example; with --test, build it first: cargo build --examples"
    );
    program
}

fn sysctls() -> BTreeMap<&'static str, String> {
    let read =
        |name: &str| fs::read_to_string(format!("/proc/sys/{}", name.replace('.', "/"))).unwrap();
    SYSCTLS
        .iter()
        .map(|name| (*name, read(name).trim().to_owned()))
        .collect()
}

/// The processes with `argument` among their arguments.
fn processes(argument: &str) -> Vec<String> {
    let has = |pid: &String| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0)
            .any(|one| one == argument.as_bytes())
    };
    let names = fs::read_dir("/proc").unwrap().flatten();
    names
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(has)
        .collect()
}

fn wait_for(limit: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    while !is_so() {
        if Instant::now() > deadline {
            return false;
        }
        sleep(Duration::from_millis(20));
    }
    true
}

fn signal(pid: i32, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal).unwrap();
}

fn kill(pid: i32) {
    signal(pid, rustix::process::Signal::KILL);
}

#[test]
fn a_short_run_measures_the_bottleneck_and_leaves_nothing() {
    let Some(bench) = Bench::new("short", &lasting("2.017")) else {
        return;
    };
    let output = bench.output(&["run", "scenario.toml", "--out", "out", "--json"]);
    assert!(output.status.success(), "{output:?}");
    let file = fs::read_to_string(bench.folder.join("out/results.json")).unwrap();
    let rows: serde_json::Value = serde_json::from_str(&file).unwrap();
    assert_eq!(
        rows,
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    );
    assert_eq!(rows.as_array().unwrap().len(), 1);
    assert_eq!(rows[0]["bottleneck_mbps"], 100.0);
    let goodput_mbps = rows[0]["goodput_mbps"].as_f64().unwrap();
    assert!(
        (70.0..=100.0).contains(&goodput_mbps),
        "{goodput_mbps} Mb/s of 100"
    );
    let png = fs::read(bench.folder.join("out/throughput.png")).unwrap();
    assert!(png.starts_with(b"\x89PNG"));
    bench.assert_nothing_remains("2.017");
}

#[test]
fn kill_9_of_the_lab_leaves_nothing() {
    let Some(bench) = Bench::new("kill", &lasting("29.11")) else {
        return;
    };
    let mut run = bench.run_until_client("29.11");
    assert!(
        bench.remains("29.11").len() > 5,
        "a lab that is up is seen: {:?}",
        bench.remains("29.11")
    );
    kill(run.id() as i32);
    run.wait().unwrap();
    bench.assert_nothing_remains("29.11");
}

#[test]
fn kill_9_of_lab_and_keeper_is_cleared_by_the_next_command() {
    let Some(bench) = Bench::new("both", &lasting("29.12")) else {
        return;
    };
    let mut run = bench.run_until_client("29.12");
    kill(bench.keeper().unwrap());
    kill(run.id() as i32);
    run.wait().unwrap();
    assert!(wait_for(Duration::from_secs(5), || processes("29.12").is_empty()));
    assert!(
        !bench.remains("29.12").is_empty(),
        "nothing was left, so this test tests nothing"
    );
    let list = || String::from_utf8(bench.output(&["list"]).stdout).unwrap();
    assert!(
        wait_for(Duration::from_secs(5), || list().contains("left over")),
        "{}",
        list()
    );
    let output = bench.output(&["down", &bench.lab]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(bench.remains("29.12"), Vec::<String>::new());
}

#[test]
fn sigterm_ends_the_run_in_order() {
    let Some(bench) = Bench::new("term", &lasting("29.13")) else {
        return;
    };
    let mut run = bench.run_until_client("29.13");
    signal(run.id() as i32, rustix::process::Signal::TERM);
    assert_eq!(run.wait().unwrap().code(), Some(130));
    assert_eq!(bench.remains("29.13"), Vec::<String>::new());
}

#[test]
fn a_lab_stays_up_until_it_is_taken_down() {
    let Some(bench) = Bench::new("stay", "") else {
        return;
    };
    let up = bench.output(&["up", "scenario.toml"]);
    assert!(up.status.success(), "{up:?}");
    let exec = |words: &[&str]| {
        let lab = bench.lab.as_str();
        bench.output(&[&["exec", "--lab", lab, "client", "--"], words].concat())
    };
    assert_eq!(exec(&["sh", "-c", "exit 7"]).status.code(), Some(7));
    let law = exec(&["cat", "/proc/sys/net/ipv4/tcp_congestion_control"]);
    assert_eq!(law.stdout, b"cubic\n");
    let again = bench.output(&["up", "scenario.toml"]);
    assert!(
        String::from_utf8_lossy(&again.stderr).contains("is up already"),
        "{again:?}"
    );
    let mut sleeper = bench
        .command(&[
            "exec", "--lab", &bench.lab, "server", "--", "sleep", "291.4",
        ])
        .spawn()
        .unwrap();
    let in_cgroup = || fs::read_to_string(bench.cgroup() + "/cgroup.procs").unwrap();
    assert!(wait_for(Duration::from_secs(5), || !in_cgroup().is_empty()));
    let down = bench.output(&["down", &bench.lab]);
    assert!(down.status.success(), "{down:?}");
    assert!(!sleeper.wait().unwrap().success());
    assert_eq!(bench.remains("291.4"), Vec::<String>::new());
}

#[test]
fn a_program_that_fails_or_never_ends_is_named_and_the_other_runs_go_on() {
    let programs = r#"
[set]
command = "iperf3 -c {server} -t 1 --json"
[[path]]
name = "fails"
set.command = "sh -c 'echo no luck >&2; exit 3'"
[[path]]
name = "hangs"
set.command = "sleep 292.5"
[[path]]
name = "works"
set.command = "iperf3 -c 10.77.0.2 -t 1 --json"
[[program]]
host = "server"
run = "iperf3 -s"
ready = { port = 5201 }
[[program]]
host = "client"
run = "{command}"
result = "iperf3"
time_limit = "3s"
"#;
    let Some(bench) = Bench::new("fail", programs) else {
        return;
    };
    let output = bench.output(&["run", "scenario.toml", "--out", "out", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let error = |row: usize| rows[row]["error"].as_str().unwrap_or_default().to_owned();
    assert!(
        error(0).contains("2-client-sh: failed (exit status: 3)"),
        "{}",
        error(0)
    );
    assert!(error(0).contains("no luck"), "{}", error(0));
    assert!(
        error(1).contains("2-client-sleep: did not end within its time limit of 3 s"),
        "{}",
        error(1)
    );
    assert!(rows[2]["goodput_mbps"].as_f64().unwrap() > 1.0, "{rows}");
    bench.assert_nothing_remains("292.5");
}

#[test]
fn a_daemon_that_does_not_start_is_told_and_leaves_nothing() {
    let tuned = "[[variant]]\nname = \"tuned\"\npolicy = \"policy.toml\"\n";
    let Some(bench) = Bench::new("daemon", &(tuned.to_owned() + IPERF3)) else {
        return;
    };
    fs::write(bench.folder.join("policy.toml"), "").unwrap();
    let output = bench.output(&["run", "scenario.toml", "--out", "out"]);
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        told.contains("fatpath daemon: ended before it was ready"),
        "{told}"
    );
    assert!(told.contains("unrecognized subcommand 'daemon'"), "{told}");
    assert_eq!(bench.remains("no client"), Vec::<String>::new());
}
