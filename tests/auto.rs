// SPDX-License-Identifier: MIT OR Apache-2.0
//! Paths that are learned: what real flows over an emulated path tell the daemon, and what the next ones get for it.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use serde_json::Value;
use socket2::{Domain, Socket, Type};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Instant;
use support::transfer::{self, mbps_received};
use support::{Daemon, Lab, alone, until};

/// 100 Mb/s, 40 ms, and one segment of 500 lost: CUBIC gets a tenth of it.
const LOSSY: &str = "rate = '100mbit'\ndelay = '20ms'\nqueue = '1bdp'\nloss = '0.2%'\nseed = 3";

fn auto(mode: &str) -> String {
    format!("[archive]\n[auto]\nmode = '{mode}'\n")
}

/// What is known of the path from one host of the lab to the other, once it is so.
fn learned(daemon: &Daemon, lab: &Lab, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    learned_between(["a", "b"], daemon, lab, what, is_so)
}

fn learned_between(
    ends: [&str; 2],
    daemon: &Daemon,
    lab: &Lab,
    what: &str,
    is_so: impl Fn(&Value) -> bool,
) -> Value {
    let [local, peer] = ends.map(|host| lab.address(host));
    until(what, || {
        let known = daemon.json(&["paths"]);
        let mut paths = known["paths"].as_array().unwrap().iter();
        let is_it = |path: &&Value| path["local"] == local && covers(&path["prefix"], &peer);
        let path = paths.find(is_it)?;
        is_so(path).then(|| path.clone())
    })
}

fn covers(prefix: &Value, address: &str) -> bool {
    let prefix: ipnet::IpNet = prefix.as_str().unwrap().parse().unwrap();
    prefix.contains(&address.parse::<std::net::IpAddr>().unwrap())
}

fn learned_rules(daemon: &Daemon) -> Vec<Value> {
    let flows = daemon.flows();
    let rules = flows.iter().map(|flow| flow["rule"].clone());
    rules
        .filter(|rule| rule.as_str().is_some_and(|rule| rule.starts_with("auto-")))
        .collect()
}

