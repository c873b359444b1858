// SPDX-License-Identifier: MIT OR Apache-2.0
//! The daemon as a service of systemd: what it says to it, and the rights that it is left with.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use support::host::Host;
use support::{Daemon, FATPATH, alone, until};

const RULE: &str = "[[rule]]\nname = 'one'\ndestination = ['127.0.8.0/24']\nsend_buffer = 20000\n";

/// How long this systemd waits for a sign of life.
const LIMIT: Duration = Duration::from_secs(4);

/// A daemon that is not started yet, and the socket on which systemd would listen to it.
fn watched() -> (Daemon, UnixDatagram) {
    let mut daemon = Daemon::idle(RULE);
    let socket = daemon.path("notify");
    let systemd = UnixDatagram::bind(&socket).unwrap();
    daemon.environment = vec![
        ("NOTIFY_SOCKET", socket.display().to_string()),
        ("WATCHDOG_USEC", LIMIT.as_micros().to_string()),
    ];
    (daemon, systemd)
}

/// What systemd is told next; `None` when it waited in vain for so long.
fn told(systemd: &UnixDatagram, within: Duration) -> Option<String> {
    systemd.set_read_timeout(Some(within)).unwrap();
    let mut text = [0; 100];
    match systemd.recv(&mut text) {
        Ok(length) => Some(String::from_utf8_lossy(&text[..length]).into_owned()),
        Err(error) if error.kind() == ErrorKind::WouldBlock => None,
        Err(error) => panic!("{error}"),
    }
}

fn is_told(systemd: &UnixDatagram, wanted: &str) {
    let is_it = |text: String| (text == wanted).then_some(());
    until(wanted, || told(systemd, LIMIT).and_then(is_it));
}

#[test]
fn systemd_is_told_that_the_daemon_is_ready_lives_and_ends() {
    let Some(_alone) = alone() else { return };
    let (mut daemon, systemd) = watched();
    daemon.restart();
    assert_eq!(told(&systemd, LIMIT).as_deref(), Some("READY=1"));
    is_told(&systemd, "WATCHDOG=1");
    is_told(&systemd, "WATCHDOG=1");
    daemon.unload();
    is_told(&systemd, "STOPPING=1");
}

/// A thread that is held by ptrace(2), which stops no other of its process.
struct Held(i32);

impl Held {
    /// The thread of this name.
    fn of(daemon: &Daemon, name: &str) -> Held {
        let threads = std::fs::read_dir(format!("/proc/{}/task", daemon.child.id())).unwrap();
        let mut threads = threads.map(|thread| thread.unwrap().path());
        let is_it = |thread: &PathBuf| {
            std::fs::read_to_string(thread.join("comm")).is_ok_and(|comm| comm.trim() == name)
        };
        let id = threads.find(is_it).unwrap().file_name().unwrap().to_owned();
        let held = Held(id.to_str().unwrap().parse().unwrap());
        assert_eq!(held.ask(libc::PTRACE_SEIZE), 0);
        assert_eq!(held.ask(libc::PTRACE_INTERRUPT), 0);
        held
    }

    #[allow(unsafe_code)]
    fn ask(&self, request: libc::c_uint) -> i64 {
        let nothing = std::ptr::null_mut::<libc::c_void>();
        // SAFETY: none of the requests made here reads or writes memory.
        unsafe { libc::ptrace(request, self.0, nothing, nothing) }
    }
}

impl Drop for Held {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // It has to have stopped before it can be let go.
        // SAFETY: the kernel is told that nobody wants the status.
        unsafe { libc::waitpid(self.0, std::ptr::null_mut(), libc::__WALL) };
        self.ask(libc::PTRACE_DETACH);
    }
}

#[test]
fn a_worker_that_stands_still_stops_the_signs_of_life() {
    let Some(_alone) = alone() else { return };
    let (mut daemon, systemd) = watched();
    daemon.restart();
    is_told(&systemd, "READY=1");
    is_told(&systemd, "WATCHDOG=1");
    let held = Held::of(&daemon, "flow ends");
    let starts_again = || told(&systemd, LIMIT).is_none().then_some(());
    until("systemd to give up", starts_again);
    let said = daemon.stderr();
    assert!(said.contains("no progress for 2s: flow ends"), "{said}");
    drop(held);
    is_told(&systemd, "WATCHDOG=1");
}

