// SPDX-License-Identifier: MIT OR Apache-2.0
//! The daemon's life on a real host: what it leaves, what it refuses, what it undoes.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use rustix::net::{Shutdown, shutdown};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use support::{Daemon, FATPATH, Lab, alone, until};

const RULE: &str = "[host.sysctl]\n'net.core.rmem_max' = 'auto'\n\
     [[rule]]\nname = 'one'\ndestination = ['127.0.8.0/24']\nreceive_buffer = 70000000\n\
     override_application = true\ncongestion_control = { law = 'fp_aimd', a = 4, b = 0.125 }\n";

fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What there is of BPF: of that, a socket of an earlier test that nobody owns any more holds its law until it ends.
const OF_BPF: [&str; 4] = ["programs", "maps", "links", "struct_ops"];

/// What `fatpath unload` must leave as it was.
fn host() -> Vec<(&'static str, BTreeSet<String>)> {
    let bpf = |kind| -> BTreeSet<String> {
        let listed: Value =
            serde_json::from_str(&run("bpftool", &["-j", kind, "list"])).unwrap_or_default();
        let all = listed.as_array().cloned().unwrap_or_default();
        all.iter().map(|entry| entry["id"].to_string()).collect()
    };
    let lines = |program: &str, arguments: &[&str]| -> BTreeSet<String> {
        run(program, arguments).lines().map(str::to_owned).collect()
    };
    let sysctls = [
        "net.core.rmem_max",
        "net.core.wmem_max",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_wmem",
    ];
    vec![
        ("programs", bpf("prog")),
        ("maps", bpf("map")),
        ("links", bpf("link")),
        ("struct_ops", lines("bpftool", &["struct_ops", "list"])),
        ("bpffs", lines("ls", &["/sys/fs/bpf"])),
        ("sysctls", lines("sysctl", &sysctls)),
        (
            "laws",
            lines("sysctl", &["net.ipv4.tcp_available_congestion_control"]),
        ),
        ("routes", lines("ip", &["route"])),
    ]
}

#[test]
fn unload_leaves_the_host_as_it_was() {
    let Some(_alone) = alone() else { return };
    // The BPF file system is mounted by the first daemon of a host, and stays while in use.
    drop(Daemon::start(RULE));
    let before = until("the host to be at rest", || {
        let before = host();
        std::thread::sleep(Duration::from_millis(500));
        (before == host()).then_some(before)
    });
    let mut daemon = Daemon::start(RULE);
    assert_ne!(host(), before);
    let flow = loopback_flow();
    let report = daemon.unload();
    assert_eq!(report["failed"], serde_json::json!([]));
    drop(flow);
    // Maps and programs go when the kernel's last reference does, a moment later.
    for (what, was) in before {
        until(what, || {
            let now = host().into_iter().find(|(name, _)| *name == what)?.1;
            let is_less = OF_BPF.contains(&what) && now.is_subset(&was);
            (now == was || is_less).then_some(())
        });
    }
}

fn loopback_flow() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.8.1:0").unwrap();
    let here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (here, listener.accept().unwrap().0)
}

#[test]
fn a_live_flow_goes_on_over_unload_with_the_law_of_its_namespace() {
    let Some(_alone) = alone() else { return };
    let own = run("sysctl", &["-n", "net.ipv4.tcp_congestion_control"]);
    let mut daemon = Daemon::start(RULE);
    let (here, there) = loopback_flow();
    let end = here.local_addr().unwrap();
    assert_eq!(daemon.flow(end)["law"], "fp_aimd");
    // The other end's peer is 127.0.0.1, which is on no rule.
    assert_eq!(daemon.unload()["flows_released"], 1);
    let filter = format!("src {end}");
    assert!(run("ss", &["-Htin", &filter]).contains(own.trim()));
    use std::io::{Read, Write};
    (&here).write_all(b"still here").unwrap();
    let mut read = [0; 10];
    (&there).read_exact(&mut read).unwrap();
    assert_eq!(&read, b"still here");
}

