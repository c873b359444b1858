// SPDX-License-Identifier: MIT OR Apache-2.0
//! A lab of a test on the real kernel, and the machine as it was before: after each test, nothing of
//! the lab may be left.
//!
//! Needs root and iperf3; without them a test says that it was skipped, and why. It drives the
//! example `lab`, which `cargo test -p fatpath-testbed` builds (with `--test` alone it does not).
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The settings that a lab changes are the whole machine's, so one test of this program runs at a time.
static MACHINE: Mutex<()> = Mutex::new(());

const SYSCTLS: [&str; 3] = [
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.ipv4.tcp_allowed_congestion_control",
];

/// A test's lab: its scenario file, and the machine as it was before.
pub struct Bench {
    pub lab: String,
    pub folder: PathBuf,
    sysctls: BTreeMap<&'static str, String>,
    others_were_up: bool,
    _other_programs: File,
    _alone: MutexGuard<'static, ()>,
}

impl Bench {
    /// `None`, with a line that says why, where the kernel tests cannot run.
    pub fn new(test: &str, programs: &str) -> Option<Bench> {
        Bench::of(test, &format!("{HOSTS}\n{programs}"))
    }

    /// The same with a scenario of its own, its name left out.
    pub fn of(test: &str, scenario: &str) -> Option<Bench> {
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
        let machine = File::create(std::env::temp_dir().join("fatpath-tests.lock")).unwrap();
        rustix::fs::flock(&machine, rustix::fs::FlockOperation::LockExclusive).unwrap();
        let lab = format!("t-{test}-{}", std::process::id() % 10_000);
        let folder = std::env::temp_dir().join(format!("fatpath-{lab}"));
        fs::create_dir_all(&folder).unwrap();
        let others_were_up = others_are_up(&lab);
        let bench = Bench {
            lab,
            folder,
            sysctls: sysctls(),
            others_were_up,
            _other_programs: machine,
            _alone: alone,
        };
        bench.write_scenario(scenario);
        Some(bench)
    }

    pub fn write_scenario(&self, scenario: &str) {
        let text = format!("name = \"{}\"\n{scenario}", self.lab);
        fs::write(self.folder.join("scenario.toml"), text).unwrap();
    }

    /// A file that `lab run --out out` has written.
    pub fn json(&self, file: &str) -> serde_json::Value {
        let file = self.folder.join("out").join(file);
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file:?}: {error}"));
        serde_json::from_str(&text).unwrap()
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        self.command_of(&program(), arguments)
    }

    /// The same with another file of the program.
    pub fn command_of(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .arg("lab")
            .args(arguments)
            .current_dir(&self.folder)
            .stdin(Stdio::null());
        command
    }

    pub fn output(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Starts `lab run` and waits until its client, a program that tests know by its arguments, runs.
    pub fn run_until_client(&self, client: &str) -> Child {
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

    pub fn supervisor(&self) -> Option<i32> {
        let text =
            fs::read_to_string(format!("/run/fatpath/lab/{}/supervisor.pid", self.lab)).ok()?;
        text.parse().ok()
    }

    /// What is still there of the lab.
    pub fn remains(&self, client: &str) -> Vec<String> {
        let mut remains: Vec<String> = [format!("/run/fatpath/lab/{}", self.lab), self.cgroup()]
            .into_iter()
            .filter(|path| Path::new(path).exists())
            .collect();
        let ours = format!("fp-{}-", self.lab);
        let namespaces = fs::read_dir("/run/netns").into_iter().flatten().flatten();
        let names = namespaces.map(|entry| entry.file_name().to_string_lossy().into_owned());
        remains.extend(names.filter(|name| name.starts_with(&ours)));
        remains.extend(processes(client).iter().map(|pid| format!("process {pid}")));
        remains.extend(
            processes(&self.lab)
                .iter()
                .map(|pid| format!("supervisor {pid}")),
        );
        remains.extend(self.changed_sysctls());
        remains
    }

    fn changed_sysctls(&self) -> Vec<String> {
        if self.others_were_up || others_are_up(&self.lab) {
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

    pub fn cgroup(&self) -> String {
        let root = fatpath_mounts::first_mount_of("cgroup2").unwrap().unwrap();
        let name = format!("fatpath-lab-{}", self.lab);
        root.join(name).display().to_string()
    }

    pub fn assert_nothing_remains(&self, client: &str) {
        wait_for(Duration::from_secs(10), || self.remains(client).is_empty());
        assert_eq!(self.remains(client), Vec::<String>::new());
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

pub const HOSTS: &str = r#"
[hosts.client]
[hosts.server]
[links.wan]
between = ["client", "server"]
rate = "100mbit"
delay = "5ms"
"#;

pub fn program() -> PathBuf {
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

/// Another lab holds the machine's settings, or puts them back at any moment.
fn others_are_up(lab: &str) -> bool {
    let labs = fs::read_dir("/run/fatpath/lab").into_iter().flatten();
    labs.flatten()
        .any(|other| other.path().is_dir() && other.file_name() != lab)
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
pub fn processes(argument: &str) -> Vec<String> {
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

pub fn wait_for(limit: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    while !is_so() {
        if Instant::now() > deadline {
            return false;
        }
        sleep(Duration::from_millis(20));
    }
    true
}

pub fn signal(pid: i32, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal).unwrap();
}

pub fn kill(pid: i32) {
    signal(pid, rustix::process::Signal::KILL);
}

pub const IPERF3: &str = r#"
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
pub fn lasting(client: &str) -> String {
    IPERF3.replace("-t 2", &format!("-t {client}"))
}
