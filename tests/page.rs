// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page: who may come in, that the API is as its document says, and the page in a browser while a real
//! transfer runs. The browser's own tests are web/browser/*.test.ts; this runs them.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use fatpath_api::LiveFrame;
use fatpath_api::endpoint::{
    CAPTURE_WARNING, Endpoint, GetFlowDetail, GetFlowViews, GetFlows, GetListing, GetPaths,
    GetRude, GetStatus, GetWhy,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use support::{Daemon, Lab, alone, until, until_within};

/// Answer to a request: status, head, body.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

/// Sends the text as it is, and reads to the end.
fn send(mut stream: impl Read + Write, request: &str) -> Answer {
    stream.write_all(request.as_bytes()).unwrap();
    read_answer(stream)
}

fn read_answer(mut stream: impl Read) -> Answer {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let (head, body) = (head.to_lowercase(), body.to_owned());
    Answer { status, head, body }
}

/// The way in over TCP.
struct Sockets {
    tcp: SocketAddr,
    token: String,
    /// As `fatpath page` prints it.
    page: String,
}

impl Sockets {
    fn of(daemon: &Daemon) -> Sockets {
        let output = daemon.ask(&["page"]);
        assert!(output.status.success(), "{output:?}");
        let page = String::from_utf8(output.stdout).unwrap().trim().to_owned();
        let (address, token) = page.split_once("/#token=").unwrap();
        Sockets {
            tcp: address.strip_prefix("http://").unwrap().parse().unwrap(),
            token: token.to_owned(),
            page: page.clone(),
        }
    }

    /// Asks, and does not wait for the answer.
    fn begin(&self, line: &str, headers: &str) -> TcpStream {
        let host = self.tcp;
        let mut stream = TcpStream::connect(host).unwrap();
        write!(
            stream,
            "{line} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n"
        )
        .unwrap();
        stream
    }

    fn over_tcp(&self, line: &str, headers: &str) -> Answer {
        read_answer(self.begin(line, headers))
    }

    fn authorization(&self) -> String {
        format!("Authorization: Bearer {}\r\n", self.token)
    }

    fn with_token(&self, line: &str) -> Answer {
        self.over_tcp(line, &self.authorization())
    }
}

fn over_unix(socket: &Path, line: &str, headers: &str) -> Answer {
    let request = format!("{line} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n");
    send(UnixStream::connect(socket).unwrap(), &request)
}

#[test]
fn who_may_come_in() {
    let Some(_alone) = alone() else { return };
    let daemon = Daemon::start_listening("# nothing is tuned");
    let sockets = Sockets::of(&daemon);
    for path in [
        "/v1/status",
        "/v1/flows",
        "/v1/instruments/flows",
        "/v1/instruments/live",
        "/v1/instruments/flows/1/capture",
    ] {
        let closed = sockets.over_tcp(&format!("GET {path}"), "");
        assert_eq!(closed.status, 401, "{path}");
        assert!(closed.body.contains("token"), "{}", closed.body);
    }
    assert_eq!(sockets.with_token("GET /v1/status").status, 200);
    let half = &sockets.token[..32];
    let wrong = sockets.over_tcp(
        "GET /v1/status",
        &format!("Authorization: Bearer {half}\r\n"),
    );
    assert_eq!(wrong.status, 401);
    for line in [
        "POST /v1/unload",
        "POST /v1/rude/off",
        "DELETE /v1/policy",
        "POST /v1/policy/apply?file=x",
    ] {
        assert_eq!(sockets.with_token(line).status, 405, "{line}");
    }
    assert_eq!(sockets.over_tcp("GET /", "").status, 200);
    assert_eq!(
        sockets
            .over_tcp("GET /", "Origin: http://evil.example\r\n")
            .status,
        403
    );
    assert_eq!(
        sockets.over_tcp("GET /", "Host: evil.example\r\n").status,
        403
    );
    let view = daemon.path("run/view.sock");
    let local = |headers: &str| over_unix(&view, "GET /v1/status", headers).status;
    assert_eq!(local("Host: fatpath\r\n"), 200);
    assert_eq!(local("Host: evil.example:7070\r\n"), 403);
    assert_eq!(local(""), 403);
    // Through `ssh -L` a browser may come as root.
    let browser =
        "Host: localhost:7070\r\nOrigin: http://localhost:7070\r\nSec-Fetch-Site: same-origin\r\n";
    assert_eq!(local(browser), 200);
    assert_eq!(over_unix(&view, "POST /v1/unload", browser).status, 405);
    assert_eq!(
        daemon.ask(&["status"]).status.code(),
        Some(0),
        "nothing was unloaded"
    );
}

/// sshd connects as root, so whoever reaches the forwarded port asks as root, with any header.
#[test]
fn what_the_advised_tunnel_reaches_changes_nothing() {
    let Some(_alone) = alone() else { return };
    let daemon = Daemon::start("# nothing is tuned");
    let advice = String::from_utf8(daemon.ask(&["page"]).stdout).unwrap();
    let tunnel = advice.split("127.0.0.1:7070:").nth(1).unwrap();
    let socket = Path::new(tunnel.split_whitespace().next().unwrap());
    let ask = |line: &str, headers: &str| over_unix(socket, line, headers).status;
    for host in ["fatpath", "localhost:7070"] {
        for line in [
            "POST /v1/rude/on?mark=0x200&netns=",
            "POST /v1/policy/apply?file=x",
            "POST /v1/unload",
        ] {
            assert_eq!(
                ask(line, &format!("Host: {host}\r\n")),
                405,
                "{line} {host}"
            );
        }
        for path in ["/", "/v1/status", "/v1/rude"] {
            assert_eq!(
                ask(&format!("GET {path}"), &format!("Host: {host}\r\n")),
                200
            );
        }
    }
    assert_eq!(daemon.json(&["rude", "status"])["gate"]["is_open"], false);
}

/// A browser's request can only come through a tunnel: it belongs on the socket that only reads.
#[test]
fn the_socket_that_changes_answers_no_browser() {
    let Some(_alone) = alone() else { return };
    let daemon = Daemon::start("# nothing is tuned");
    let socket = daemon.path("run/fatpath.sock");
    let ask = |line: &str, headers: &str| over_unix(&socket, line, headers);
    assert_eq!(ask("GET /v1/status", "Host: fatpath\r\n").status, 200);
    let forwarded = [
        "Host: localhost:7070\r\n",
        "Host: 127.0.0.1\r\n",
        "Host: fatpath\r\nOrigin: http://fatpath\r\n",
        "Host: fatpath\r\nSec-Fetch-Site: none\r\n",
        "Host: fatpath\r\nSec-Fetch-Mode: navigate\r\n",
    ];
    for headers in forwarded {
        for line in ["GET /", "GET /v1/status", "POST /v1/unload"] {
            let answer = ask(line, headers);
            assert_eq!(answer.status, 403, "{line} {headers:?}");
            assert!(answer.body.contains("view.sock"), "{}", answer.body);
        }
    }
}

#[test]
fn no_path_leads_out_and_every_answer_is_sealed() {
    let Some(_alone) = alone() else { return };
    let daemon = Daemon::start_listening("# nothing is tuned");
    let sockets = Sockets::of(&daemon);
    let paths = [
        "/assets/../../../etc/passwd",
        "/assets/%2e%2e/%2e%2e/etc/passwd",
        "/assets/..%2f..%2fetc%2fpasswd",
        "/assets//etc/passwd",
        "/assets/",
        "/assets",
        "/index.html/..",
        "/../Cargo.toml",
        "/%00",
        "/page.token",
    ];
    for path in paths {
        let answer = sockets.with_token(&format!("GET {path}"));
        assert_eq!(answer.status, 404, "{path}: {}", answer.body);
        assert!(!answer.body.contains("root:"), "{path}");
    }
    let script = sockets.over_tcp("GET /", "").body;
    let script = script
        .split('"')
        .find(|part| part.ends_with(".js"))
        .unwrap();
    for (path, status) in [
        ("/", 200),
        (script, 200),
        ("/v1/status", 200),
        ("/none", 404),
    ] {
        let answer = sockets.with_token(&format!("GET {path}"));
        assert_eq!(answer.status, status, "{path}");
        assert!(
            answer.head.contains("\r\nx-content-type-options: nosniff"),
            "{}",
            answer.head
        );
        let policy = answer
            .head
            .split("content-security-policy: ")
            .nth(1)
            .unwrap();
        let policy = policy.split("\r\n").next().unwrap();
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self';"),
            "{policy}"
        );
        assert!(
            !policy.contains("unsafe") && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
    }
}

#[test]
fn the_token_is_roots_outlives_the_daemon_and_goes_with_an_unload() {
    let Some(_alone) = alone() else { return };
    let mut daemon = Daemon::start_listening("# nothing is tuned");
    let before = Sockets::of(&daemon);
    daemon.kill_9();
    daemon.restart();
    assert_eq!(Sockets::of(&daemon).token, before.token);
    let token = daemon.path("run/page.token");
    let mode = std::os::unix::fs::MetadataExt::mode(&token.metadata().unwrap());
    assert_eq!(mode & 0o777, 0o600);
    daemon.unload();
    assert!(!token.exists());
}

#[test]
fn a_taken_port_is_a_warning_and_tried_again() {
    let Some(_alone) = alone() else { return };
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut daemon = Daemon::idle("[[rule]]\nname = 'all'\ninitial_window = 20");
    daemon.arguments = vec!["--listen".into(), address.clone()];
    daemon.restart();
    let status = daemon.json(&["status"]);
    assert_eq!(status["kernel"]["rules"], serde_json::json!(["all"]));
    assert_eq!(status["page"], Value::Null);
    let said = status["page_error"].as_str().unwrap();
    assert!(said.contains(&address), "{said}");
    assert!(
        daemon.stderr().contains("tried again"),
        "{}",
        daemon.stderr()
    );
    let advice = daemon.ask(&["page"]).stdout;
    let advice = String::from_utf8(advice).unwrap();
    assert!(
        advice.contains(&address) && !advice.contains("token"),
        "{advice}"
    );
    drop(taken);
    until("the page to be served", || {
        (daemon.json(&["status"])["page"] == *address).then_some(())
    });
    assert_eq!(daemon.json(&["status"])["page_error"], Value::Null);
    assert_eq!(
        Sockets::of(&daemon).with_token("GET /v1/status").status,
        200
    );
}

#[test]
fn only_loopback_is_listened_on() {
    let Some(_alone) = alone() else { return };
    let mut command = Command::new(support::FATPATH);
    let dir = tempfile::tempdir().unwrap();
    let policy = dir.path().join("policy.toml");
    std::fs::write(&policy, "# nothing is tuned").unwrap();
    command.args([
        "daemon",
        "--listen",
        "0.0.0.0:0",
        "--pin-dir",
        "/sys/fs/bpf/fatpath-page-none",
    ]);
    command
        .arg("--policy")
        .arg(&policy)
        .arg("--run-dir")
        .arg(dir.path().join("run"));
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("give a loopback address"),
        "{said}"
    );
    assert!(
        !Path::new("/sys/fs/bpf/fatpath-page-none").exists(),
        "nothing was loaded"
    );
}

