// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rude TCP on the real kernel: how it begins and ends, and that no data is lost meanwhile.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command};
use support::rude::*;
use support::{alone, until};

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
        // What waits in the buffer when the flow is told to end would take long at a polite window.
        let unsent = socket2::SockRef::from(&socket).set_tcp_notsent_lowat(1 << 20);
        unsent.unwrap();
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

fn send_until(socket: TcpStream, end: &std::sync::mpsc::Receiver<()>) -> u64 {
    let sent = write_until(&socket, end);
    socket.shutdown(std::net::Shutdown::Write).unwrap();
    sent
}

fn write_until(mut socket: &TcpStream, end: &std::sync::mpsc::Receiver<()>) -> u64 {
    let mut sent = 0;
    loop {
        let bytes = pattern(sent, 65536);
        socket.write_all(&bytes).unwrap();
        sent += bytes.len() as u64;
        if end.try_recv() != Err(std::sync::mpsc::TryRecvError::Empty) {
            return sent;
        }
    }
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

/// `None` if it is polite.
fn fair_pkts(flow: &Value) -> Option<u64> {
    flow["rude"]["fair_cwnd_pkts"].as_u64()
}

fn in_flight_pkts(flow: &Value) -> Option<u64> {
    flow["in_flight_pkts"].as_u64()
}

/// Until losses have made the fair window small, and the flow has much more in flight.
fn until_above_fair(path: &Path, socket: &TcpStream) -> u64 {
    until("a flow above its fair window", || {
        let flow = path.flow(socket);
        let fair = fair_pkts(&flow)?;
        let has_lost = flow["segments_retransmitted"].as_u64()? > 20;
        (has_lost && in_flight_pkts(&flow)? > 2 * fair).then_some(fair)
    })
}

/// Goes polite nicely as soon as it has more in flight than its fair window, which it may not have for a moment.
fn go_nicely(socket: &TcpStream) {
    until("more in flight than the fair window", || {
        assert_eq!((set(socket, ON), set(socket, OFF_NICELY)), (0, 0));
        (get(socket) == GOING_POLITE).then_some(())
    });
}

#[test]
fn a_gate_that_shuts_loses_no_data() {
    let Some(_alone) = alone() else { return };
    let path = Path::over(
        "rgate",
        &format!("{LINK}\nloss = \"2%\""),
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
        (in_flight_pkts(&path.flow(&socket))? <= 2 * fair).then_some(())
    });
    path.end_losses();
    transfer.end();
}