#[test]
fn kill_9_loses_no_tuning_and_the_next_daemon_takes_over() {
    let Some(_alone) = alone() else { return };
    let mut daemon = Daemon::start(RULE);
    let (here, there) = loopback_flow();
    let before = daemon.flow(here.local_addr().unwrap());
    daemon.kill_9();
    // New flows are tuned without a daemon, and without one they are listed.
    let second = loopback_flow();
    assert_eq!(
        daemon.flow(second.0.local_addr().unwrap())["law"],
        "fp_aimd"
    );
    drop((here, there)); // ends while nobody listens: the ring buffer keeps it
    daemon.restart();
    let said = daemon.stderr();
    assert!(said.contains("took over"), "{said}");
    for part in [
        " runs: policy ",
        "policy.toml",
        "fatpath.sock",
        "view.sock",
        "flows.jsonl",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(daemon.flow(second.0.local_addr().unwrap())["rule"], "one");
    let end = until("the end of the flow that ended meanwhile", || {
        daemon
            .log()
            .into_iter()
            .find(|line| line["cookie"] == before["cookie"])
    });
    assert_eq!(end["event"], "flow_end");
}

/// Shuts the TCP socket on which a daemon listens, through a copy of its descriptor (pidfd_getfd(2)): from then
/// on accept(2) fails.
fn shut_tcp_listener_of(daemon: &Daemon) {
    let pid = daemon.child.id();
    let listeners = run("ss", &["-Htlnp"]);
    let marker = format!("pid={pid},fd=");
    let (_, after) = listeners.split_once(&marker).unwrap();
    let fd = after.split(')').next().unwrap().parse().unwrap();
    let pid = Pid::from_raw(pid as i32).unwrap();
    let process = pidfd_open(pid, PidfdFlags::empty()).unwrap();
    let listener = pidfd_getfd(process, fd, PidfdGetfdFlags::empty()).unwrap();
    shutdown(listener, Shutdown::Read).unwrap();
}

#[test]
fn a_worker_that_dies_ends_the_daemon_with_an_error_and_loses_no_tuning() {
    let Some(_alone) = alone() else { return };
    let mut daemon = Daemon::start_listening(RULE);
    let (here, _there) = loopback_flow();
    let end = here.local_addr().unwrap();
    assert_eq!(daemon.flow(end)["law"], "fp_aimd");
    shut_tcp_listener_of(&daemon);
    let status = until("the daemon to end", || daemon.child.try_wait().unwrap());
    let said = daemon.stderr();
    assert_eq!(status.code(), Some(1), "{said}");
    for part in ["the worker `API` failed", "Invalid argument"] {
        assert!(said.contains(part), "{said}");
    }
    assert!(!daemon.path("run/fatpath.sock").exists());
    // Listed without a daemon: what is pinned goes on, for this flow and for new ones.
    assert_eq!(daemon.flow(end)["law"], "fp_aimd");
    let (second, _there) = loopback_flow();
    assert_eq!(daemon.flow(second.local_addr().unwrap())["rule"], "one");
    daemon.restart();
    assert!(daemon.stderr().contains("took over"), "{}", daemon.stderr());
    assert_eq!(daemon.flow(end)["law"], "fp_aimd");
}

#[test]
fn a_second_daemon_is_refused_by_the_pid_of_the_first() {
    let Some(_alone) = alone() else { return };
    let daemon = Daemon::start(RULE);
    let policy = daemon.path("policy.toml");
    let second = daemon.ask(&["daemon", "--policy", policy.to_str().unwrap()]);
    assert_eq!(second.status.code(), Some(1));
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(
        said.contains(&format!("pid {}", daemon.child.id())),
        "{said}"
    );
}

/// Whoever may open the lock's file may lock it, and so keep the next daemon from starting.
#[test]
fn nobody_else_can_hold_the_lock() {
    let Some(_alone) = alone() else { return };
    let daemon = Daemon::start(RULE);
    let mode = run(
        "stat",
        &["-c", "%a", daemon.path("run/daemon.pid").to_str().unwrap()],
    );
    assert_eq!(mode.trim(), "600");
}

#[test]
fn a_bad_policy_changes_nothing() {
    let Some(_alone) = alone() else { return };
    let daemon = Daemon::start(RULE);
    let before = daemon.json(&["status"])["kernel"]["policy_generation"].clone();
    let bad = "[[rule]]\nname = 'x'\nsend_bufer = 1\ncongestion_control = 'nosuchlaw'\n";
    let refused = daemon.apply(bad);
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        said.contains("policy.toml:3:") && said.contains("send_buffer"),
        "{said}"
    );
    assert!(
        said.contains("policy.toml:4:") && said.contains("nosuchlaw"),
        "{said}"
    );
    daemon.hang_up();
    until("the daemon to refuse it", || {
        daemon.stderr().contains("stays in force").then_some(())
    });
    let status = daemon.json(&["status"]);
    assert_eq!(status["kernel"]["policy_generation"], before);
    assert_eq!(status["kernel"]["rules"], serde_json::json!(["one"]));
}

