// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath police` as an administrator uses it: a router between two hosts, and no daemon.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use serde_json::Value;
use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, Type};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use support::host::Host;
use support::{FATPATH, Lab, alone, until};

struct Router {
    host: Host,
    _other: Host,
    pins: PathBuf,
}

impl Router {
    fn make(name: &str) -> Router {
        let (host, other) = (
            Host::make(&format!("{name}-r")),
            Host::make(&format!("{name}-o")),
        );
        host.lay_wire(&other);
        Router {
            host,
            _other: other,
            pins: format!("/sys/fs/bpf/fatpath-{name}-{}", std::process::id()).into(),
        }
    }

    fn command(&self, arguments: &str) -> Command {
        self.command_on(&self.host, arguments)
    }

    fn command_on(&self, host: &Host, arguments: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", host.0));
        command.args([FATPATH, "police"]).args(arguments.split(' '));
        command.arg("--police-dir").arg(&self.pins);
        command
    }

    fn ask(&self, arguments: &str) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn printed(&self, arguments: &str) -> String {
        let output = self.ask(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn status(&self) -> Value {
        let all: Value = serde_json::from_str(&self.printed("status --json")).unwrap();
        all[0].clone()
    }

    /// What it says is wrong.
    fn refused(&self, arguments: &str) -> String {
        let output = self.ask(arguments);
        assert!(!output.status.success(), "{arguments}");
        String::from_utf8(output.stderr).unwrap()
    }

    fn watch(&self) -> Child {
        let mut watch = self.command("v0 --watch");
        watch.stdout(Stdio::null()).stderr(Stdio::piped());
        let child = watch.spawn().unwrap();
        until("the police to watch", || {
            (self.status()["watches"] == true).then_some(())
        });
        child
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        let _ = self.ask("v0 --off");
    }
}

#[test]
fn a_police_stays_without_its_program_until_it_is_taken_off() {
    let Some(_alone) = alone() else { return };
    let router = Router::make("pcli");
    assert!(
        router
            .printed("status")
            .contains("no interface has a policer")
    );
    let printed = router.printed("v0 --mode limit=50mbit --mark dscp=4 --except 10.0.0.0/8");
    assert!(
        printed.contains("v0: limit=50 Mb/s, mark dscp=4"),
        "{printed}"
    );
    let status = router.status();
    assert_eq!(
        (&status["interface"], &status["is_in_place"]),
        (&"v0".into(), &true.into())
    );
    assert_eq!(status["exceptions"][0][0], "10.0.0.0/8");
    // A second one takes the place of the first.
    router.printed("v0 --mode reset");
    assert_eq!(router.status()["mode"], "reset");
    assert_eq!(router.status()["hook"], "tc");
    router.printed("v0 --off");
    assert!(!router.pins.exists());
    assert!(!router.host.run("tc qdisc show").contains("clsact"));
}

#[test]
fn only_mode_changes_a_mode() {
    let Some(_alone) = alone() else { return };
    let router = Router::make("pkeep");
    router.printed("v0 --mode limit=50mbit --mark dscp=4 --except 10.0.0.0/8 --hook tc");
    let before = router.status();
    let kept = |what: &str| {
        let now = router.status();
        for key in ["mode", "mark", "hook", "exceptions"] {
            assert_eq!(now[key], before[key], "{key} after {what}");
        }
    };
    let printed = router.printed("v0");
    assert!(
        printed.contains("v0: limit=50 Mb/s, mark dscp=4"),
        "{printed}"
    );
    kept("showing it");
    assert_eq!(router.status()["watches"], false);
    for _ in 0..2 {
        let mut watch = router.watch();
        kept("watching");
        watch.kill().unwrap();
        watch.wait().unwrap();
    }
    kept("the end of the watch");
    router.printed("v0 --mark 0x400");
    assert_eq!(router.status()["mode"], before["mode"], "a mark is no mode");
    router.printed("v0 --mode drop");
    assert_eq!(router.status()["mode"], "drop");
    assert_eq!(router.status()["watches"], false);
}

#[test]
fn one_that_was_cut_short_keeps_nobody_from_anything() {
    let Some(_alone) = alone() else { return };
    let router = Router::make("pcut");
    let netns = std::fs::metadata(format!("/run/netns/{}", router.host.0)).unwrap();
    let link = router.host.run("ip -o link show dev v0");
    let directory = format!("{}-{}", netns.ino(), link.split(':').next().unwrap());
    for then in ["v0 --off", "v0 --mode drop"] {
        std::fs::create_dir_all(router.pins.join(&directory)).unwrap();
        assert_eq!(router.status()["is_in_place"], false);
        router.printed(then);
    }
    assert_eq!(router.status()["is_in_place"], true);
}

#[test]
fn a_police_at_xdp_goes_where_its_interface_goes_and_can_be_taken_off_there() {
    let Some(_alone) = alone() else { return };
    let router = Router::make("pmove");
    for taken_off_there in [true, false] {
        let (old, new) = (&router.host, Host::make("pmove-n"));
        router.printed("v0 --mode drop --hook xdp");
        old.run(&format!("ip link set v0 netns {}", new.0));
        assert_eq!(router.status()["is_in_place"], true);
        let host = if taken_off_there { &new } else { old };
        let off = router.command_on(host, "v0 --off").output().unwrap();
        assert!(off.status.success(), "{off:?}");
        assert!(!new.run("ip link show v0").contains("xdp"));
        assert!(!router.pins.exists());
        new.run(&format!("ip link set v0 netns {}", old.0));
    }
}

#[test]
fn what_cannot_be_policed_is_refused_with_a_reason() {
    let Some(_alone) = alone() else { return };
    let router = Router::make("pref");
    assert!(router.refused("v9").contains("ip link"));
    assert!(router.refused("lo").contains("unknown kind of link"));
    let refused = router.refused("v0 --mode reset --hook xdp");
    assert_eq!(
        refused.matches("needs tc").count(),
        1,
        "told once: {refused}"
    );
    assert!(
        router
            .refused("v0 --off")
            .contains("no policer is attached")
    );
    assert!(!router.pins.exists(), "nothing is left of what was refused");
    router.printed("v0 --mode drop");
    router.refused("v0 --mode reset --hook xdp");
    assert_eq!(router.status()["mode"], "drop", "what was there stays");
}

#[test]
fn who_watches_may_be_killed_and_ends_when_the_police_does() {
    let Some(_alone) = alone() else { return };
    let router = Router::make("pwat");
    let mut killed = router.watch();
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(router.status()["is_in_place"], true);
    router.printed("v0 --off");
    let watching = router.watch();
    router.printed("v0 --off");
    let ended = watching.wait_with_output().unwrap();
    assert!(!ended.status.success());
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(said.contains("policer of v0 is gone"), "{said}");
    // Of an interface that goes, only the pins are left.
    router.printed("v0");
    router.host.run("ip link del v0");
    assert_eq!(router.status()["is_in_place"], false);
    assert!(router.printed("status").contains("not in place"));
    router.printed("v0 --off");
    assert!(!router.pins.exists());
}

/// Where one host's policer sees what comes over an emulated path, which loses segments before.
struct Path {
    lab: Lab,
    pins: PathBuf,
}

impl Path {
    fn up(name: &str, link: &str) -> Path {
        Path {
            lab: Lab::up(name, link),
            pins: format!("/sys/fs/bpf/fatpath-{name}-{}", std::process::id()).into(),
        }
    }

    fn police(&self, arguments: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.lab.namespace("b")));
        command.args([FATPATH, "police"]).args(arguments.split(' '));
        command.arg("--police-dir").arg(&self.pins);
        command
    }

