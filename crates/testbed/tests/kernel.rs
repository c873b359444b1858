// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lab on the real kernel: short runs, and whatever may befall the processes of a lab. After
//! each of them, nothing of the lab may be left on the machine. See `bench` for what it needs.
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees that only inside #[test]"
)]

mod bench;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use bench::{Bench, IPERF3, kill, lasting, processes, signal, wait_for};

#[test]
fn a_short_run_measures_the_bottleneck_and_leaves_nothing() {
    let Some(bench) = Bench::new("short", &lasting("2.017")) else {
        return;
    };
    // A machine that stands still for a moment has TCP retransmit, and two seconds are too short to get over it.
    let mut runs = std::iter::repeat_with(|| goodput_mbps(&bench)).take(3);
    assert!(runs.any(|goodput_mbps| goodput_mbps >= 70.0));
    let png = fs::read(bench.folder.join("out/throughput.png")).unwrap();
    assert!(png.starts_with(b"\x89PNG"));
    bench.assert_nothing_remains("2.017");
}

/// Of one run of the scenario, whose results the file and the terminal say alike.
fn goodput_mbps(bench: &Bench) -> f64 {
    let output = bench.output(&["run", "scenario.toml", "--out", "out", "--json", "--fresh"]);
    assert!(output.status.success(), "{output:?}");
    let file = fs::read_to_string(bench.folder.join("out/results.json")).unwrap();
    let rows: Vec<serde_json::Value> = serde_json::from_str(&file).unwrap();
    let said: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(rows, said);
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["bottleneck_mbps"], 100.0);
    println!("{}", rows[0]);
    let goodput_mbps = rows[0]["goodput_mbps"].as_f64().unwrap();
    assert!(goodput_mbps <= 100.0);
    goodput_mbps
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
fn kill_9_of_lab_and_supervisor_is_cleared_by_the_next_command() {
    let Some(bench) = Bench::new("both", &lasting("29.12")) else {
        return;
    };
    let mut run = bench.run_until_client("29.12");
    kill(bench.supervisor().unwrap());
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
    assert_is_private(&bench);
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
fn down_without_a_name_takes_down_what_its_own_session_brought_up_and_no_other() {
    let Some(bench) = Bench::new("name", "") else {
        return;
    };
    let in_own_session = |script: &str| {
        let mut command = Command::new("setsid");
        command
            .args(["--wait", "sh", "-c", script])
            .arg(bench::program());
        command.current_dir(&bench.folder).output().unwrap()
    };
    let up = in_own_session("\"$0\" lab up scenario.toml");
    assert!(up.status.success(), "{up:?}");
    let refused = in_own_session("\"$0\" lab down");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && said.contains("fatpath lab down NAME"),
        "{refused:?}"
    );
    assert!(said.contains(&bench.lab), "{said}");
    assert!(bench.output(&["down", &bench.lab]).status.success());
    let own = in_own_session("\"$0\" lab up scenario.toml && \"$0\" lab down");
    assert!(own.status.success(), "{own:?}");
    assert_eq!(bench.remains("no client"), Vec::<String>::new());
}

#[test]
fn a_lab_keeps_nothing_of_its_caller_open() {
    use rustix::fs::{FlockOperation, flock};
    use rustix::io::{FdFlags, fcntl_setfd};
    let Some(bench) = Bench::new("lock", "") else {
        return;
    };
    let path = bench.folder.join("lock");
    let held = fs::File::create(&path).unwrap();
    flock(&held, FlockOperation::LockExclusive).unwrap();
    fcntl_setfd(&held, FdFlags::empty()).unwrap();
    let up = bench.output(&["up", "scenario.toml"]);
    assert!(up.status.success(), "{up:?}");
    drop(held);
    let again = fs::File::open(&path).unwrap();
    let locked = flock(&again, FlockOperation::NonBlockingLockExclusive);
    assert!(bench.output(&["down", &bench.lab]).status.success());
    assert_eq!(locked, Ok(()), "the lab's processes hold the lock");
}