/// A FIFO without a reader: to open it waits as to write to a file server that hangs.
#[test]
fn logs_that_stand_still_are_no_reason_to_start_again() {
    let Some(_alone) = alone() else { return };
    let (mut daemon, systemd) = watched();
    let log = daemon.path("log.fifo");
    assert!(Command::new("mkfifo").arg(&log).status().unwrap().success());
    daemon.arguments = vec!["--event-log".into(), log.display().to_string()];
    daemon.spawn("log.fifo");
    is_told(&systemd, "READY=1");
    let listener = TcpListener::bind("127.0.8.1:0").unwrap();
    drop(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
    let begun = Instant::now();
    while begun.elapsed() < 2 * LIMIT {
        assert_eq!(told(&systemd, LIMIT).as_deref(), Some("WATCHDOG=1"));
    }
    let said = daemon.stderr();
    assert!(!said.contains("no progress"), "{said}");
    // The daemon could not be ended either.
    let _reader = std::fs::File::open(&log).unwrap();
}

/// The capabilities of the unit, but those named.
fn capabilities_but(dropped: &str) -> String {
    let unit = include_str!("../packaging/fatpath.service");
    let line = "CapabilityBoundingSet=CAP_";
    let set = unit.lines().find_map(|it| it.strip_prefix(line)).unwrap();
    let kept = set.split(" CAP_").map(str::to_lowercase);
    let kept = kept.filter(|name| name != dropped);
    kept.fold("-all".to_owned(), |all, name| format!("{all},+{name}"))
}

/// A daemon with these rights, while a flow lives here and one in another network namespace: whether each is tuned, and
/// what the daemon says.
fn live_flows_under(capabilities: &str) -> (Vec<bool>, String) {
    let elsewhere = Host::make("caps");
    elsewhere.run("ip link set lo up");
    let flow = || {
        let listener = TcpListener::bind("127.0.8.1:0").unwrap();
        let here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (listener, here)
    };
    let (_listener, here) = flow();
    let (_far_listener, there) = elsewhere.on(flow);
    let mut daemon = Daemon::idle(RULE);
    let bounding = format!("--bounding-set={capabilities}");
    daemon.wrapper = ["setpriv", &bounding, "--inh-caps=-all"]
        .map(str::to_owned)
        .into();
    daemon.restart();
    let sizes = [here, there].map(rustix::net::sockopt::socket_send_buffer_size);
    let tuned = sizes.map(|bytes| bytes.unwrap() == 2 * 20_000);
    let taken_over = {
        daemon.kill_9();
        daemon.restart();
        daemon.stderr()
    };
    assert!(taken_over.contains("took over"), "{taken_over}");
    let unloaded = Command::new("setpriv")
        .args([&bounding, "--inh-caps=-all", FATPATH, "unload", "--run-dir"])
        .arg(daemon.path("run"))
        .arg("--pin-dir")
        .arg(daemon.pins())
        .output();
    assert!(unloaded.unwrap().status.success());
    let _ = daemon.child.wait();
    assert!(!daemon.pins().exists(), "it unloaded everything");
    (tuned.to_vec(), taken_over)
}

#[test]
fn the_units_capabilities_suffice() {
    let Some(_alone) = alone() else { return };
    let (tuned, said) = live_flows_under(&capabilities_but(""));
    assert_eq!(tuned, [true, true], "{said}");
    assert!(!said.contains("cannot be entered"), "{said}");
}

/// Only the live flows of other network namespaces are out of reach then.
#[test]
fn a_host_without_namespaces_needs_no_cap_sys_admin() {
    let Some(_alone) = alone() else { return };
    let (tuned, said) = live_flows_under(&capabilities_but("sys_admin"));
    assert_eq!(tuned, [true, false], "{said}");
    assert!(
        said.contains("network namespaces cannot be entered"),
        "{said}"
    );
}