fn pid(daemon: &Daemon) -> rustix::process::Pid {
    rustix::process::Pid::from_child(&daemon.child)
}

#[test]
fn sighup_reads_the_file_again() {
    let Some(_alone) = alone() else { return };
    let daemon = Daemon::start(RULE);
    daemon.write_policy(&RULE.replace("'one'", "'two'"));
    daemon.hang_up();
    until("the new rule", || {
        (daemon.json(&["status"])["kernel"]["rules"] == serde_json::json!(["two"])).then_some(())
    });
}

#[test]
fn a_full_disk_is_said_once_and_tuning_goes_on() {
    let Some(_alone) = alone() else { return };
    let mut daemon = Daemon::start(RULE);
    daemon.kill_9();
    daemon.spawn("/dev/full");
    until("the daemon", || {
        daemon.path("run/ready").exists().then_some(())
    });
    for _ in 0..5 {
        let (here, _there) = loopback_flow();
        assert_eq!(daemon.flow(here.local_addr().unwrap())["law"], "fp_aimd");
    }
    until("the missing lines", || {
        (daemon.json(&["status"])["flow_log"]["missing"].as_u64()? >= 5).then_some(())
    });
    assert_eq!(
        daemon.stderr().matches("go on being tuned").count(),
        1,
        "{}",
        daemon.stderr()
    );
}

/// A FIFO without a reader: to open it waits as to write to a disk that stands still.
#[test]
fn a_flow_log_that_stands_still_does_not_keep_the_status_from_being_told() {
    let Some(_alone) = alone() else { return };
    let mut daemon = Daemon::idle(RULE);
    let log = daemon.path("flows.jsonl");
    assert!(Command::new("mkfifo").arg(&log).status().unwrap().success());
    daemon.restart();
    let fifo = Fifo(log);
    drop(loopback_flow());
    until("the flow log to stand still", || {
        is_waiting_for_a_fifo(&daemon).then_some(())
    });
    let mut status = daemon.command(&["status"]);
    let mut status = status.stdout(Stdio::null()).spawn().unwrap();
    let told = until("the status", || status.try_wait().unwrap());
    assert!(told.success());
    let reader = fifo.reader();
    until("the line", || {
        (daemon.json(&["status"])["flow_log"]["written"].as_u64()? >= 1).then_some(())
    });
    drop(reader);
}

/// It gets a reader at the end at the latest: the daemon could not be ended either where the test fails.
struct Fifo(PathBuf);

impl Fifo {
    fn reader(&self) -> std::io::Result<File> {
        let mut options = File::options();
        options
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(&self.0)
    }
}

impl Drop for Fifo {
    fn drop(&mut self) {
        let _ = self.reader();
    }
}

/// Whether a thread of the daemon is in the kernel's open() of one.
fn is_waiting_for_a_fifo(daemon: &Daemon) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{}/task", daemon.child.id())).unwrap();
    let mut waits = threads
        .filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("wchan")).ok());
    waits.any(|wait| ["fifo_open", "wait_for_partner"].contains(&wait.as_str()))
}

#[test]
fn only_root_changes_and_only_root_loads() {
    let Some(_alone) = alone() else { return };
    let daemon = Daemon::start(RULE);
    let run_dir = daemon.path("nobodys");
    let output = as_nobody(&[
        "daemon",
        "--policy",
        "/dev/null",
        "--run-dir",
        run_dir.to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("run as root"),
        "{output:?}"
    );
    assert!(!run_dir.exists());
    assert_eq!(
        daemon.json(&["status"])["kernel"]["rules"],
        serde_json::json!(["one"])
    );
}

#[test]
fn the_group_reads_and_does_not_change() {
    let Some(_alone) = alone() else { return };
    let daemon = Daemon::start(RULE);
    let socket = daemon.path("run/fatpath.sock");
    let run_dir = daemon.path("run");
    run("chmod", &["755", daemon.dir.path().to_str().unwrap()]);
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&socket), 0o660);
    let ask = |arguments: &[&str]| {
        as_nobody(&[arguments, &["--run-dir", run_dir.to_str().unwrap()]].concat())
    };
    let refused = ask(&["status"]);
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("group fatpath"),
        "{refused:?}"
    );
    // nogroup stands for the group fatpath, which this machine may not have.
    std::os::unix::fs::chown(&socket, None, Some(65534)).unwrap();
    assert_eq!(ask(&["status"]).status.code(), Some(0));
    let policy = daemon.path("policy.toml");
    for arguments in [
        vec!["policy", "apply", policy.to_str().unwrap()],
        vec!["unload"],
    ] {
        let output = ask(&arguments);
        assert_eq!(output.status.code(), Some(1));
        assert!(
            String::from_utf8_lossy(&output.stderr).contains("only root"),
            "{output:?}"
        );
    }
    assert_eq!(
        daemon.json(&["status"])["kernel"]["rules"],
        serde_json::json!(["one"])
    );
}

