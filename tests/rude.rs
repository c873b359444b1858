// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rude TCP on the real kernel: who may be rude, how it ends, and that no data is lost meanwhile.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on
#![allow(unsafe_code)] // a private socket option, and another user's thread: raw system calls

mod support;

use serde_json::Value;
use std::ffi::{c_int, c_void};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Command;
use support::{Daemon, FATPATH, Lab, alone, until};

const TCP_RUDE: c_int = 0x7001;
const OFF_NOW: c_int = 0;
const ON: c_int = 1;
const OFF_NICELY: c_int = 2;

const POLITE: c_int = 0;
const RUDE: c_int = 1;
const GOING_POLITE: c_int = 2;

/// Error numbers, or 0.
type Answer = c_int;

fn answer(result: c_int) -> Answer {
    match result {
        0 => 0,
        _ => std::io::Error::last_os_error().raw_os_error().unwrap(),
    }
}

fn set_bytes(socket: &impl AsRawFd, option: c_int, value: &[u8]) -> Answer {
    let (bytes, length) = (value.as_ptr().cast::<c_void>(), value.len() as u32);
    // SAFETY: an open socket, and a buffer of that length.
    answer(unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, option, bytes, length)
    })
}

fn set(socket: &impl AsRawFd, value: c_int) -> Answer {
    set_bytes(socket, TCP_RUDE, &value.to_ne_bytes())
}

/// The value, or the negative error number.
fn get_sized(socket: &impl AsRawFd, mut length: u32) -> c_int {
    let mut value: c_int = -1;
    // SAFETY: an open socket, and no more than the value's own bytes.
    let result = unsafe {
        let value = (&raw mut value).cast::<c_void>();
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            TCP_RUDE,
            value,
            &mut length,
        )
    };
    match answer(result) {
        0 => value,
        error => -error,
    }
}

fn get(socket: &impl AsRawFd) -> c_int {
    get_sized(socket, 4)
}

fn law(socket: &TcpStream) -> String {
    let law = socket2::SockRef::from(socket).tcp_congestion().unwrap();
    let end = law.iter().position(|byte| *byte == 0).unwrap_or(law.len());
    String::from_utf8(law[..end].to_vec()).unwrap()
}

/// A path of 40 Mb/s and 40 ms, and a daemon with a rule for it.
struct Path {
    daemon: Daemon,
    lab: Lab,
}

/// What a flow that fills the path holds; the sender's buffer is several times that.
const LINK: &str = "rate = \"40mbit\"\ndelay = \"20ms\"\nqueue = \"2bdp\"\nseed = 1";

impl Path {
    fn new(name: &str, settings: &str) -> Path {
        Path::over(name, LINK, settings)
    }

    fn over(name: &str, link: &str, settings: &str) -> Path {
        let lab = Lab::up(name, link);
        let policy = format!(
            "[host.sysctl]\n'net.core.wmem_max' = 'auto'\n'net.core.rmem_max' = 'auto'\n\
             [[rule]]\nname = 'path'\ndestination = ['10.77.0.0/16', 'fd77::/16']\n\
             send_buffer = '4MB'\nreceive_buffer = '4MB'\n{settings}\n"
        );
        let daemon = Daemon::start(&policy);
        Path { daemon, lab }
    }

    fn open_gate(&self) {
        let (a, b) = (self.lab.namespace("a"), self.lab.namespace("b"));
        self.ask(&["rude", "on", "--netns", &a, "--netns", &b]);
    }