    /// `None` before the policer is in place: only the watch is to put it there.
    fn penalized_pkts(&self) -> Option<u64> {
        let output = self.police("status --json").output().unwrap();
        let status: Value = serde_json::from_slice(&output.stdout).ok()?;
        let pkts = status[0]["tallies"]["penalized"]["pkts"].as_u64()?;
        (status[0]["is_in_place"] == true).then_some(pkts)
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        let _ = self.police("wan --off").output();
    }
}

/// Sends 16 Mb/s of TCP segments, whatever the path loses; while `repeats`, 100 of them a second once more.
struct Unresponsive<'s> {
    socket: Socket,
    to: Ipv4Addr,
    repeats: &'s AtomicBool,
    ends: &'s AtomicBool,
}

impl Unresponsive<'_> {
    const PORT: u16 = 4_000;
    const SEGMENT_BYTES: usize = 1_000;
    const SYN: u8 = 2;
    const ACK: u8 = 16;

    fn run(&self) {
        // The path may lose one of them, and with the same seed always the same one.
        (0..3).for_each(|_| self.send(0, Self::SYN, 0));
        // The round trip that the policer measures.
        std::thread::sleep(Duration::from_millis(100));
        let mut fresh = 0..;
        while !self.ends.load(Ordering::Relaxed) {
            let first: u32 = fresh.start;
            fresh.by_ref().take(20).for_each(|number| self.data(number));
            if self.repeats.load(Ordering::Relaxed) && first >= 100 {
                self.data(first - 100);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn data(&self, number: u32) {
        let sequence = 1 + number * Self::SEGMENT_BYTES as u32;
        self.send(sequence, Self::ACK, Self::SEGMENT_BYTES);
    }

    /// The kernel fills in the rest of the IP header; no end looks at the checksum of TCP.
    fn send(&self, sequence: u32, flags: u8, bytes: usize) {
        let mut packet = vec![0; 40 + bytes];
        packet[0] = 0x45;
        (packet[8], packet[9]) = (64, 6);
        packet[16..20].copy_from_slice(&self.to.octets());
        packet[20..22].copy_from_slice(&Self::PORT.to_be_bytes());
        packet[22..24].copy_from_slice(&9_u16.to_be_bytes());
        packet[24..28].copy_from_slice(&sequence.to_be_bytes());
        (packet[32], packet[33]) = (0x50, flags);
        let to = SockAddr::from(SocketAddr::from((self.to, 0)));
        self.socket.send_to(&packet, &to).unwrap();
    }
}

/// Bulk data by CUBIC until `ends`.
fn transfer((mut sender, mut receiver): (TcpStream, TcpStream), ends: &AtomicBool) -> u64 {
    SockRef::from(&sender).set_tcp_congestion(b"cubic").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                sender.write_all(&[7; 16_384]).unwrap();
            }
        });
        let mut buffer = vec![0; 65_536];
        let mut received = 0;
        loop {
            match receiver.read(&mut buffer).unwrap() {
                0 => return received,
                bytes => received += bytes as u64,
            }
        }
    })
}

