// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests between two hosts of fatpath over an emulated path: what a peer measures, its limits, and what strangers can make a
//! responder do.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use fatpath_peer::{AuthError, Key, connect};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use support::{Daemon, FATPATH, Lab, alone, until};

const PORT: u16 = 4748;
const WITHIN: Duration = Duration::from_secs(20);
/// What comes before TLS.
const PREAMBLE_BYTES: usize = 2048;
/// Of a datagram of 64 bytes with its headers.
const WIRE_BYTES: u64 = 112;

/// Host `a` asks, host `b` answers; each has a key.
struct Ends {
    lab: Lab,
    responder: Option<Responder>,
}

struct Responder {
    process: Child,
    said: Arc<Mutex<Vec<Value>>>,
}

impl Ends {
    fn new(name: &str) -> Ends {
        Ends::over(name, "rate = '50mbit'\ndelay = '10ms'\nqueue = '1bdp'")
    }

    fn over(name: &str, link: &str) -> Ends {
        let lab = Lab::up(name, link);
        fs::set_permissions(lab.scratch(), Permissions::from_mode(0o777)).unwrap();
        let ends = Ends {
            lab,
            responder: None,
        };
        for end in ["a", "b", "stranger"] {
            ends.keys(&["new", "--key", &ends.text(end)]);
        }
        let (key, host) = (ends.key("b"), ends.lab.address("b"));
        ends.keys(&["trust", "host", &key, &host, "--trust", &ends.text("hosts")]);
        ends
    }