    fn ask(&self, arguments: &[&str]) -> String {
        let output = self.daemon.ask(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn rude_flows(&self) -> Vec<Value> {
        let status = self.daemon.json(&["rude", "status"]);
        status["flows"].as_array().unwrap().clone()
    }

    fn flow(&self, socket: &TcpStream) -> Value {
        self.daemon.flow(socket.local_addr().unwrap())
    }
}

/// Sends numbered bytes until it is told to end; the other side checks every one of them.
struct Transfer {
    socket: TcpStream,
    ends: std::sync::mpsc::Sender<()>,
    sent: std::thread::JoinHandle<u64>,
    received: std::thread::JoinHandle<u64>,
}

fn pattern(offset: u64, length: usize) -> Vec<u8> {
    let byte = |i: u64| ((offset + i) % 251) as u8;
    (0..length as u64).map(byte).collect()
}

impl Transfer {
    fn start((sender, receiver): (TcpStream, TcpStream)) -> Transfer {
        let socket = sender.try_clone().unwrap();
        let (ends, end) = std::sync::mpsc::channel();
        let sent = std::thread::spawn(move || send_until(sender, &end));
        let received = std::thread::spawn(move || check_all(receiver));
        Transfer {
            socket,
            ends,
            sent,
            received,
        }
    }

    /// Every byte that was sent has arrived, as it was.
    fn end(self) {
        self.ends.send(()).unwrap();
        let sent = self.sent.join().unwrap();
        drop(self.socket);
        assert_eq!(self.received.join().unwrap(), sent);
        assert!(sent > 0);
    }
}

fn send_until(mut socket: TcpStream, end: &std::sync::mpsc::Receiver<()>) -> u64 {
    let mut sent = 0;
    loop {
        let bytes = pattern(sent, 65536);
        socket.write_all(&bytes).unwrap();
        sent += bytes.len() as u64;
        if end.try_recv().is_ok() {
            break;
        }
    }
    socket.shutdown(std::net::Shutdown::Write).unwrap();
    sent
}

fn check_all(mut socket: TcpStream) -> u64 {
    let (mut received, mut buffer) = (0, vec![0; 65536]);
    loop {
        let length = socket.read(&mut buffer).unwrap();
        if length == 0 {
            return received;
        }
        assert!(
            buffer[..length] == pattern(received, length),
            "at {received}"
        );
        received += length as u64;
    }
}

/// Until losses have made the fair window small, and the flow has much more in flight.
fn until_above_fair(path: &Path, socket: &TcpStream) -> u64 {
    until("a flow above its fair window", || {
        let flow = path.flow(socket);
        let fair = flow["rude"]["fair_cwnd_pkts"].as_u64()?;
        let has_lost = flow["segments_retransmitted"].as_u64()? > 20;
        (has_lost && flow["in_flight_pkts"].as_u64()? > 2 * fair).then_some(fair)
    })
}

/// A thread of its own with another user's rights.
fn as_user<T: Send>(user: u32, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // SAFETY: three numbers; the raw call changes this thread alone.
            let set = unsafe { libc::syscall(libc::SYS_setresuid, user, user, user) };
            assert_eq!(set, 0);
            work()
        });
        thread.join().unwrap()
    })
}

const NOBODY: u32 = 65534;

#[test]
fn without_permission_there_is_none() {
    let Some(_alone) = alone() else { return };
    let path = Path::new("rno", "rude = 'allowed'");
    let (sender, _receiver) = path.lab.connection(7001);
    assert_eq!(set(&sender, ON), libc::EPERM, "the gate is shut");
    assert_eq!((set(&sender, OFF_NOW), set(&sender, OFF_NICELY)), (0, 0));
    path.ask(&["rude", "on"]);
    assert_eq!(
        set(&sender, ON),
        libc::EPERM,
        "nothing marks in its namespace"
    );
    let here = TcpListener::bind("127.0.0.1:0").unwrap();
    let no_rule = TcpStream::connect(here.local_addr().unwrap()).unwrap();
    assert_eq!(set(&no_rule, ON), libc::EPERM, "no rule speaks of it");
    path.open_gate();
    assert_eq!((set(&sender, ON), get(&sender)), (0, RUDE));
    path.ask(&["rude", "off"]);
    assert_eq!((get(&sender), law(&sender)), (POLITE, "fp_reno".into()));
    assert_eq!(set(&sender, ON), libc::EPERM, "the gate is shut again");
}