#[test]
fn every_user_may_see_whether_rude_tcp_is_enabled_and_nothing_else() {
    let Some(_alone) = alone() else { return };
    let daemon = Daemon::start(RULE);
    let run_dir = daemon.path("run");
    run("chmod", &["755", daemon.dir.path().to_str().unwrap()]);
    let ask = |arguments: &[&str]| {
        as_nobody(&[arguments, &["--run-dir", run_dir.to_str().unwrap()]].concat())
    };
    let gate = || {
        let output = ask(&["rude", "status"]);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(gate().starts_with("gate    closed"), "{}", gate());
    assert!(daemon.ask(&["rude", "on"]).status.success());
    assert!(gate().starts_with("gate    open"), "{}", gate());
    assert!(gate().contains("only root and the group"), "{}", gate());
    let json = ask(&["rude", "status", "--json"]).stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["gate"]["is_open"], true);
    assert!(daemon.ask(&["rude", "off"]).status.success());
    for refused in [["flows"], ["status"], ["page"]] {
        assert_eq!(ask(&refused).status.code(), Some(1), "{refused:?}");
    }
    let mode = |name: &str| {
        let socket = daemon.path("run").join(name);
        std::fs::metadata(socket).unwrap().permissions().mode() & 0o777
    };
    assert_eq!((mode("view.sock"), mode("gate.sock")), (0o660, 0o666));
    for path in ["/", "/v1/rude", "/v1/status", "/v1/flows"] {
        let mut stream =
            std::os::unix::net::UnixStream::connect(daemon.path("run/gate.sock")).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: fatpath\r\nConnection: close\r\n\r\n");
        std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
        let said = std::io::read_to_string(stream).unwrap();
        assert!(said.starts_with("HTTP/1.1 404"), "{path}: {said}");
    }
}

#[test]
fn a_client_that_never_ends_its_request_does_not_keep_the_daemon() {
    let Some(_alone) = alone() else { return };
    let mut daemon = Daemon::start(RULE);
    let mut client =
        std::os::unix::net::UnixStream::connect(daemon.path("run/fatpath.sock")).unwrap();
    std::io::Write::write_all(&mut client, b"GET /v1/status HTTP/1.1\r\n").unwrap();
    rustix::process::kill_process(pid(&daemon), rustix::process::Signal::TERM).unwrap();
    until("the daemon to end", || daemon.child.try_wait().unwrap());
}

/// Whatever a start or an unload was doing when it was killed, the next ones make it good.
#[test]
fn kill_9_at_any_moment_leaves_nothing_that_the_next_cannot_use() {
    let Some(_alone) = alone() else { return };
    let name = "net.core.rmem_max";
    let before = run("sysctl", &["-n", name]);
    let mut daemon = Daemon::start(RULE);
    daemon.unload();
    for delay_ms in (0..450).step_by(25) {
        daemon.spawn("flows.jsonl");
        std::thread::sleep(Duration::from_millis(delay_ms));
        daemon.kill_9();
        let mut unload = daemon
            .command(&["unload"])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(delay_ms / 3));
        unload.kill().unwrap();
        unload.wait().unwrap();
    }
    daemon.restart();
    let (here, _there) = loopback_flow();
    assert_eq!(daemon.flow(here.local_addr().unwrap())["law"], "fp_aimd");
    assert_eq!(daemon.unload()["failed"], serde_json::json!([]));
    assert!(!daemon.pins().exists());
    assert_eq!(run("sysctl", &["-n", name]), before);
    until("the law to go", || {
        let laws = run(
            "sysctl",
            &["-n", "net.ipv4.tcp_available_congestion_control"],
        );
        (!laws.contains("fp_aimd")).then_some(())
    });
}