#[test]
fn off_now_has_the_fair_window_at_once() {
    let Some(_alone) = alone() else { return };
    let path = Path::over(
        "rnow",
        &format!("{LINK}\nloss = \"2%\""),
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
    path.end_losses();
    transfer.end();
}

#[test]
fn off_nicely_converges_and_is_marked_until_then() {
    let Some(_alone) = alone() else { return };
    let path = Path::over(
        "rnice",
        &format!("{LINK}\nloss = \"2%\""),
        "rude = 'allowed'\nrude_converged = 0.2",
    );
    path.open_gate();
    let transfer = Transfer::start(path.lab.connection(7008));
    let socket = transfer.socket.try_clone().unwrap();
    assert_eq!(set(&socket, ON), 0);
    until_above_fair(&path, &socket);
    // Without losses it lasts until all was looked at, however slow the machine is; with few, for some seconds.
    path.lab.set("loss=0%");
    // One that had little more than its fair window is there before it is looked at.
    let flow = until("a flow that goes polite to be looked at", || {
        go_nicely(&socket);
        let flow = path.rude_flows().pop()?;
        (flow["rude"]["mode"] == "going_polite").then_some(flow)
    });
    assert_eq!(law(&socket), "fp_reno");
    assert!(flow["rude"]["marked_pkts"].as_u64().unwrap() > 0);
    path.lab.set("loss=0.2%");
    until("R and F to converge", || {
        (get(&socket) == POLITE).then_some(())
    });
    path.end_losses();
    transfer.end();
}

/// Who goes polite with a window above its fair one, and all acknowledged; and the fair one. In an emulated
/// machine a timeout, which ends it, may come meanwhile: once more then.
fn going_polite_at_rest(path: &Path, socket: &TcpStream) -> u64 {
    let mut written = 0;
    let fair = (0..5).find_map(|_| {
        written += write_going_polite(path, socket);
        all_acknowledged(path, socket, written)
    });
    fair.expect("to be going polite still")
}

/// The bytes.
fn write_going_polite(path: &Path, socket: &TcpStream) -> u64 {
    assert_eq!(set(socket, ON), 0);
    std::thread::scope(|scope| {
        let (ends, end) = std::sync::mpsc::channel();
        let writes = scope.spawn(move || write_until(socket, &end));
        until_above_fair(path, socket);
        path.lab.set("forward.loss=0%"); // both only grow from here on
        go_nicely(socket);
        ends.send(()).unwrap();
        writes.join().unwrap()
    })
}

/// The fair window then; `None` if it is polite already.
fn all_acknowledged(path: &Path, socket: &TcpStream, written: u64) -> Option<u64> {
    until("all to be acknowledged", || {
        let flow = path.flow(socket);
        let Some(fair) = fair_pkts(&flow) else {
            return Some(None);
        };
        if flow["bytes_acked"].as_u64()? < written {
            return None;
        }
        assert!(flow["cwnd_pkts"].as_u64()? > fair + 4, "{flow}");
        Some(Some(fair))
    })
}

/// No acknowledgement comes any more: what sets the window is the asking.
#[test]
fn a_flow_that_goes_polite_has_its_fair_window_as_soon_as_it_must() {
    let Some(_alone) = alone() else { return };
    let lossy = LINK.replace("60ms", "120ms") + "\nforward.loss = \"2%\"";
    let path = Path::over("rsoon", &lossy, "rude = 'allowed'");
    path.open_gate();
    type Way<'a> = (u16, &'a dyn Fn(&TcpStream));
    let ways: [Way<'_>; 2] = [
        (7018, &|socket| assert_eq!(set(socket, OFF_NOW), 0)),
        (7019, &|_| drop(path.ask(&["rude", "off"]))),
    ];
    for (port, end) in ways {
        path.lab.set("forward.loss=2%");
        let (sender, mut receiver) = path.lab.connection(port);
        let reader =
            std::thread::spawn(move || while matches!(receiver.read(&mut [0; 65536]), Ok(1..)) {});
        let fair = going_polite_at_rest(&path, &sender);
        end(&sender);
        assert_eq!((get(&sender), law(&sender)), (POLITE, "fp_reno".into()));
        let flow = path.flow(&sender);
        assert_eq!(flow["cwnd_pkts"], fair, "port {port}: {flow}");
        drop(sender);
        reader.join().unwrap();
    }
}