#[test]
fn odd_values_and_sockets_are_refused() {
    let Some(_alone) = alone() else { return };
    let path = Path::new("rodd", "rude = 'allowed'");
    path.open_gate();
    let (sender, _receiver) = path.lab.connection(7002);
    for value in [3, -1, c_int::MAX] {
        assert_eq!(set(&sender, value), libc::EINVAL, "{value}");
    }
    for short in [&[][..], &[1], &[1, 0, 0]] {
        assert_eq!(
            set_bytes(&sender, TCP_RUDE, short),
            libc::EINVAL,
            "{short:?}"
        );
    }
    for length in [0, 1, 3] {
        assert_eq!(get_sized(&sender, length), -libc::EINVAL, "{length}");
    }
    assert_eq!(get(&sender), POLITE);
    for length in [5, 8, 64, 5000] {
        let mut long = vec![0xff; length];
        long[..4].copy_from_slice(&ON.to_ne_bytes());
        assert_eq!(set_bytes(&sender, TCP_RUDE, &long), 0, "{length}");
        assert_eq!((get(&sender), set(&sender, OFF_NOW)), (RUDE, 0));
    }
    let listener = path
        .lab
        .on("a", || TcpListener::bind("0.0.0.0:7003").unwrap());
    assert_eq!(set(&listener, ON), libc::ENOTCONN);
    let fresh = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    assert_eq!((set(&fresh, ON), get(&fresh)), (libc::ENOTCONN, POLITE));
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    assert_eq!(set(&udp, ON), libc::ENOPROTOOPT);
    let (unix, _other) = UnixStream::pair().unwrap();
    assert_ne!(set(&unix, ON), 0);
}

#[test]
fn an_option_that_nobody_speaks_of_is_the_kernels_own_affair() {
    let Some(_alone) = alone() else { return };
    let daemon = Daemon::start("# nothing\n[[rule]]\nname = 'r'\ndestination = ['127.0.0.1']\n");
    let here = TcpListener::bind("127.0.0.1:0").unwrap();
    let sender = TcpStream::connect(here.local_addr().unwrap()).unwrap();
    assert_eq!(set(&sender, ON), libc::ENOPROTOOPT);
    assert!(daemon.ask(&["rude", "on"]).status.success());
    assert_eq!(set(&sender, ON), libc::EPERM);
    assert!(daemon.ask(&["rude", "off"]).status.success());
    assert_eq!(set(&sender, ON), libc::ENOPROTOOPT);
}

#[test]
fn only_those_users_may_and_a_socket_has_an_owner() {
    let Some(_alone) = alone() else { return };
    let path = Path::new(
        "ruser",
        &format!("rude = 'allowed'\nrude_users = [{NOBODY}]"),
    );
    path.open_gate();
    let listener = path
        .lab
        .on("b", || TcpListener::bind("0.0.0.0:7004").unwrap());
    let address = format!("{}:7004", path.lab.address("b"));
    let roots = path.lab.on("a", || TcpStream::connect(&address).unwrap());
    let theirs = path.lab.on("a", || {
        as_user(NOBODY, || TcpStream::connect(&address).unwrap())
    });
    assert_eq!(set(&roots, ON), libc::EPERM, "root is not listed");
    assert_eq!(
        as_user(NOBODY, || set(&roots, ON)),
        libc::EPERM,
        "the socket is root's"
    );
    assert_eq!(
        set(&theirs, ON),
        libc::EPERM,
        "root asks for another's socket"
    );
    assert_eq!(as_user(NOBODY, || set(&theirs, ON)), 0);
    assert_eq!(path.rude_flows()[0]["rude"]["user"], NOBODY);
    path.daemon.apply("[[rule]]\nname = 'path'\ndestination = ['10.77.0.0/16']\nrude = 'allowed'\nrude_users = [1]\n");
    assert_eq!(get(&theirs), POLITE, "the policy permits them no more");
    drop(listener);
}