/// Laws are the host's: a second instance cannot bring its own, and says so; all else works.
#[test]
fn without_its_laws_everything_else_works() {
    let Some(_alone) = alone() else { return };
    let first = Daemon::start(RULE);
    let rule = "[[rule]]\nname = 'second'\ndestination = ['127.0.9.1']\nnotsent_lowat = 30000\n";
    let second = Daemon::start_beside("second", rule);
    assert!(
        second.stderr().contains(first.pins().to_str().unwrap()),
        "{}",
        second.stderr()
    );
    let listener = TcpListener::bind("127.0.9.1:0").unwrap();
    let here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let flow = second.flow(here.local_addr().unwrap());
    assert_eq!(flow["settings"][0]["has"], 30_000);
    let refused = second.apply(RULE);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success(), "a policy with the other's law");
    assert!(said.contains(first.pins().to_str().unwrap()), "{said}");
    let rude = second.apply(&format!("{rule}rude = 'allowed'\n"));
    let said = String::from_utf8_lossy(&rude.stderr);
    assert!(said.contains("fp_rude"), "{said}");
    assert_eq!(second.flow(here.local_addr().unwrap())["rule"], "second");
    drop(second);
    let (here, _there) = loopback_flow();
    assert_eq!(first.flow(here.local_addr().unwrap())["law"], "fp_aimd");
}

#[test]
fn pins_have_one_owner_wherever_the_daemons_live() {
    let Some(_alone) = alone() else { return };
    let daemon = Daemon::start(RULE);
    let elsewhere = tempfile::tempdir().unwrap();
    let policy = daemon.path("policy.toml");
    for arguments in [
        vec!["daemon", "--policy", policy.to_str().unwrap()],
        vec!["unload"],
    ] {
        let output = Command::new(FATPATH)
            .args(&arguments)
            .arg("--run-dir")
            .arg(elsewhere.path())
            .arg("--pin-dir")
            .arg(daemon.pins())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains("another fatpath"),
            "{output:?}"
        );
    }
}

#[test]
fn an_unload_waits_for_a_daemon_that_starts() {
    let Some(_alone) = alone() else { return };
    let mut daemon = Daemon::idle(RULE);
    daemon.spawn("flows.jsonl");
    until("the daemon to have the lock", || {
        assert_eq!(daemon.child.try_wait().unwrap(), None);
        daemon.path("run/daemon.pid").exists().then_some(())
    });
    let report = daemon.unload();
    assert!(!report["removed"].as_array().unwrap().is_empty());
    assert!(!daemon.pins().exists());
}

/// Anybody may make a directory in a BPF file system of mode 1777, or a link to another's pins.
#[test]
fn pins_at_another_users_place_are_refused() {
    let Some(_alone) = alone() else { return };
    let mut daemon = Daemon::start(RULE);
    let pins = daemon.pins().to_path_buf();
    daemon.unload();
    let start = || {
        let mut command = Command::new(FATPATH);
        command.arg("daemon").arg("--policy");
        command.arg(daemon.path("policy.toml"));
        command.arg("--run-dir").arg(daemon.path("run"));
        let output = command.arg("--pin-dir").arg(&pins).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("does not belong to root"), "{said}");
    };
    std::fs::create_dir(&pins).unwrap();
    std::os::unix::fs::chown(&pins, Some(65534), None).unwrap();
    start();
    std::fs::remove_dir(&pins).unwrap();
    let others = pins.with_file_name("fatpath-others");
    std::fs::create_dir(&others).unwrap();
    std::os::unix::fs::symlink(&others, &pins).unwrap();
    start();
    assert_eq!(std::fs::read_dir(&others).unwrap().count(), 0);
    std::fs::remove_file(&pins).unwrap();
    std::fs::remove_dir(others).unwrap();
}