/// Ends the threads that look at it, also when the test fails.
struct End<'s>(&'s AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Ports of the flows that were penalized, as the watch reports them until it ends.
fn penalized_ports(watch: &mut Child) -> Vec<String> {
    let lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let reports = lines.map_while(Result::ok);
    let reports = reports.filter_map(|line| serde_json::from_str::<Value>(&line).ok());
    let penalized = reports.filter(|report| report["is_penalized"] == true);
    let source = |report: Value| report["source"].as_str().unwrap().to_owned();
    let port = |source: String| source.rsplit(':').next().unwrap().to_owned();
    penalized.map(source).map(port).collect()
}

#[test]
fn who_ignores_losses_is_dropped_for_a_time_and_cubic_is_not() {
    const PENALTY: Duration = Duration::from_secs(4);
    let Some(_alone) = alone() else { return };
    let link = "rate = '100mbit'\ndelay = '10ms'\nqueue = '60pkts'\nforward.loss = '1%'";
    let path = Path::up("penalty", link);
    let (repeats, ends) = (AtomicBool::new(true), AtomicBool::new(false));
    let mut watch = path.police("wan --watch --penalty 4s --least-rtt 100ms --json");
    let mut watch = watch.stdout(Stdio::piped()).spawn().unwrap();
    // A flow whose SYN nobody saw has no penalty.
    until("the watch", || path.penalized_pkts().map(drop));
    let raw = || {
        Socket::new(
            Domain::IPV4,
            Type::RAW,
            Some(Protocol::from(libc::IPPROTO_RAW)),
        )
    };
    let unresponsive = Unresponsive {
        socket: path.lab.on("a", || raw().unwrap()),
        to: path.lab.address("b").parse().unwrap(),
        repeats: &repeats,
        ends: &ends,
    };
    let flow = path.lab.connection(7_002);
    let received = std::thread::scope(|scope| {
        let transfer = scope.spawn(|| transfer(flow, &ends));
        scope.spawn(|| unresponsive.run());
        let end = End(&ends);
        until("a penalty", || (path.penalized_pkts()? > 0).then_some(()));
        let begin = Instant::now();
        // It conforms now, and goes on sending.
        repeats.store(false, Ordering::Relaxed);
        until("the penalty to end", || {
            let before = path.penalized_pkts()?;
            std::thread::sleep(Duration::from_millis(500));
            (path.penalized_pkts()? == before).then_some(())
        });
        assert!(begin.elapsed() > PENALTY / 2, "{:?}", begin.elapsed());
        drop(end);
        transfer.join().unwrap()
    });
    watch.kill().unwrap();
    let ports = penalized_ports(&mut watch);
    watch.wait().unwrap();
    assert_eq!(ports, [Unresponsive::PORT.to_string()], "and once");
    assert!(received > 1_000_000, "{received}");
}