/// Checks a value against a schema of the document.
fn expect_valid(document: &Value, schema: &Value, value: &Value, what: &str) {
    let mut whole = schema.clone();
    // What it refers to is in the document's components.
    whole["components"] = document["components"].clone();
    let validator = jsonschema::draft202012::new(&whole).unwrap();
    let wrong: Vec<String> = validator
        .iter_errors(value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(wrong.is_empty(), "{what}: {wrong:#?}");
}

/// What the command line reads of an answer is all of it: nothing is lost on the way through the type.
fn expect_read_whole<T: Serialize + DeserializeOwned>(value: &Value) {
    let read: T = serde_json::from_value(value.clone()).unwrap();
    assert_eq!(&serde_json::to_value(&read).unwrap(), value);
}

/// Asks an endpoint, whose answer must be what the document and the type say.
fn answers_in_type<E: Endpoint>(sockets: &Sockets, document: &Value, asked: &str) -> Value {
    let value = answers_as_described(sockets, document, E::PATH, asked, 200);
    expect_read_whole::<E::Answer>(&value);
    value
}

fn answers_as_described(
    sockets: &Sockets,
    document: &Value,
    path: &str,
    asked: &str,
    status: u16,
) -> Value {
    let answer = sockets.with_token(&format!("GET {asked}"));
    assert_eq!(answer.status, status, "{asked}: {}", answer.body);
    let described = &document["paths"][path]["get"]["responses"][status.to_string()];
    let value: Value = serde_json::from_str(&answer.body).unwrap();
    expect_valid(
        document,
        &described["content"]["application/json"]["schema"],
        &value,
        asked,
    );
    value
}

/// The first answer of the stream, frame by frame: event, data.
fn first_frames(sockets: &Sockets) -> Vec<(String, Value)> {
    let mut stream = TcpStream::connect(sockets.tcp).unwrap();
    let request = format!(
        "GET /v1/instruments/live HTTP/1.0\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        sockets.tcp, sockets.token
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    let mut buffer = [0; 4096];
    while !text.contains("event: lost") || !text.ends_with("\n\n") {
        let length = stream.read(&mut buffer).unwrap();
        assert_ne!(length, 0, "{text}");
        text += std::str::from_utf8(&buffer[..length]).unwrap();
    }
    let frames = text.split("\n\n").filter_map(|frame| {
        let (event, data) = frame.split_once("event: ")?.1.split_once("\ndata: ")?;
        Some((event.to_owned(), serde_json::from_str(data).unwrap()))
    });
    frames.collect()
}

#[test]
fn the_api_is_as_its_document_says() {
    let Some(_alone) = alone() else { return };
    let lab = Lab::up("api", "rate = '50mbit'\ndelay = '10ms'\nqueue = '1bdp'");
    lab.output("b", &["sysctl", "-w", RECEIVER]);
    let daemon = Daemon::start_listening(
        "[auto]\n[[rule]]\nname = 'wan'\ndestination_ports = [5201]\ninitial_window = 20",
    );
    let sockets = Sockets::of(&daemon);
    let mut transfer = lab.transfer(TRANSFER_S, &[]);
    let path = "/v1/openapi.json";
    let document: Value =
        serde_json::from_str(&sockets.with_token(&format!("GET {path}")).body).unwrap();
    let asked = "/v1/instruments/why";
    until("a finding", || {
        let whys = answers_in_type::<GetWhy>(&sockets, &document, asked);
        let mut whys = whys.as_array().unwrap().iter();
        whys.any(|why| why["findings"] != serde_json::json!([]))
            .then_some(())
    });
    for path in ["/v1/openapi.json", "/v1/policy"] {
        answers_as_described(&sockets, &document, path, path, 200);
    }
    answers_in_type::<GetStatus>(&sockets, &document, "/v1/status");
    answers_in_type::<GetRude>(&sockets, &document, "/v1/rude");
    let paths = "/v1/paths";
    let asked = format!("{paths}?evidence=true");
    until("a learned path, with its evidence", || {
        let learned = answers_in_type::<GetPaths>(&sockets, &document, &asked);
        let told_by = &learned["paths"][0]["told_by"][0];
        (told_by["bytes"].as_u64() >= Some(64 << 10)).then_some(())
    });
    let learned = answers_in_type::<GetPaths>(&sockets, &document, paths);
    assert_eq!(learned["paths"][0]["told_by"], Value::Null, "not asked for");
    for wrong in ["limit=0", "limit=65536&evidence=true", "prefix=x"] {
        let asked = format!("{paths}?{wrong}");
        answers_as_described(&sockets, &document, paths, &asked, 400);
    }
    let tuned = answers_in_type::<GetFlows>(&sockets, &document, "/v1/flows");
    let is_given = |flow: &Value| flow["settings"][0]["outcome"] == "given";
    assert!(tuned.as_array().unwrap().iter().any(is_given), "{tuned:#?}");
    let flows = "/v1/instruments/flows";
    let views = answers_in_type::<GetFlowViews>(&sockets, &document, flows);
    let listing = "/v1/instruments/listing";
    let asked = format!("{listing}?by=rtt&filter=5201&count=1&step=1");
    let listed = answers_in_type::<GetListing>(&sockets, &document, &asked);
    assert_eq!(listed["views"].as_array().unwrap().len(), 1, "{listed:#?}");
    assert_eq!(listed["chosen"], listed["views"][0]["flow"]["cookie"]);
    answers_as_described(
        &sockets,
        &document,
        listing,
        &format!("{listing}?by=x"),
        400,
    );
    let one = "/v1/instruments/flows/{cookie}";
    let details = views.as_array().unwrap().iter().map(|view| {
        let asked = one.replace("{cookie}", &view["flow"]["cookie"].to_string());
        answers_in_type::<GetFlowDetail>(&sockets, &document, &asked)
    });
    let is_whole = |detail: &Value| {
        let parts = [
            &detail["points"],
            &detail["events"],
            &detail["view"]["findings"],
        ];
        parts.iter().all(|part| **part != serde_json::json!([]))
    };
    let details: Vec<Value> = details.collect();
    assert!(details.iter().any(is_whole), "{details:#?}");
    answers_as_described(&sockets, &document, one, &one.replace("{cookie}", "0"), 404);
    let frames = first_frames(&sockets);
    let schema = serde_json::json!({ "$ref": "#/components/schemas/LiveFrame" });
    for (event, data) in &frames {
        let frame = serde_json::json!({ "event": event, "data": data });
        expect_valid(&document, &schema, &frame, "a frame of the stream");
        expect_read_whole::<LiveFrame>(&frame);
    }
    let names: Vec<&str> = frames.iter().map(|(event, _)| event.as_str()).collect();
    assert_eq!((names[0], *names.last().unwrap()), ("reset", "lost"));
    transfer.kill().unwrap();
    transfer.wait().unwrap();
}

#[test]
fn a_flow_is_captured_for_the_page() {
    let Some(_alone) = alone() else { return };
    let daemon = Daemon::start_listening("# nothing is tuned");
    let sockets = Sockets::of(&daemon);
    let talk = Talk::start(SLOW);
    let [local, remote] = talk.ends.map(|end| end.to_string());
    let cookie = talk.cookie(&sockets);
    let asked = |cookie: &str, seconds: u32| sockets.with_token(&capture_of(cookie, seconds));
    let answer = asked(&cookie, 1);
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(answer.head.contains("attachment"), "{}", answer.head);
    assert!(!answer.head.contains(CAPTURE_WARNING), "{}", answer.head);
    assert!(answer.body.starts_with("<!doctype html>"));
    assert!(answer.body.contains(&format!("{local} to {remote}")));
    assert!(!daemon.path("run/capture").exists(), "nothing stays");
    assert_eq!(asked(&cookie, 61).status, 400);
    assert_eq!(asked("0", 1).status, 404);
    // Nothing in the address names a file.
    for path in ["..%2f..%2f..%2fetc%2fpasswd", "%2fetc%2fpasswd", "--out=x"] {
        assert_eq!(asked(path, 1).status, 400, "{path}");
    }
}

fn capture_of(cookie: &str, seconds: u32) -> String {
    format!("GET /v1/instruments/flows/{cookie}/capture?seconds={seconds}")
}

#[test]
fn whoever_stops_waiting_ends_the_capture() {
    let Some(_alone) = alone() else { return };
    let daemon = Daemon::start_listening("# nothing is tuned");
    let sockets = Sockets::of(&daemon);
    let talk = Talk::start(SLOW);
    let cookie = talk.cookie(&sockets);
    let waiting = sockets.begin(&capture_of(&cookie, 60), &sockets.authorization());
    until("the capture to run", || {
        let file = daemon.path("run/capture/flow.pcapng");
        file.exists().then_some(())
    });
    assert_eq!(sockets.with_token(&capture_of(&cookie, 1)).status, 503);
    drop(waiting);
    // Long before its own end. The next one is let in a moment after the folder has gone.
    until_within(Duration::from_secs(30), "the capture to end", || {
        let is_gone = !daemon.path("run/capture").exists();
        let next = is_gone.then(|| sockets.with_token(&capture_of(&cookie, 1)).status);
        (next == Some(200)).then_some(())
    });
}

#[test]
fn a_capture_that_reaches_its_bound_says_so() {
    let Some(_alone) = alone() else { return };
    let daemon = Daemon::start_listening("# nothing is tuned");
    let sockets = Sockets::of(&daemon);
    let talk = Talk::start(FAST);
    let answer = sockets.with_token(&capture_of(&talk.cookie(&sockets), 60));
    assert_eq!(answer.status, 200, "{}", answer.body);
    let warning = answer.head.split(CAPTURE_WARNING).nth(1).unwrap();
    assert!(warning.contains("bound of 16 mib"), "{warning}");
}

/// How a connection sends: bytes at a time, and the pause after them.
type Pace = (usize, Duration);
const SLOW: Pace = (1000, Duration::from_millis(5));
/// As many segments as it can.
const FAST: Pace = (1, Duration::ZERO);

/// A connection over loopback, in the daemon's own namespace, where it captures; it carries data until it is dropped.
struct Talk {
    /// The sender's, the receiver's.
    ends: [SocketAddr; 2],
    receiver: TcpStream,
    threads: Vec<JoinHandle<()>>,
}

impl Talk {
    fn start((bytes, pause): Pace) -> Talk {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        sender.set_nodelay(true).unwrap();
        let (receiver, _) = listener.accept().unwrap();
        let ends = [sender.local_addr(), sender.peer_addr()].map(Result::unwrap);
        let mut taken = receiver.try_clone().unwrap();
        let send = move || {
            while sender.write_all(&vec![7; bytes]).is_ok() {
                thread::sleep(pause);
            }
        };
        let take = move || {
            let _ = std::io::copy(&mut taken, &mut std::io::sink());
        };
        Talk {
            ends,
            receiver,
            threads: vec![thread::spawn(send), thread::spawn(take)],
        }
    }

    /// Of the sender's end, once the daemon lists it.
    fn cookie(&self, sockets: &Sockets) -> String {
        let [local, remote] = self.ends.map(|end| end.to_string());
        until("the flow to be listed", || {
            let views = sockets.with_token("GET /v1/instruments/flows").body;
            let views: Vec<Value> = serde_json::from_str(&views).unwrap();
            let mut flows = views.into_iter().map(|view| view["flow"].clone());
            let flow = flows.find(|flow| flow["local"] == local && flow["remote"] == remote);
            flow.map(|flow| flow["cookie"].to_string())
        })
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        // With data unread the peer is reset, which ends the sender.
        let _ = self.receiver.shutdown(Shutdown::Both);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// `npm run SCRIPT` in web/, with what it prints; `None`, and a line that says so, when it cannot run here.
fn npm(script: &str, variables: &[(&str, &str)]) -> Option<String> {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web");
    if !web.join("node_modules").exists() {
        println!("skipped: web/node_modules is missing; make setup fetches it");
        return None;
    }
    let mut command = Command::new("npm");
    command.args(["run", "--silent", script]).current_dir(web);
    let output = command.envs(variables.iter().copied()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    Some(said)
}

#[test]
fn the_parts_of_the_page() {
    npm("test", &[]);
}

/// A receiver whose window carries a sixth of the path.
const RECEIVER: &str = "net.ipv4.tcp_rmem=4096 32768 32768";

/// Longer than the browser's tests take on a slow machine.
const TRANSFER_S: u32 = 600;

#[test]
fn a_transfer_is_seen_in_a_browser() {
    let Some(_alone) = alone() else { return };
    if !Path::new("/usr/bin/chromium").exists() {
        println!("skipped: there is no /usr/bin/chromium");
        return;
    }
    let lab = Lab::up("page", "rate = '50mbit'\ndelay = '10ms'\nqueue = '1bdp'");
    lab.output("b", &["sysctl", "-w", RECEIVER]);
    let daemon = Daemon::start_listening(
        "[archive]\nevery_flow_from = 0\n[auto]\n[[rule]]\nname = 'wan'\ndestination_ports = [5201]\ninitial_window = 10",
    );
    let sockets = Sockets::of(&daemon);
    // One that ends, for the history. It is slow by itself, and so has not the finding that the browser looks for.
    let slow = ["--bitrate", "1M"];
    lab.transfer(1, &slow).wait().unwrap();
    let mut transfer = lab.transfer(TRANSFER_S, &["--parallel", "3"]);
    let peer = format!("{}:5201", lab.address("b"));
    until("the transfer to be listed", || {
        let flows = sockets.with_token("GET /v1/instruments/flows").body;
        flows
            .contains(&format!("\"remote\":\"{peer}\""))
            .then_some(())
    });
    let asked = format!("GET /v1/archive/path?prefix={}&by=hour", lab.address("b"));
    until("a flow and a finding in the archive", || {
        let history = sockets.with_token(&asked).body;
        let has_both = history.contains("goodput_bps") && history.contains("FP-RWND");
        has_both.then_some(())
    });
    // As many short connections as a busy host has: the transfer stays in sight.
    for _ in 0..40 {
        sockets.with_token("GET /v1/status");
    }
    let asked = format!("GET /v1/paths?prefix={}", lab.address("b"));
    until("a learned path", || {
        let learned = sockets.with_token(&asked).body;
        learned.contains("\"prefix\"").then_some(())
    });
    let talk = Talk::start(SLOW);
    let captured = talk.ends[1].to_string();
    let variables = [
        ("FATPATH_PAGE", sockets.page.as_str()),
        ("FATPATH_PEER", &peer),
        ("FATPATH_CAPTURED", &captured),
        ("FATPATH_FINDING", "FP-RWND"),
    ];
    npm("test:browser", &variables);
    transfer.kill().unwrap();
    transfer.wait().unwrap();
}
