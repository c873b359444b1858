// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real transfers by iperf3 over an emulated path: what the issue promises of them.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use fatpath_kernel::{Build, Kernel, Places};
use fatpath_policy::Policy;
use serde_json::Value;
use std::process::Command;
use std::time::{Duration, Instant};
use support::transfer::mbps_received;
use support::{Daemon, FATPATH, Lab, alone, setting, until};
use tempfile::TempDir;

fn policy(peer_net: &str, law: &str) -> String {
    format!(
        "[host.sysctl]\n'net.core.rmem_max' = 'auto'\n'net.core.wmem_max' = 'auto'\n\
         [[rule]]\nname = 'path'\ndestination = ['{peer_net}']\nrtt = '20ms'\nrate = '200mbit'\n\
         send_buffer = '4bdp'\nreceive_buffer = '4bdp'\noverride_application = true\n\
         congestion_control = {law}\n"
    )
}

const AIMD: &str = "{ law = 'fp_aimd', a = 8, b = 0.125 }";

const NO_RULES: &str = "# nothing\n";

/// The flow that carries the data: the sender's end with the most bytes.
fn sender(daemon: &Daemon, least_bytes: u64) -> Value {
    let bytes = |flow: &Value| flow["bytes_acked"].as_u64().unwrap_or_default();
    until("the transfer to move", || {
        let flows = daemon
            .flows()
            .into_iter()
            .filter(|flow| bytes(flow) > least_bytes);
        flows.max_by_key(bytes)
    })
}

#[test]
fn a_transfer_survives_the_death_of_the_daemon_tuned() {
    let Some(_alone) = alone() else { return };
    let lab = Lab::up("kill", "rate = '200mbit'\ndelay = '10ms'\nqueue = '1bdp'");
    let net = format!("{}/32', '{}/32", lab.address("a"), lab.address("b"));
    let mut daemon = Daemon::start(&policy(&net, AIMD));
    let transfer = lab.transfer(6, &["-w", "16K"]);
    let before = sender(&daemon, 1_000_000);
    daemon.kill_9();
    std::thread::sleep(Duration::from_secs(1));
    daemon.restart();
    let after = sender(&daemon, before["bytes_acked"].as_u64().unwrap());
    assert_eq!(after["cookie"], before["cookie"]);
    assert_eq!(after["law"], "fp_aimd");
    assert_eq!(setting(&after, "send_buffer_bytes").1, 2_000_000);
    let mbps = mbps_received(transfer);
    // 16 KiB of buffer in 20 ms is 13 Mb/s; the path carries 200.
    assert!(mbps > 100.0, "{mbps} Mb/s");
    let end = until("the line of its end", || {
        daemon
            .log()
            .into_iter()
            .find(|line| line["cookie"] == before["cookie"])
    });
    assert!(end["bytes_acked"].as_u64().unwrap() > 50_000_000, "{end}");
    assert_eq!(end["rule"], "path");
    assert!(end["limited"]["busy_s"].as_f64().unwrap() > 3.0, "{end}");
}

/// Mean window of the sender over two seconds, segments.
fn mean_cwnd(daemon: &Daemon, cookie: &Value) -> f64 {
    let end = Instant::now() + Duration::from_secs(2);
    let mut windows = Vec::new();
    while Instant::now() < end {
        let flow = daemon
            .flows()
            .into_iter()
            .find(|flow| flow["cookie"] == *cookie)
            .unwrap();
        windows.push(flow["cwnd_pkts"].as_f64().unwrap());
    }
    windows.iter().sum::<f64>() / windows.len() as f64
}

#[test]
fn new_parameters_reach_a_live_flow() {
    let Some(_alone) = alone() else { return };
    let lab = Lab::up("live", "delay = '5ms'\nloss = '0.2%'\nseed = 7");
    let net = format!("{}/32', '{}/32", lab.address("a"), lab.address("b"));
    let daemon = Daemon::start(&policy(&net, "{ law = 'fp_aimd', a = 1, b = 0.5 }"));
    let transfer = lab.transfer(9, &[]);
    let cookie = sender(&daemon, 500_000)["cookie"].clone();
    std::thread::sleep(Duration::from_secs(1));
    let reno = mean_cwnd(&daemon, &cookie);
    let text = policy(&net, "{ law = 'fp_aimd', a = 16, b = 0.1 }");
    assert!(daemon.apply(&text).status.success());
    std::thread::sleep(Duration::from_millis(500));
    let tuned = mean_cwnd(&daemon, &cookie);
    // sqrt(a(2-b)/(2bp)): 27 and 390 segments.
    assert!(tuned > 4.0 * reno, "{reno} then {tuned} segments");
    let _ = transfer.wait_with_output();
}