#[test]
fn a_lab_stays_up_though_nobody_reads_what_the_command_prints() {
    let Some(bench) = Bench::new("pipe", IPERF3) else {
        return;
    };
    let unread = |arguments: &[&str]| {
        let mut command = bench
            .command(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        drop(command.stdout.take());
        let output = command.wait_with_output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    };
    unread(&["up", "scenario.toml"]);
    unread(&["list"]);
    unread(&["set", "wan", "loss=1%", "--lab", &bench.lab]);
    unread(&["run", "scenario.toml", "--list"]);
    let list = bench.output(&["list", "--json"]).stdout;
    let labs: Vec<serde_json::Value> = serde_json::from_slice(&list).unwrap();
    let ours = labs.iter().find(|lab| lab["name"] == bench.lab.as_str());
    assert_eq!(ours.unwrap()["up"], true);
    unread(&["down", &bench.lab]);
    assert_eq!(bench.remains("no client"), Vec::<String>::new());
}

#[test]
fn a_lab_goes_with_the_command_that_was_to_bring_it_up() {
    let many = "[hosts.left]\ncount = 100\n[hosts.right]\ncount = 100\n\
                [links.l]\nbetween = [\"left\", \"right\"]\ndelay = \"1ms\"";
    let Some(bench) = Bench::of("early", many) else {
        return;
    };
    let mut up = bench.command(&["up", "scenario.toml"]).spawn().unwrap();
    assert!(wait_for(Duration::from_secs(10), || bench
        .supervisor()
        .is_some()));
    // Not SIGINT, which a shell has its background jobs ignore.
    signal(up.id() as i32, rustix::process::Signal::TERM);
    assert!(
        !up.wait().unwrap().success(),
        "it was up before the signal came"
    );
    bench.assert_nothing_remains("no client");
}

/// Nobody but root can lock what the lab locks, and others see all the same that it is up.
fn assert_is_private(bench: &Bench) {
    let directory = format!("/run/fatpath/lab/{}", bench.lab);
    for file in [
        format!("{directory}/journal"),
        "/run/fatpath/lab/.lock".to_owned(),
    ] {
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    match bench.command(&["list", "--json"]).uid(65534).output() {
        Err(error) => println!("skipped: list by another user: {error}"),
        Ok(output) => {
            let labs: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
            let ours = labs.iter().find(|lab| lab["name"] == bench.lab.as_str());
            assert_eq!(ours.unwrap()["up"], true);
        }
    }
}

#[test]
fn an_experiment_goes_on_when_the_file_of_the_program_is_replaced() {
    let repeats = format!("[experiment]\nrepeats = 2\n{}", lasting("1.0191"));
    let Some(bench) = Bench::new("gone", &repeats) else {
        return;
    };
    let program = bench.folder.join("lab");
    fs::copy(bench::program(), &program).unwrap();
    let arguments = ["run", "scenario.toml", "--out", "out", "--quiet"];
    let run = bench
        .command_of(&program, &arguments)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let is_running = || !processes("1.0191").is_empty();
    let began = wait_for(Duration::from_secs(20), is_running);
    fs::remove_file(&program).unwrap();
    let output = run.wait_with_output().unwrap();
    assert!(began && output.status.success(), "{output:?}");
    bench.assert_nothing_remains("1.0191");
}

#[test]
fn who_is_not_root_is_told_before_anything_is_made() {
    let Some(bench) = Bench::new("user", IPERF3) else {
        return;
    };
    fs::set_permissions(&bench.folder, fs::Permissions::from_mode(0o777)).unwrap();
    let arguments = ["run", "scenario.toml", "--out", "out"];
    match bench.command(&arguments).uid(65534).output() {
        Err(error) => println!("skipped: run by another user: {error}"),
        Ok(output) => {
            let message = String::from_utf8_lossy(&output.stderr);
            assert!(
                message.contains("needs root") && !output.status.success(),
                "{message}"
            );
        }
    }
    assert!(!bench.folder.join("out").exists());
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

/// Sysctls of the host that a test sets, and their values before.
struct Sysctls(Vec<(&'static str, String)>);

impl Sysctls {
    fn set(values: &[(&'static str, &str)]) -> Sysctls {
        let path = |name: &str| Path::new("/proc/sys/net/ipv4").join(name);
        let before = values
            .iter()
            .map(|(name, _)| (*name, fs::read_to_string(path(name)).unwrap()));
        let before = Sysctls(before.collect());
        for (name, value) in values {
            fs::write(path(name), value).unwrap();
        }
        before
    }
}

impl Drop for Sysctls {
    fn drop(&mut self) {
        for (name, value) in &self.0 {
            let _ = fs::write(Path::new("/proc/sys/net/ipv4").join(name), value);
        }
    }
}

#[test]
fn a_law_is_allowed_no_longer_than_the_lab_is_up() {
    let tuned = "[[variant]]\nname = \"tuned\"\npolicy = \"policy.toml\"\n";
    let Some(bench) = Bench::new("allowed", &(tuned.to_owned() + IPERF3)) else {
        return;
    };
    // Undone in this order, as setting a default allows it.
    let _host = Sysctls::set(&[
        ("tcp_congestion_control", "reno"),
        ("tcp_allowed_congestion_control", "reno"),
    ]);
    fs::write(bench.folder.join("policy.toml"), "").unwrap();
    let output = bench.output(&["run", "scenario.toml", "--out", "out"]);
    assert_eq!(output.status.code(), Some(1));
    let allowed = fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control").unwrap();
    assert_eq!(allowed.trim(), "reno");
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
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(
        message.contains("fatpath daemon: ended before it was ready"),
        "{message}"
    );
    assert!(
        message.contains("unrecognized subcommand 'daemon'"),
        "{message}"
    );
    assert_eq!(bench.remains("no client"), Vec::<String>::new());
}