#[test]
fn selecting_the_law_is_not_asking() {
    let Some(_alone) = alone() else { return };
    let path = Path::new("rlaw", "rude = 'allowed'");
    let (sender, _receiver) = path.lab.connection(7005);
    let select = |socket: &TcpStream| socket2::SockRef::from(socket).set_tcp_congestion(b"fp_rude");
    select(&sender).unwrap();
    assert_eq!((law(&sender), get(&sender)), ("fp_reno".into(), POLITE));
    path.open_gate();
    select(&sender).unwrap();
    assert_eq!((law(&sender), get(&sender)), ("fp_reno".into(), POLITE));
    assert!(
        as_user(NOBODY, || select(&sender)).is_err(),
        "the law is restricted"
    );
}

#[test]
fn a_gate_that_shuts_loses_no_data() {
    let Some(_alone) = alone() else { return };
    let path = Path::over(
        "rgate",
        &format!("{LINK}\nloss = \"1%\""),
        "rude = 'allowed'",
    );
    path.open_gate();
    let transfer = Transfer::start(path.lab.connection(7006));
    let socket = transfer.socket.try_clone().unwrap();
    assert_eq!(set(&socket, ON), 0);
    let fair = until_above_fair(&path, &socket);
    path.ask(&["rude", "off"]);
    assert_eq!((get(&socket), law(&socket)), (POLITE, "fp_reno".into()));
    assert!(path.rude_flows().is_empty());
    until("the flow to drain to about its fair window", || {
        (path.flow(&socket)["in_flight_pkts"].as_u64()? <= 2 * fair).then_some(())
    });
    transfer.end();
}

#[test]
fn off_now_has_the_fair_window_at_once() {
    let Some(_alone) = alone() else { return };
    let path = Path::over(
        "rnow",
        &format!("{LINK}\nloss = \"0.5%\""),
        "rude = 'allowed'",
    );
    path.open_gate();
    let transfer = Transfer::start(path.lab.connection(7007));
    let socket = transfer.socket.try_clone().unwrap();
    assert_eq!(set(&socket, ON), 0);
    until_above_fair(&path, &socket);
    assert_eq!((set(&socket, OFF_NOW), get(&socket)), (0, POLITE));
    assert_eq!(law(&socket), "fp_reno");
    until("the window to be the fair one", || {
        (path.flow(&socket)["cwnd_pkts"].as_u64()? < 60).then_some(())
    });
    transfer.end();
}

#[test]
fn off_nicely_converges_and_is_marked_until_then() {
    let Some(_alone) = alone() else { return };
    let path = Path::over(
        "rnice",
        &format!("{LINK}\nloss = \"0.5%\""),
        "rude = 'allowed'\nrude_converged = 0.2",
    );
    path.open_gate();
    let transfer = Transfer::start(path.lab.connection(7008));
    let socket = transfer.socket.try_clone().unwrap();
    assert_eq!(set(&socket, ON), 0);
    until_above_fair(&path, &socket);
    assert_eq!((set(&socket, OFF_NICELY), get(&socket)), (0, GOING_POLITE));
    assert_eq!(law(&socket), "fp_reno");
    let flow = path.rude_flows().remove(0);
    assert_eq!(flow["rude"]["mode"], "going_polite");
    assert!(flow["rude"]["marked_pkts"].as_u64().unwrap() > 0);
    until("R and F to converge", || {
        (get(&socket) == POLITE).then_some(())
    });
    transfer.end();
}

#[test]
fn being_rude_again_does_not_make_the_window_fair() {
    let Some(_alone) = alone() else { return };
    let path = Path::over(
        "ragain",
        &format!("{LINK}\nloss = \"0.5%\""),
        "rude = 'allowed'",
    );
    path.open_gate();
    let transfer = Transfer::start(path.lab.connection(7009));
    let socket = transfer.socket.try_clone().unwrap();
    assert_eq!(set(&socket, ON), 0);
    until_above_fair(&path, &socket);
    assert_eq!((set(&socket, OFF_NICELY), set(&socket, ON)), (0, 0));
    assert_eq!(get(&socket), RUDE);
    let flow = path.flow(&socket);
    let fair = flow["rude"]["fair_cwnd_pkts"].as_u64().unwrap();
    assert!(
        2 * fair < flow["in_flight_pkts"].as_u64().unwrap(),
        "{flow}"
    );
    transfer.end();
}