/// A scenario of one flow, run with this policy.
struct Run(TempDir);

impl Run {
    fn with(policy: &str) -> Run {
        let scenario = "name = 'other'\n[hosts.a]\n[hosts.b]\n[links.wan]\nbetween = ['a', 'b']\n\
                        [[variant]]\nname = 'tuned'\npolicy = 'policy.toml'\n\
                        [[flow]]\nfrom = 'a'\nto = 'b'\nsource = 'bulk'\nbytes = '100kB'\n";
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("scenario.toml"), scenario).unwrap();
        std::fs::write(dir.path().join("policy.toml"), policy).unwrap();
        Run(dir)
    }

    /// Its exit status, and what it says.
    fn outcome(&self) -> (Option<i32>, String) {
        let mut run = Command::new(FATPATH);
        run.args(["lab", "run", "scenario.toml", "--out", "out", "--quiet"]);
        let output = run.current_dir(self.0.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    }
}

/// A run whose policy names a law that a living instance has registered would run with that one's
/// parameters.
#[test]
fn a_run_is_refused_while_another_instance_has_its_law() {
    let Some(_alone) = alone() else { return };
    let other = Daemon::start(&policy("192.0.2.1", AIMD));
    let run = Run::with(&policy("192.0.2.2", AIMD));
    let (status, said) = run.outcome();
    assert_eq!(status, Some(1), "{said}");
    let remedy = format!("fatpath unload --pin-dir {}", other.pins().display());
    assert!(said.contains("fp_aimd") && said.contains(&remedy), "{said}");
    let (status, said) = Run::with(NO_RULES).outcome();
    assert_eq!(status, Some(0), "a policy that names no law: {said}");
    // The remedy is one.
    drop(other);
    let (status, said) = run.outcome();
    assert_eq!(status, Some(0), "{said}");
}

/// fp_aimd is registered, and no fatpath has registered it. The other laws are another instance's.
struct NameTaken(Kernel);

impl NameTaken {
    fn new() -> NameTaken {
        let build = Build::of_version(1004);
        let mut laws = build.image("laws").to_vec();
        for at in 0..laws.len() {
            // The map's name; that of the law itself is filled with zeros.
            if laws[at..].starts_with(b"fp_aimd\0") && laws[at + 8] != 0 {
                laws[at] = b'x';
            }
        }
        let pins = format!("/sys/fs/bpf/fatpath-taken-{}", std::process::id());
        let places = Places::new(Some(pins.into()), None).unwrap();
        let build = build.with_object("laws", laws);
        let loaded = Kernel::load_build(places, &Policy::default(), &build);
        let (kernel, _, missing) = loaded.unwrap();
        let taken = NameTaken(kernel);
        assert!(missing.laws.is_none(), "{:?}", missing.laws);
        taken
    }
}

impl Drop for NameTaken {
    fn drop(&mut self) {
        let _ = self.0.unload();
    }
}

/// It would measure fatpath without that law, and not say so.
#[test]
fn a_run_is_refused_where_the_kernel_refuses_a_law() {
    let Some(_alone) = alone() else { return };
    let run = Run::with(NO_RULES);
    let taken = NameTaken::new();
    let (status, said) = run.outcome();
    assert_eq!(status, Some(1), "{said}");
    let is_told = |words| said.contains(words);
    assert!(
        is_told("cannot register fp_aimd: ") && is_told("File exists"),
        "{said}"
    );
    assert!(is_told("bpftool struct_ops list"), "{said}");
    drop(taken);
    let (status, said) = run.outcome();
    assert_eq!(status, Some(0), "{said}");
}