#[test]
fn a_route_that_moves_takes_its_metrics_along() {
    let Some(_alone) = alone() else { return };
    let lab = Lab::up("moves", "delay = '1ms'");
    let peer = lab.address("b");
    let metrics = "[[rule]]\nname = 'far'\ndestination = ['198.51.100.0/24']\nreordering = 30\n";
    lab.output("a", &["ip", "route", "add", "default", "via", &peer]);
    let mut daemon = Daemon::start_in(Some(&lab.namespace("a")), metrics);
    let route = || lab.output("a", &["ip", "route", "show", "198.51.100.0/24"]);
    assert!(route().contains(&format!("via {peer}")), "{}", route());
    lab.output(
        "a",
        &["ip", "address", "add", "203.0.113.1/24", "dev", "lo"],
    );
    lab.output(
        "a",
        &[
            "ip",
            "route",
            "replace",
            "default",
            "via",
            "203.0.113.9",
            "dev",
            "lo",
        ],
    );
    until("the copy to follow", || {
        (route().contains("203.0.113.9") && route().contains("reordering 30")).then_some(())
    });
    daemon.unload();
    assert_eq!(route(), "");
}

/// The test's build directory may be closed to others: the program is copied out.
fn as_nobody(arguments: &[&str]) -> Output {
    let copy = tempfile::Builder::new()
        .prefix("fatpath-")
        .tempdir_in("/tmp")
        .unwrap();
    let program = copy.path().join("fatpath");
    std::fs::copy(FATPATH, &program).unwrap();
    run("chmod", &["755", copy.path().to_str().unwrap()]);
    Command::new(program)
        .args(arguments)
        .uid(65534)
        .gid(65534)
        .output()
        .unwrap()
}

#[test]
fn route_metrics_come_and_go() {
    let Some(_alone) = alone() else { return };
    let lab = Lab::up("routes", "delay = '1ms'");
    let namespace = lab.namespace("a");
    let peer = lab.address("b");
    let routes = || lab.output("a", &["ip", "route"]) + &lab.output("a", &["ip", "-6", "route"]);
    let before = routes();
    let mut daemon = Daemon::start_in(
        Some(&namespace),
        &format!(
            "[[rule]]\nname = 'order'\ndestination = ['{peer}']\nreordering = 19\nquickack = true\n"
        ),
    );
    let route = lab.output("a", &["ip", "route", "get", &peer]);
    assert!(
        route.contains("reordering 19") && route.contains("quickack 1"),
        "{route}"
    );
    // A rule for a wider prefix changes the route that is there.
    let wide = "[[rule]]\nname = 'order'\ndestination = ['10.0.0.0/8']\nreordering = 7\n";
    assert!(daemon.apply(wide).status.success());
    assert!(
        lab.output("a", &["ip", "route", "get", &peer])
            .contains("reordering 7")
    );
    daemon.unload();
    assert_eq!(routes(), before);
}

#[test]
fn a_sysctl_set_by_hand_since_is_left_alone() {
    let Some(_alone) = alone() else { return };
    let name = "net.core.rmem_max";
    let before = run("sysctl", &["-n", name]).trim().to_owned();
    let mut daemon = Daemon::start(RULE);
    assert_eq!(run("sysctl", &["-n", name]).trim(), "70000000");
    run("sysctl", &["-w", &format!("{name}=60000000")]);
    let report = daemon.unload();
    let now = run("sysctl", &["-n", name]).trim().to_owned();
    run("sysctl", &["-w", &format!("{name}={before}")]);
    assert_eq!(now, "60000000");
    assert!(
        report["left_alone"][0]
            .as_str()
            .unwrap()
            .contains("by hand"),
        "{report}"
    );
}

#[test]
fn status_without_anything_loaded_says_so() {
    let Some(_alone) = alone() else { return };
    let mut daemon = Daemon::start(RULE);
    daemon.unload();
    let status = daemon.ask(&["status", "--json"]);
    assert_eq!(status.status.code(), Some(3), "{status:?}");
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(
        (&status["kernel"], &status["pid"]),
        (&Value::Null, &Value::Null)
    );
    let flows = daemon.ask(&["flows"]);
    assert_eq!(flows.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&flows.stderr).contains("fatpath daemon"));
}

#[test]
fn status_says_that_the_rude_gate_is_open_and_by_its_exit_status_that_a_daemon_runs() {
    let Some(_alone) = alone() else { return };
    let mut daemon = Daemon::start(RULE);
    let status = || {
        let output = daemon.ask(&["status"]);
        let text = String::from_utf8(output.stdout).unwrap();
        (output.status.code(), text.contains("the gate is open"))
    };
    assert_eq!(status(), (Some(0), false));
    assert!(daemon.ask(&["rude", "on"]).status.success());
    assert_eq!(status(), (Some(0), true));
    assert_eq!(daemon.json(&["status"])["rude"]["is_open"], true);
    daemon.kill_9();
    let status = daemon.ask(&["status"]);
    let text = String::from_utf8(status.stdout).unwrap();
    assert_eq!(status.status.code(), Some(3), "no daemon runs: {text}");
    assert!(text.contains("the gate is open"), "{text}");
}