#[test]
fn always_is_the_administrators_word() {
    let Some(_alone) = alone() else { return };
    let path = Path::new("ralw", "rude = 'always'");
    path.open_gate();
    let (sender, receiver) = path.lab.connection(7010);
    until("both ends to be rude", || {
        (path.rude_flows().len() == 2).then_some(())
    });
    assert_eq!((get(&sender), law(&sender)), (RUDE, "fp_rude".into()));
    assert_eq!(set(&sender, OFF_NOW), libc::EPERM);
    Transfer::start((sender, receiver)).end();
}

#[test]
fn a_live_flow_follows_gate_and_policy() {
    let Some(_alone) = alone() else { return };
    let path = Path::new("rlive", "rude = 'always'");
    let (sender, _receiver) = path.lab.connection(7011);
    assert_eq!(get(&sender), POLITE);
    path.open_gate();
    assert_eq!(get(&sender), RUDE);
    path.daemon
        .apply("[[rule]]\nname = 'path'\ndestination = ['10.77.0.0/16']\n");
    assert_ne!(law(&sender), "fp_rude");
    assert!(path.rude_flows().is_empty());
}

#[test]
fn rude_flows_share_the_rules_total_rate() {
    let Some(_alone) = alone() else { return };
    let path = Path::new(
        "rtot",
        "rude = 'allowed'\nrude_rate = '30mbit'\nrude_total_rate = '20mbit'",
    );
    path.open_gate();
    let transfers = [7012, 7013].map(|port| Transfer::start(path.lab.connection(port)));
    for transfer in &transfers {
        assert_eq!(set(&transfer.socket, ON), 0);
    }
    let rate = |transfer: &Transfer| {
        let port = format!(":{}", transfer.socket.local_addr().unwrap().port());
        let said = path.lab.output("a", &["ss", "-Htin", "sport", "=", &port]);
        let rate = said
            .split("pacing_rate ")
            .nth(1)?
            .split("bps")
            .next()?
            .to_owned();
        Some(rate.parse::<f64>().ok()? / 1e6)
    };
    for transfer in &transfers {
        until("each to be paced at half of it", || {
            (9.0..=10.0).contains(&rate(transfer)?).then_some(())
        });
    }
    let [one, other] = transfers;
    other.end();
    until("the one that is left to have all of it", || {
        (18.0..=20.0).contains(&rate(&one)?).then_some(())
    });
    one.end();
}

#[test]
fn a_flow_that_nobody_marks_goes_polite_and_is_counted() {
    let Some(_alone) = alone() else { return };
    let path = Path::new(
        "runm",
        "rude = 'allowed'\n[[rule]]\nname = 'lo'\ndestination = ['127.0.0.1']\nrude = 'always'",
    );
    path.open_gate();
    let listener = path
        .lab
        .on("a", || TcpListener::bind("127.0.0.1:7014").unwrap());
    let sender = path
        .lab
        .on("a", || TcpStream::connect("127.0.0.1:7014").unwrap());
    assert_eq!(get(&sender), RUDE);
    let transfer = Transfer::start((sender, listener.accept().unwrap().0));
    until("it to be found out", || {
        (get(&transfer.socket) == POLITE).then_some(())
    });
    let status = path.daemon.json(&["rude", "status"]);
    assert_eq!(status["flows_unmarked"], 1, "{status}");
    transfer.end();
}