#[test]
fn a_path_with_random_losses_is_learned_and_then_tuned() {
    let Some(_alone) = alone() else { return };
    let lab = Lab::up("auto", LOSSY);
    let mut daemon = Daemon::start(&auto("observe"));
    let before = mbps_received(lab.transfer(8, &[]));
    let path = learned(&daemon, &lab, "the path to be learned", |path| {
        path["loss"] == "random" && path["rate_bps"].is_number()
    });
    assert_eq!(path["state"], "observed", "{path:#}");
    assert!(
        path["settings"].as_str().unwrap().contains("fp_bbr"),
        "{path:#}"
    );
    let rtt_us = path["base_rtt_us"].as_f64().unwrap();
    assert!((40_000.0..44_000.0).contains(&rtt_us), "{path:#}");
    assert_eq!(learned_rules(&daemon), Vec::<Value>::new());
    let (fatpath, run) = (env!("CARGO_BIN_EXE_fatpath"), daemon.path("run"));
    let tried = [
        fatpath,
        "try",
        &lab.address("b"),
        "--json",
        "--run-dir",
        run.to_str().unwrap(),
    ];
    let tried: Value = serde_json::from_str(&lab.output("a", &tried)).unwrap();
    assert_eq!(tried["learned"][0]["loss"], "random", "{tried:#}");
    let settings = tried["forecast"]["settings"].as_str().unwrap();
    assert!(settings.contains("fp_bbr"), "{tried:#}");

    assert!(daemon.apply(&auto("tune")).status.success());
    learned(&daemon, &lab, "the path to be tuned", |path| {
        path["state"] == "tuned"
    });
    let transfer = lab.transfer(8, &[]);
    until("a flow under a learned rule", || {
        let flows = daemon.flows();
        let mut tuned = flows.iter();
        tuned.find(|flow| flow["law"] == "fp_bbr").map(|_| ())
    });
    assert!(!learned_rules(&daemon).is_empty());
    let after = mbps_received(transfer);
    assert!(after > 3.0 * before, "{before} then {after} Mb/s");
    learned(&daemon, &lab, "the gain of learned settings", |path| {
        path["gain"].as_f64() > Some(2.0)
    });

    daemon.kill_9();
    let without_daemon = mbps_received(lab.transfer(4, &[]));
    assert!(without_daemon > 2.0 * before, "{without_daemon} Mb/s");
    daemon.restart();
    learned(&daemon, &lab, "the path to be known from before", |path| {
        path["state"] == "tuned" && path["loss"] == "random"
    });
    let explained = daemon.ask(&["paths", "show", &lab.address("b")]);
    let explained = String::from_utf8(explained.stdout).unwrap();
    assert!(explained.contains("because"), "{explained}");
    let file = daemon.path("policy.toml");
    let file = file.to_str().unwrap();
    let (source, peer) = (lab.address("a"), lab.address("b"));
    let flow = [peer.as_str(), "--source", source.as_str(), "--policy", file];
    let explained = daemon.json(&[&["policy", "explain"], &flow[..]].concat());
    assert_eq!(explained["rule"], Value::Null, "{explained:#}");
    assert_eq!(explained["learned"][0]["state"], "tuned", "{explained:#}");

    assert!(daemon.apply(&auto("observe")).status.success());
    let observed = mbps_received(lab.transfer(3, &[]));
    assert!(observed < after / 2.0, "{observed} Mb/s");
    assert_eq!(learned_rules(&daemon), Vec::<Value>::new());
    let forgotten = daemon.json(&["paths", "forget", &lab.address("b")]);
    // From each of the two hosts, which have one kernel.
    assert_eq!(forgotten["paths"], 2);

    daemon.kill_9();
    let peer = lab.address("b");
    daemon.write_policy(&format!("{}exclude = ['{peer}']\n", auto("observe")));
    daemon.restart();
    // A flow that moved enough to be learned shows that the daemon has taken its first turns.
    let _ = mbps_received(lab.transfer(3, &[]));
    let known = daemon.json(&["paths"]);
    let paths = known["paths"].as_array().unwrap();
    assert!(
        !paths.iter().any(|path| covers(&path["prefix"], &peer)),
        "{known:#}"
    );
}

/// The law that new flows of this host have; put back when it is dropped.
struct HostsLaw(String);

impl HostsLaw {
    const SYSCTL: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

    fn set(law: &str) -> HostsLaw {
        let before = std::fs::read_to_string(HostsLaw::SYSCTL).unwrap();
        std::fs::write(HostsLaw::SYSCTL, law).unwrap();
        HostsLaw(before.trim().to_owned())
    }
}

impl Drop for HostsLaw {
    fn drop(&mut self) {
        let _ = std::fs::write(HostsLaw::SYSCTL, &self.0);
    }
}

const OBJECT_BYTES: usize = 2_000_000;

/// Median time of an object from the SYN to its last byte, of five.
fn object_s(lab: &Lab) -> f64 {
    let object = |_| {
        let begun = Instant::now();
        let (sender, mut receiver) = lab.connection(transfer::PORT);
        let reader = std::thread::spawn(move || {
            let mut rest = OBJECT_BYTES;
            let mut piece = vec![0; 1 << 16];
            while rest > 0 {
                rest -= receiver.read(&mut piece).unwrap();
            }
        });
        (&sender).write_all(&vec![0; OBJECT_BYTES]).unwrap();
        reader.join().unwrap();
        begun.elapsed().as_secs_f64()
    };
    let mut took: Vec<f64> = (0..5).map(object).collect();
    took.sort_by(f64::total_cmp);
    took[2]
}

/// Flows go over the path until one is to start at its rate: the first may lose much when it looks for the rate.
fn known_with_start(daemon: &Daemon, lab: &Lab) -> Value {
    let flows = |path: &Value| path["flows"].as_u64().unwrap();
    let mut path = learned(daemon, lab, "the objects to be seen", |_| true);
    for _ in 0..3 {
        let before = flows(&path);
        let _ = mbps_received(lab.transfer(5, &[]));
        path = learned(daemon, lab, "the flow to be learned", |path| {
            flows(path) > before && path["state"] != "observed"
        });
        if path["settings"].as_str().unwrap().contains("initial_rate") {
            return path;
        }
    }
    panic!("no flow is to start at its rate: {path:#}")
}