    fn path(&self, name: &str) -> PathBuf {
        self.lab.scratch().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn keys(&self, words: &[&str]) -> String {
        let output = Command::new(FATPATH).arg("keys").args(words).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn key(&self, end: &str) -> String {
        self.keys(&["show", "--key", &self.text(end)])
    }

    /// The file of `b`: `a` is a peer, with these limits.
    fn write_file(&self, limits: &str) {
        self.write_clocked("", limits);
    }

    /// The same, with what the file says of the clock.
    fn write_clocked(&self, clock: &str, limits: &str) {
        let (key, address) = (self.key("a"), self.lab.address("a"));
        let file = format!(
            "[responder]\nlisten = '0.0.0.0:{PORT}'\n{clock}\n\
             [[peer]]\nname = 'a'\nprefix = '{address}'\nkey = '{key}'\n{limits}\n"
        );
        fs::write(self.path("measure.toml"), file).unwrap();
    }

    /// `b` answers, as a user who is not root.
    fn respond(&mut self) {
        let (file, key, used) = (self.text("measure.toml"), self.text("b"), self.text("used"));
        let mut command = self.lab.command(
            "b",
            &[
                FATPATH, "measure", "respond", "--json", "--user", "nobody", "--file", &file,
                "--key", &key, "--used", &used,
            ],
        );
        let mut process = command.spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let said = Arc::new(Mutex::new(vec![]));
        let heard = said.clone();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let line = serde_json::from_str(&line).unwrap();
                heard.lock().unwrap().push(line);
            }
        });
        self.responder = Some(Responder { process, said });
        self.event("listening", |_| true);
    }

    /// The first event of the name for which `is_it`, once the responder has said it.
    fn event(&self, name: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let responder = self.responder.as_ref().unwrap();
        until(name, || {
            let said = responder.said.lock().unwrap();
            let mut events = said.iter().filter(|event| event["event"] == name);
            events.find(|event| is_it(event)).cloned()
        })
    }

    fn signal(&self, signal: Signal) {
        let process = &self.responder.as_ref().unwrap().process;
        let pid = Pid::from_raw(i32::try_from(process.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    fn end(&mut self, signal: Signal) {
        self.signal(signal);
        let mut responder = self.responder.take().unwrap();
        responder.process.wait().unwrap();
    }

    fn echo_as(&self, key: &str, more: &[&str]) -> Command {
        self.asking("echo", key, more)
    }

    fn asking(&self, test: &str, key: &str, more: &[&str]) -> Command {
        let (host, key, trust) = (self.lab.address("b"), self.text(key), self.text("hosts"));
        let words = [
            FATPATH, "measure", test, &host, "--json", "--key", &key, "--trust", &trust,
        ];
        self.lab.command("a", &[&words[..], more].concat())
    }

    fn one_way(&self, more: &[&str]) -> Output {
        self.asking("one-way", "a", more).output().unwrap()
    }

    fn echo(&self, more: &[&str]) -> Output {
        self.echo_as("a", more).output().unwrap()
    }

    fn measured(&self, more: &[&str]) -> Value {
        let output = self.echo(more);
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn refused(&self, more: &[&str]) -> String {
        let output = self.echo(more);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// What peer `a` has used today.
    fn used(&self) -> Value {
        self.status()["peers"][0]["today"].clone()
    }

    fn status(&self) -> Value {
        let (file, used) = (self.text("measure.toml"), self.text("used"));
        let output = Command::new(FATPATH)
            .args([
                "measure", "status", "--json", "--file", &file, "--used", &used,
            ])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// A connection of `a` to the responder.
    fn connection(&self) -> TcpStream {
        let address = format!("{}:{PORT}", self.lab.address("b"));
        let socket = self.lab.on("a", || TcpStream::connect(address).unwrap());
        socket.set_read_timeout(Some(WITHIN)).unwrap();
        socket
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        if let Some(responder) = &mut self.responder {
            let _ = responder.process.kill();
            let _ = responder.process.wait();
        }
    }
}

/// Bytes of data that a socket has sent, and received: `tcpi_bytes_acked` and `tcpi_bytes_received` of tcp(7).
#[allow(unsafe_code)] // getsockopt(2)
fn counted(socket: &TcpStream) -> (u64, u64) {
    let mut info = [0_u64; 32];
    let mut bytes = size_of_val(&info) as libc::socklen_t;
    // SAFETY: the kernel writes no more than `bytes` bytes.
    let failed = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut bytes,
        )
    };
    assert_eq!(failed, 0);
    (info[15], info[16])
}

#[test]
fn a_peer_measures_the_path_and_is_counted() {
    let Some(_alone) = alone() else { return };
    let mut ends = Ends::new("peer");
    ends.write_file("");
    ends.respond();
    let outcome = ends.measured(&["--duration", "2s", "--interval", "50ms"]);
    let value = |name: &str| outcome["values"][name][0].as_f64().unwrap();
    assert!((20.0..40.0).contains(&value("rtt_avg")), "{outcome}");
    assert_eq!((value("sent"), value("loss")), (40.0, 0.0), "{outcome}");
    let ended = ends.event("ended", |_| true);
    assert_eq!(
        (&ended["name"], &ended["answered"]),
        (&json!("a"), &json!(40))
    );
    let used = ends.used();
    assert_eq!(
        (&used["tests"], &used["bytes"]),
        (&json!(1), &json!(40 * WIRE_BYTES))
    );
    assert_eq!(ends.status()["is_running"], true);
    // The same by the schedule's file.
    let (host, key, trust) = (ends.lab.address("b"), ends.text("a"), ends.text("hosts"));
    let test = format!(
        "[[test]]\nname = 'far'\ntool = 'echo'\nto = '{host}'\nevery = '1min'\nduration = '1s'\n\
         key = '{key}'\ntrust = '{trust}'\n"
    );
    fs::write(ends.path("tests.toml"), test).unwrap();
    let file = ends.text("tests.toml");
    let run = [FATPATH, "measure", "run", "far", "--json", "--file", &file];
    let outcome: Value = serde_json::from_str(&ends.lab.output("a", &run)).unwrap();
    assert_eq!(
        (&outcome["test"], &outcome["tool"]),
        (&json!("far"), &json!("echo"))
    );
    assert!(
        outcome["values"]["rtt_min"][0].as_f64().unwrap() >= 20.0,
        "{outcome}"
    );
    ends.end(Signal::TERM);
    assert_eq!(ends.status()["is_running"], false);
}

/// Both hosts have one clock, so that the emulator's delays are the truth.
#[test]
fn one_way_delay_is_told_apart_with_its_doubt_and_archived() {
    let Some(_alone) = alone() else { return };
    let link = "rate = '50mbit'\nqueue = '1bdp'\nforward.delay = '30ms'\nbackward.delay = '10ms'";
    let mut ends = Ends::over("one-way", link);
    ends.write_clocked("clock_error = '1ms'", "");
    ends.respond();
    let within = |values: &Value| {
        let ms = |name: &str| {
            assert_eq!(values[name][1], "ms", "{values}");
            values[name][0].as_f64().unwrap()
        };
        assert!((30.0..40.0).contains(&ms("delay_there_avg")), "{values}");
        assert!((10.0..20.0).contains(&ms("delay_back_avg")), "{values}");
        assert!((2.0..2.1).contains(&ms("delay_doubt")), "{values}");
        assert!(ms("rtt_min") >= 40.0, "{values}");
    };
    let output = ends.one_way(&["--duration", "1s", "--clock-error", "1ms"]);
    assert!(output.status.success(), "{output:?}");
    let outcome: Value = serde_json::from_slice(&output.stdout).unwrap();
    within(&outcome["values"]);
    // On a schedule, into the archive.
    let daemon = Daemon::start_in(Some(&ends.lab.namespace("a")), "[archive]\n");
    let (host, key, trust) = (ends.lab.address("b"), ends.text("a"), ends.text("hosts"));
    let test = format!(
        "[[test]]\nname = 'far'\ntool = 'one_way'\nto = '{host}'\nevery = '3s'\nduration = '1s'\n\
         key = '{key}'\ntrust = '{trust}'\nclock_error = '1ms'\n"
    );
    fs::write(daemon.path("measure.toml"), test).unwrap();
    let pid = Pid::from_raw(i32::try_from(daemon.child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::HUP).unwrap();
    let run = until("its event", || archived(&daemon));
    assert_eq!(run["name"], "test.one_way");
    assert_eq!(run["value"], run["body"]["values"]["delay_there_avg"][0]);
    assert!(run["body"]["start_us"].as_i64().unwrap() > 0);
    within(&run["body"]["values"]);
    drop(daemon);
    ends.end(Signal::TERM);
    // Who does not know its clock states no delay.
    ends.write_file("kinds = ['echo', 'one_way']");
    ends.respond();
    let is_known = fatpath_kernel::clock_error().unwrap().is_some();
    for more in [
        &["--duration", "1s"][..],
        &["--duration", "1s", "--clock-error", "1ms"],
    ] {
        let output = ends.one_way(more);
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(is_known || said.contains("synchronised"), "{said}");
    }
    ends.end(Signal::TERM);
    ends.write_clocked("clock_error = '1ms'", "kinds = ['echo']");
    ends.respond();
    let output = ends.one_way(&["--duration", "1s", "--clock-error", "1ms"]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("one_way are not answered"), "{said}");
}

fn archived(daemon: &Daemon) -> Option<Value> {
    let output = Command::new(FATPATH)
        .args(["archive", "query", "--json", "--kind", "test", "--archive"])
        .arg(daemon.path("archive"))
        .output()
        .unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let runs = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    runs.into_iter()
        .find(|run: &Value| run["body"]["note"].is_null())
}

#[test]
fn limits_hold_and_outlive_a_responder_that_is_killed() {
    let Some(_alone) = alone() else { return };
    let mut ends = Ends::new("limits");
    ends.write_file("duration = '2s'\nrate = '20kbit'\nbytes_a_day = '5kB'");
    ends.respond();
    let longer = ends.refused(&["--duration", "3s"]);
    assert!(longer.contains("a test lasts 2 s at most"), "{longer}");
    let faster = ends.refused(&["--duration", "1s", "--interval", "20ms"]);
    assert!(faster.contains("datagrams come at 20"), "{faster}");
    // 20 datagrams are 2,240 bytes; the responder is killed while they are on their way.
    let mut asking = ends.echo_as("a", &["--duration", "2s"]);
    let mut asking = asking.spawn().unwrap();
    ends.event("began", |_| true);
    let twice = ends.refused(&["--duration", "1s"]);
    assert!(!twice.is_empty(), "one test at a time");
    ends.end(Signal::KILL);
    asking.wait().unwrap();
    assert_eq!(ends.used()["bytes"], 20 * WIRE_BYTES, "{}", ends.used());
    ends.respond();
    ends.measured(&["--duration", "2s"]);
    let spent = ends.refused(&["--duration", "1s"]);
    assert!(spent.contains("left for today"), "{spent}");
    assert_eq!(ends.used()["bytes"], 40 * WIRE_BYTES);
    // The file is read again: the peer is none any more.
    let file = fs::read_to_string(ends.path("measure.toml")).unwrap();
    let without = &file[..file.find("[[peer]]").unwrap()];
    fs::write(ends.path("measure.toml"), format!("{without}nonsense")).unwrap();
    ends.signal(Signal::HUP);
    ends.event("read", |event| !event["error"].is_null());
    fs::write(ends.path("measure.toml"), without).unwrap();
    ends.signal(Signal::HUP);
    ends.event("read", |event| event["error"].is_null());
    assert!(!ends.echo(&["--duration", "1s"]).status.success());
}

#[test]
fn strangers_get_no_more_than_they_send() {
    let Some(_alone) = alone() else { return };
    let mut ends = Ends::new("strangers");
    ends.write_file("");
    ends.respond();
    // Whoever says too little, or something else, hears nothing at all.
    for said in [&[0; PREAMBLE_BYTES - 1][..], &[1; PREAMBLE_BYTES]] {
        let mut socket = ends.connection();
        socket.write_all(said).unwrap();
        let _ = socket.shutdown(Shutdown::Write); // it may be closed already
        let mut heard = vec![];
        let _ = socket.read_to_end(&mut heard); // it may be reset
        assert!(heard.is_empty(), "{heard:?}");
    }
    // Of another key, with all that belongs to it.
    let mut socket = ends.connection();
    let watched = socket.try_clone().unwrap();
    socket.write_all(&[0; PREAMBLE_BYTES]).unwrap();
    let stranger = Key::read(&ends.path("stranger")).unwrap();
    let refused = connect(socket, &stranger, "fatpath-measure", |_| true, WITHIN);
    assert!(matches!(refused, Err(AuthError::Distrusts)));
    let (sent, received) = counted(&watched);
    assert!(
        received > 0 && received < sent,
        "{sent} sent, {received} received"
    );
    let refused = ends.event("refused", |event| {
        event["why"]
            .as_str()
            .unwrap()
            .contains(&ends.key("stranger"))
    });
    assert_eq!(refused["unlisted"], 0);
    let said = ends.echo_as("stranger", &[]).output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    assert!(
        said.contains("[[peer]]") && said.contains("ed25519:"),
        "{said}"
    );
    assert!(ends.used()["bytes"] == 0 && ends.used()["tests"] == 0);
    // No UDP without a test, and while one runs for nobody but its peer.
    let address = format!("{}:{PORT}", ends.lab.address("b"));
    let udp = ends.lab.on("a", || UdpSocket::bind("0.0.0.0:0").unwrap());
    udp.connect(&address).unwrap();
    udp.set_read_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    let is_answered = || {
        udp.send(&[0; 64]).unwrap_or_default();
        udp.recv(&mut [0; 64]).is_ok()
    };
    assert!(!is_answered());
    let mut asking = ends.echo_as("a", &["--duration", "2s"]);
    let asking = asking.spawn().unwrap();
    ends.event("began", |_| true);
    assert!(!is_answered() && !is_answered());
    let output = asking.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn who_is_elsewhere_is_no_peer_and_no_port_opens_unasked() {
    let Some(_alone) = alone() else { return };
    let mut ends = Ends::new("elsewhere");
    ends.write_file("");
    let file = fs::read_to_string(ends.path("measure.toml")).unwrap();
    let address = ends.lab.address("a");
    fs::write(
        ends.path("measure.toml"),
        file.replace(
            &format!("prefix = '{address}'"),
            "prefix = '198.51.100.0/24'",
        ),
    )
    .unwrap();
    ends.respond();
    let mut heard = vec![];
    let _ = ends.connection().read_to_end(&mut heard); // it may be reset
    assert!(heard.is_empty());
    assert!(!ends.echo(&["--duration", "1s"]).status.success());
    ends.event("refused", |event| {
        event["why"].as_str().unwrap().contains("at its address")
    });
    ends.end(Signal::TERM);
    fs::write(ends.path("measure.toml"), "# nobody\n").unwrap();
    let (file, key, used) = (ends.text("measure.toml"), ends.text("b"), ends.text("used"));
    let words = [
        FATPATH, "measure", "respond", "--file", &file, "--key", &key, "--used", &used, "--user",
        "nobody",
    ];
    let output = ends.lab.command("b", &words).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("no port is opened"), "{said}");
}