#[test]
fn explain_says_what_this_host_makes_of_buffers_and_timers() {
    let Some(_alone) = alone() else { return };
    let most: u64 = run("sysctl", &["-n", "net.core.wmem_max"])
        .trim()
        .parse()
        .unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("policy.toml");
    let explained = |setting: &str| -> Value {
        std::fs::write(&file, format!("[[rule]]\nname = 'a'\n{setting}\n")).unwrap();
        let file = file.to_str().unwrap();
        let json = run(
            FATPATH,
            &["policy", "explain", "192.0.2.1", "--json", "--policy", file],
        );
        serde_json::from_str::<Value>(&json).unwrap()["settings"][0]["bound"].clone()
    };
    let bound = serde_json::json!({ "value": most, "sysctl": "net.core.wmem_max" });
    assert_eq!(explained(&format!("send_buffer = {}", most + 1)), bound);
    assert_eq!(explained(&format!("send_buffer = {most}")), Value::Null);
    // Two ticks, of 1 to 10 ms.
    let least_us = explained("rto_min = '1ms'")["value"].as_u64().unwrap();
    assert!((2_000..=20_000).contains(&least_us), "{least_us}");
    let with = |us: u64| explained(&format!("rto_min = '{us}us'"));
    assert_eq!(with(least_us), Value::Null);
}

/// `fatpath daemon` where `hide` was done in a mount namespace of its own.
fn daemon_without(hide: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let policy = dir.path().join("policy.toml");
    std::fs::write(&policy, RULE).unwrap();
    let script = format!("{hide} && exec \"$0\" \"$@\"");
    let output = Command::new("unshare")
        .args([
            "--mount", "sh", "-c", &script, FATPATH, "daemon", "--policy",
        ])
        .arg(policy)
        .arg("--run-dir")
        .arg(dir.path())
        .arg("--pin-dir")
        .arg(format!("/sys/fs/bpf/fatpath-test-{}", std::process::id()))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn what_the_host_lacks_is_named_with_the_remedy() {
    let Some(_alone) = alone() else { return };
    let said = daemon_without("mount -t tmpfs none /sys/kernel/btf");
    assert!(
        said.contains("BTF") && said.contains("CONFIG_DEBUG_INFO_BTF"),
        "{said}"
    );
    let said = daemon_without("umount -a -t cgroup2");
    assert!(
        said.contains("no cgroup of version 2") && said.contains("mount -t cgroup2"),
        "{said}"
    );
}

#[test]
fn a_bpf_file_system_that_the_daemon_mounted_goes_with_it() {
    let Some(_alone) = alone() else { return };
    let dir = tempfile::tempdir().unwrap();
    let policy = dir.path().join("policy.toml");
    std::fs::write(&policy, RULE).unwrap();
    let script = "
        while umount /sys/fs/bpf 2>/dev/null; do :; done
        at=\"--run-dir $2/run --pin-dir /sys/fs/bpf/fatpath-mount\"
        \"$1\" daemon --policy \"$2/policy.toml\" --flow-log \"$2/flows\" $at &
        until [ -e \"$2/run/ready\" ]; do kill -0 $! || exit; sleep 0.1; done
        grep -c ' /sys/fs/bpf bpf ' /proc/mounts
        \"$1\" unload $at >/dev/null || kill $!; wait
        grep -c ' /sys/fs/bpf bpf ' /proc/mounts";
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh", FATPATH])
        .arg(dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1\n0\n", "{said}");
}

#[test]
fn no_input_makes_the_command_line_panic() {
    for (file, said) in [
        ("/dev/zero", "16 MiB"),
        ("/dev/null", ""),
        ("/", ""),
        ("/nonexistent", ""),
    ] {
        for arguments in [vec!["policy", "check", file], vec!["import-wad", file]] {
            let output = Command::new(FATPATH).args(&arguments).output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{arguments:?}: {stderr}");
            assert!(
                stderr.starts_with("fatpath: ") && !stderr.contains("panicked"),
                "{stderr}"
            );
            assert!(
                arguments[0] != "policy" || stderr.contains(said),
                "{stderr}"
            );
        }
    }
    let output = Command::new(FATPATH)
        .args(["flows", "--interval", "0"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
}