#[test]
fn an_object_on_a_known_path_starts_at_its_rate() {
    let Some(_alone) = alone() else { return };
    let _law = HostsLaw::set("cubic");
    let lab = Lab::up(
        "auto-start",
        "rate = '200mbit'\ndelay = '30ms'\nqueue = '1bdp'",
    );
    let daemon = Daemon::start(&auto("tune"));
    let before_s = object_s(&lab);
    let path = known_with_start(&daemon, &lab);
    until("the kernel half to know it", || {
        let (sender, receiver) = lab.connection(transfer::PORT);
        let flow = daemon.flow_of(&sender);
        drop((sender, receiver));
        (flow["law"] == "fp_cubic").then_some(())
    });
    let after_s = object_s(&lab);
    println!("{before_s:.3} s, then {after_s:.3} s");
    assert!(
        after_s < 0.8 * before_s,
        "{before_s} s, then {after_s} s: {path:#}"
    );
}

/// From one host of the lab to the other, by a program that sets its send buffer.
fn connection_with(lab: &Lab, send_buffer_bytes: usize) -> (TcpStream, TcpStream) {
    let address: SocketAddr = format!("{}:{}", lab.address("b"), transfer::PORT)
        .parse()
        .unwrap();
    let listener = lab.on("b", || TcpListener::bind(address).unwrap());
    let socket = lab.on("a", || {
        Socket::new(Domain::IPV4, Type::STREAM, None).unwrap()
    });
    socket.set_send_buffer_size(send_buffer_bytes).unwrap();
    socket.connect(&address.into()).unwrap();
    (socket.into(), listener.accept().unwrap().0)
}

#[test]
fn small_buffers_of_programs_are_replaced_where_the_policy_allows_it() {
    let Some(_alone) = alone() else { return };
    let lab = Lab::up(
        "auto-small",
        "rate = '100mbit'\ndelay = '50ms'\nqueue = '1bdp'",
    );
    let daemon = Daemon::start(&auto("tune"));
    let small = |seconds| mbps_received(lab.transfer(seconds, &["--window", "128K"]));
    let kept = small(4);
    let held = |path: &Value| path["rate_limit"] == "program_buffer";
    let of_receiver = |what, is_so: &dyn Fn(&Value) -> bool| {
        learned_between(["b", "a"], &daemon, &lab, what, is_so)
    };
    let path = of_receiver("the receiver's buffer to be told", &held);
    let cure = "override_application = true under [auto]";
    assert!(path["reasons"].to_string().contains(cure), "{path:#}");
    let listed = String::from_utf8(daemon.ask(&["paths"]).stdout).unwrap();
    assert!(listed.contains(cure), "{listed}");

    let overriding = format!("{}override_application = true\n", auto("tune"));
    assert!(daemon.apply(&overriding).status.success());
    until("the kernel half to know it", || {
        let (_sender, receiver) = lab.connection(transfer::PORT);
        let flow = daemon.flow_now(receiver.local_addr().unwrap())?;
        flow["rule"].as_str()?.ends_with("-o").then_some(())
    });
    let replaced = small(6);
    println!("{kept} Mb/s, then {replaced}");
    assert!(replaced > 3.0 * kept, "{kept} then {replaced} Mb/s");

    // The kernel gives a program what the host's limit allows, twice.
    let limit = std::fs::read_to_string("/proc/sys/net/core/wmem_max").unwrap();
    let larger: usize = limit.trim().parse().unwrap();
    let sender = until("a flow of a program with a larger buffer", || {
        let (sender, _receiver) = connection_with(&lab, larger);
        let flow = daemon.flow_now(sender.local_addr().unwrap())?;
        flow["rule"].as_str()?.ends_with("-o").then_some(sender)
    });
    assert_eq!(
        socket2::SockRef::from(&sender).send_buffer_size().unwrap(),
        2 * larger
    );
}