#[test]
fn a_daemon_that_dies_changes_nothing_and_unload_leaves_nothing() {
    let Some(_alone) = alone() else { return };
    let mut path = Path::new("rlife", "rude = 'always'");
    path.open_gate();
    let transfer = Transfer::start(path.lab.connection(7015));
    let socket = transfer.socket.try_clone().unwrap();
    assert_eq!(get(&socket), RUDE);
    path.daemon.kill_9();
    assert_eq!(get(&socket), RUDE);
    path.daemon.restart();
    assert_eq!(
        path.daemon.json(&["rude", "status"])["gate"]["is_open"],
        true
    );
    assert_eq!((get(&socket), law(&socket)), (RUDE, "fp_rude".into()));
    let pins = path.daemon.pins().to_path_buf();
    path.daemon.unload();
    assert!(!pins.exists());
    assert_ne!(law(&socket), "fp_rude");
    assert_eq!(set(&socket, ON), libc::ENOPROTOOPT);
    let list = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    until("the law to be gone", || {
        (!std::fs::read_to_string(list).unwrap().contains("fp_rude")).then_some(())
    });
    assert!(!path.lab.output("a", &["tc", "qdisc"]).contains("clsact"));
    transfer.end();
}

#[test]
fn a_program_is_run_rude_without_knowing() {
    let Some(_alone) = alone() else { return };
    let path = Path::new("rrun", "rude = 'allowed'");
    path.open_gate();
    let address = path.lab.address("b");
    let server = path
        .lab
        .on("b", || TcpListener::bind("0.0.0.0:7016").unwrap());
    let connect = format!("exec 3<>/dev/tcp/{address}/7016; read -u 3 line; exit 7");
    let namespace = format!("--net=/run/netns/{}", path.lab.namespace("a"));
    let program = ["--", "nsenter", &namespace, "bash", "-c", &connect];
    let mut run = path.daemon.command(&["rude", "run"]);
    let mut child = run.args(program).spawn().unwrap();
    let (mut accepted, peer) = server.accept().unwrap();
    assert_eq!(path.daemon.flow(peer)["rude"]["mode"], "rude");
    let cgroup = std::fs::read_to_string(format!("/proc/{}/cgroup", child.id())).unwrap();
    assert!(cgroup.contains("fatpath-rude-"), "{cgroup}");
    accepted.write_all(b"end\n").unwrap();
    assert_eq!(
        child.wait().unwrap().code(),
        Some(7),
        "the command's own exit status"
    );
    let id = path.daemon.flow_now(peer);
    drop((accepted, id));
    let name = format!("fatpath-rude-{}", child.id());
    until("its cgroup to be removed", || {
        let find = Command::new("find")
            .args(["/sys/fs/cgroup", "-name", &name])
            .output()
            .unwrap();
        find.stdout.is_empty().then_some(())
    });
}

#[test]
fn only_root_opens_the_gate() {
    let Some(_alone) = alone() else { return };
    let path = Path::new("rroot", "rude = 'allowed'");
    let run_dir = path.daemon.path("run");
    let arguments = ["rude", "on", "--run-dir", run_dir.to_str().unwrap()];
    let refused = as_user(NOBODY, || Command::new(FATPATH).args(arguments).output());
    assert!(refused.is_err() || !refused.unwrap().status.success());
    assert_eq!(
        path.daemon.json(&["rude", "status"])["gate"]["is_open"],
        false
    );
}

/// A connected socket is a file: whoever gets it has what it is, and no more.
#[test]
fn a_socket_that_is_handed_on_stays_what_it_is() {
    let Some(_alone) = alone() else { return };
    let path = Path::new("rpass", "rude = 'allowed'\nrude_users = [0]");
    path.open_gate();
    let (sender, receiver) = path.lab.connection(7017);
    assert_eq!(set(&sender, ON), 0);
    // SAFETY: dup of an open descriptor, owned here alone.
    let handed = unsafe { OwnedFd::from_raw_fd(libc::dup(sender.as_raw_fd())) };
    assert_eq!(as_user(NOBODY, || set(&handed, ON)), libc::EPERM);
    assert_eq!(
        as_user(NOBODY, || set(&handed, OFF_NOW)),
        0,
        "anybody may be polite"
    );
    assert_eq!(as_user(NOBODY, || set(&handed, ON)), libc::EPERM);
    assert_eq!(get(&sender), POLITE);
    drop(receiver);
}