#[test]
fn being_rude_again_does_not_make_the_window_fair() {
    let Some(_alone) = alone() else { return };
    let path = Path::over(
        "ragain",
        &format!("{LINK}\nloss = \"2%\""),
        "rude = 'allowed'",
    );
    path.open_gate();
    let transfer = Transfer::start(path.lab.connection(7009));
    let socket = transfer.socket.try_clone().unwrap();
    assert_eq!(set(&socket, ON), 0);
    until_above_fair(&path, &socket);
    let (before, after) = until("to go polite nicely from far above the fair window", || {
        let before = path.flow(&socket);
        (in_flight_pkts(&before)? > 3 * fair_pkts(&before)?).then_some(())?;
        assert_eq!(set(&socket, OFF_NICELY), 0);
        let mode = get(&socket);
        assert_eq!((set(&socket, ON), get(&socket)), (0, RUDE));
        (mode == GOING_POLITE).then(|| (before, path.flow(&socket)))
    });
    let fair_after = fair_pkts(&after).unwrap();
    assert!(
        3 * fair_after < 2 * in_flight_pkts(&before).unwrap(),
        "{before} {after}"
    );
    path.end_losses();
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

/// The window is 2.5 times what the path holds, and its queue has room for it.
#[test]
fn an_unlimited_flow_fills_its_window_where_an_estimated_one_yields_to_the_queue() {
    let Some(_alone) = alone() else { return };
    let estimated = "rude = 'allowed'\ncwnd_clamp = 1000";
    let path = Path::new("rfree", estimated);
    path.open_gate();
    let transfer = Transfer::start(path.lab.connection(7022));
    assert_eq!(set(&transfer.socket, ON), 0);
    let acked_bytes = |flow: &Value| flow["bytes_acked"].as_u64();
    until("the estimate to be settled", || {
        (acked_bytes(&path.flow(&transfer.socket))? > 10_000_000).then_some(())
    });
    until("5 MB more", || {
        let flow = path.flow(&transfer.socket);
        assert!(in_flight_pkts(&flow)? < 800, "{flow}");
        (acked_bytes(&flow)? > 15_000_000).then_some(())
    });
    path.apply(&format!("{estimated}\nrude_rate = 'unlimited'"));
    until("the window to be filled", || {
        let flow = path.flow(&transfer.socket);
        assert!(fair_pkts(&flow).is_some(), "{flow}");
        (in_flight_pkts(&flow)? >= 950).then_some(())
    });
    path.apply(estimated);
    until("the queue to drain", || {
        (in_flight_pkts(&path.flow(&transfer.socket))? < 800).then_some(())
    });
    transfer.end();
}

/// A filter in front of fatpath's: seven of eight packets leave by it. `tc` takes cBPF as numbers: load
/// SKF_AD_RANDOM, and where one of its lowest three bits is set TC_ACT_OK, else TC_ACT_UNSPEC.
const SHADOW: &str = "4,32 0 0 4294963256,69 0 1 7,6 0 0 0,6 0 0 4294967295";

#[test]
fn a_flow_of_which_a_few_segments_are_marked_goes_polite_and_stays_so() {
    let Some(_alone) = alone() else { return };
    let path = Path::new("runm", "rude = 'allowed'");
    for words in [
        &["tc", "qdisc", "add", "dev", "wan", "clsact"][..],
        &[
            "tc", "filter", "add", "dev", "wan", "egress", "pref", "1", "protocol", "ip", "bpf",
            "da", "bytecode", SHADOW,
        ],
    ] {
        path.lab.output("a", words);
    }
    path.open_gate();
    let (sender, receiver) = path.lab.connection(7014);
    assert_eq!((set(&sender, ON), get(&sender)), (0, RUDE));
    let transfer = Transfer::start((sender, receiver));
    until("it to be found out", || {
        (get(&transfer.socket) == POLITE).then_some(())
    });
    let status = path.daemon.json(&["rude", "status"]);
    assert_eq!(status["flows_unmarked"], 1, "{status}");
    assert_eq!(set(&transfer.socket, ON), libc::EPERM);
    transfer.end();
    let (another, _receiver) = path.lab.connection(7015);
    assert_eq!(set(&another, ON), 0, "another connection");
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

/// `fatpath rude run` on host `a`, of a program that connects to `b`, waits for an answer and ends with 7.
fn run_rude(path: &Path, port: u16, arguments: &[&str]) -> Child {
    let address = path.lab.address("b");
    let connect = format!("iperf3 --client {address} --port {port} >/dev/null 2>&1; exit 7");
    let run = path.daemon.command(&["rude", "run"]);
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/run/netns/{}", path.lab.namespace("a")));
    command.arg(run.get_program()).args(run.get_args());
    command
        .args(arguments)
        .args(["--", "sh", "-c", &connect])
        .spawn()
        .unwrap()
}

#[test]
fn a_program_is_run_rude_without_knowing() {
    let Some(_alone) = alone() else { return };
    let path = Path::new("rrun", "rude = 'allowed'\nrude_users = ['nobody']");
    path.open_gate();
    let server = path
        .lab
        .on("b", || TcpListener::bind("0.0.0.0:7016").unwrap());
    server.set_nonblocking(true).unwrap();
    let accept = || until("the program to connect", || server.accept().ok());
    let mut roots = run_rude(&path, 7016, &[]);
    let (accepted, peer) = accept();
    assert!(
        path.daemon.flow(peer)["rude"].is_null(),
        "root is not listed"
    );
    drop(accepted);
    roots.wait().unwrap();
    let mut child = run_rude(&path, 7016, &["--user", "nobody"]);
    let (accepted, peer) = accept();
    let flow = path.daemon.flow(peer);
    assert_eq!(flow["rude"]["mode"], "rude", "{flow}");
    assert_eq!(flow["rude"]["user"], NOBODY);
    let cgroup = std::fs::read_to_string(format!("/proc/{}/cgroup", child.id())).unwrap();
    assert!(cgroup.contains("fatpath-rude-"), "{cgroup}");
    drop(accepted);
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(7), "the command's own exit status");
    let name = format!("fatpath-rude-{}", child.id());
    until("its cgroup to be removed", || {
        let find = Command::new("find")
            .args(["/sys/fs/cgroup", "-name", &name])
            .output()
            .unwrap();
        find.stdout.is_empty().then_some(())
    });
}
