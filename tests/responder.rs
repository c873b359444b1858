// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests between two hosts of fatpath over an emulated path: what a peer measures, its limits, and what strangers can make a
//! responder do.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use fatpath_measure::{Server, pem};
use fatpath_peer::{AuthError, Key, connect};
use fatpath_responder::{Whom, lend};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;
use support::responder::{Ends, PORT, WITHIN};
use support::{Daemon, FATPATH, alone, until, until_within};

/// What comes before TLS.
const PREAMBLE_BYTES: usize = 2048;
/// Of a datagram of 64 bytes with its headers.
const WIRE_BYTES: u64 = 112;

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

/// The unit's folder is its user's alone.
#[test]
fn who_may_not_see_what_is_used_sees_the_rest() {
    let Some(_alone) = alone() else { return };
    let ends = Ends::new("unseen");
    ends.write_file("");
    let folder = ends.path("closed");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, Permissions::from_mode(0o000)).unwrap();
    let status = |more: &[&str]| {
        let status = [FATPATH, "measure", "status", "--file"];
        let (file, used) = (ends.text("measure.toml"), ends.text("closed/used"));
        let output = Command::new("setpriv")
            .args(["--bounding-set", "-dac_override,-dac_read_search"])
            .args(status)
            .args([&file, "--used", &used])
            .args(more)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let said: Value = serde_json::from_str(&status(&["--json"])).unwrap();
    let today = &said["peers"][0]["today"];
    assert!(said["is_running"].is_null() && today.is_null(), "{said}");
    let table = status(&[]);
    assert!(
        table.contains("may run") && table.contains(" ? "),
        "{table}"
    );
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
    daemon.hang_up();
    let run = until("its event", || {
        archived(&daemon, |run| run["body"]["note"].is_null())
    });
    assert_eq!(run["name"], "test.one_way");
    assert_eq!(run["value"], run["body"]["values"]["delay_there_avg"][0]);
    assert!(run["body"]["start_us"].as_i64().unwrap() > 0);
    within(&run["body"]["values"]);
    drop(daemon);
    ends.end(Signal::TERM);
    // Who does not know its clock states no delay.
    ends.write_file("kinds = ['echo', 'one_way']");
    ends.respond();
    let is_known = fatpath_clock::clock_error().unwrap().is_some();
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

/// All trains of a test together are less than the path carries in a second.
#[test]
fn the_rate_of_a_path_is_found_counted_and_archived() {
    let Some(_alone) = alone() else { return };
    let mut ends = Ends::over("rate", "rate = '100mbit'\ndelay = '10ms'\nqueue = '1bdp'");
    ends.write_file("kinds = ['echo', 'rate']\nbytes_a_day = '1GB'");
    ends.respond();
    // On a busy host a run fails, says that it may be wrong by half, or is wrong: docs/performance.md.
    let is_right = |values: &Value| {
        let number = |name: &str| values[name][0].as_f64();
        let is_near = |name: &str| number(name).is_some_and(|bps| (80e6..115e6).contains(&bps));
        // A train may find it full, which is 250 kB, or not.
        let queue = number("queue").or(number("queue_at_least"));
        number("rate_doubt").is_some_and(|doubt| doubt < 0.5)
            && is_near("rate")
            && is_near("available_rate")
            && queue.is_some_and(|bytes| (100e3..400e3).contains(&bytes))
    };
    let within = |values: &Value| {
        let value = |name: &str, unit: &str| {
            assert_eq!(values[name][1], unit, "{values}");
            values[name][0].as_f64().unwrap()
        };
        for name in ["rate", "available_rate"] {
            value(name, "b/s");
        }
        assert!(value("sent", "B") < 100e6 / 8.0, "{values}");
    };
    let long = Duration::from_secs(180);
    let values = until_within(long, "an estimate", || {
        let output = ends.asking("rate", "a", &["--most-rate", "2gbit"]).output();
        let outcome: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
        Some(outcome["values"].clone()).filter(is_right)
    });
    within(&values);
    let sent = values["sent"][0].as_f64().unwrap();
    let ended = ends.event("ended", |event| event["bytes"].as_f64() == Some(sent));
    assert_eq!(ended["kind"], "rate");
    assert!(
        ended["answered"].as_f64().unwrap() > 0.5 * sent / 1500.0,
        "{ended}"
    );
    assert!(ends.used()["bytes"].as_f64().unwrap() >= sent);
    // On a schedule, into the archive.
    let daemon = Daemon::start_in(Some(&ends.lab.namespace("a")), "[archive]\n");
    let (host, key, trust) = (ends.lab.address("b"), ends.text("a"), ends.text("hosts"));
    let test = format!(
        "[[test]]\nname = 'far'\ntool = 'rate'\nto = '{host}'\nevery = '10s'\nduration = '10s'\n\
         most_rate = '2gbit'\nkey = '{key}'\ntrust = '{trust}'\n"
    );
    fs::write(daemon.path("measure.toml"), test).unwrap();
    daemon.hang_up();
    // After a failure every second, then every fourth run is made.
    let run = until_within(long, "its event", || {
        archived(&daemon, |run| is_right(&run["body"]["values"]))
    });
    assert_eq!(run["name"], "test.rate");
    assert_eq!(run["value"], run["body"]["values"]["rate"][0]);
    within(&run["body"]["values"]);
}

#[test]
fn trains_are_recorded_only_of_who_may_and_within_limits() {
    let Some(_alone) = alone() else { return };
    let mut ends = Ends::over("trains", "rate = '100mbit'\ndelay = '10ms'\nqueue = '1bdp'");
    let refused = |ends: &Ends, why: &str| {
        let output = ends.asking("rate", "a", &[]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains(why), "{said}");
    };
    // A test that loads the path is allowed by name.
    ends.write_file("");
    ends.respond();
    refused(&ends, "tests of the kind rate are not answered");
    ends.end(Signal::TERM);
    ends.write_file("kinds = ['rate']\nbytes_a_day = '200kB'");
    ends.respond();
    refused(&ends, "left for today");
    let used = ends.used()["bytes"].as_u64().unwrap();
    assert!((1..=200_000).contains(&used), "{used}");
    ends.end(Signal::TERM);
    // A responder that is gone leaves no estimate behind.
    ends.write_file("kinds = ['rate']");
    ends.respond();
    let asking = ends.asking("rate", "a", &[]).spawn().unwrap();
    ends.event("began", |_| true);
    ends.end(Signal::KILL);
    let output = asking.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(!output.status.success() && said.contains("error"), "{said}");
    assert!(!said.contains("values"), "{said}");
}

#[test]
fn a_train_that_cannot_be_kept_counts_for_nothing() {
    let Some(_alone) = alone() else { return };
    let mut ends = Ends::over("unkept", "rate = '100mbit'\ndelay = '10ms'\nqueue = '1bdp'");
    ends.write_file("kinds = ['rate']");
    ends.respond();
    let asking = ends.asking("rate", "a", &[]).spawn().unwrap();
    ends.event("began", |_| true);
    let in_the_way = ends.path("used.new");
    until("room for a folder", || fs::create_dir(&in_the_way).ok());
    let output = asking.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("cannot keep what is used"), "{said}");
    let ended = ends.event("ended", |_| true);
    fs::remove_dir(&in_the_way).unwrap();
    // That a test is refused is kept, and with it what came before.
    assert!(!ends.echo(&[]).status.success());
    assert_eq!(ends.used()["bytes"], ended["bytes"]);
}

#[test]
fn throughput_is_measured_by_a_server_that_lives_for_the_test() {
    let Some(_alone) = alone() else { return };
    let mut ends = Ends::over("served", "rate = '50mbit'\ndelay = '10ms'\nqueue = '1bdp'");
    ends.write_file("kinds = ['iperf3']\nrate = '1gbit'\nbytes_a_day = '2GB'");
    ends.respond();
    let measured = |more: &[&str]| {
        let output = ends.asking("iperf3", "a", more).output().unwrap();
        let outcome: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(output.status.success(), "{outcome}");
        until("the server to end", || (!listens(&ends)).then_some(()));
        outcome["values"].clone()
    };
    let bps = |values: &Value| {
        assert_eq!(values["goodput"][1], "b/s", "{values}");
        values["goodput"][0].as_f64().unwrap()
    };
    let there = measured(&["--duration", "3s", "--streams", "2"]);
    assert!((20e6..50e6).contains(&bps(&there)), "{there}");
    let back = measured(&["--duration", "3s", "--reverse"]);
    assert!((20e6..50e6).contains(&bps(&back)), "{back}");
    let udp = measured(&["--duration", "2s", "--udp", "--rate", "5mbit"]);
    assert!((4e6..5.5e6).contains(&bps(&udp)), "{udp}");
    // What came and left counts, and what was kept beyond that is given back.
    let is_third = |event: &Value| event["kind"] == "iperf3" && event["bytes"].as_f64() < Some(5e6);
    ends.event("ended", is_third);
    let sums = [&there, &back, &udp].map(|values| values["bytes"][0].as_f64().unwrap());
    let sum: f64 = sums.iter().sum();
    let used = ends.used()["bytes"].as_f64().unwrap();
    assert!((0.9 * sum..1.5 * sum).contains(&used), "{used} of {sum}");
    let ended = ends.event("ended", |event| event["kind"] == "iperf3");
    assert_eq!(ended["answered"], 1);
    // The same by the schedule's file.
    let (host, key, trust) = (ends.lab.address("b"), ends.text("a"), ends.text("hosts"));
    let test = format!(
        "[[test]]\nname = 'far'\ntool = 'iperf3'\nserver = 'responder'\nto = '{host}'\nevery = '1h'\n\
         duration = '1s'\nrate = '10mbit'\nkey = '{key}'\ntrust = '{trust}'\n"
    );
    fs::write(ends.path("tests.toml"), test).unwrap();
    let file = ends.text("tests.toml");
    let run = [FATPATH, "measure", "run", "far", "--json", "--file", &file];
    let outcome: Value = serde_json::from_str(&ends.lab.output("a", &run)).unwrap();
    assert_eq!(outcome["tool"], "iperf3");
    assert!((5e6..15e6).contains(&bps(&outcome["values"])), "{outcome}");
    let flows = outcome["flows"].as_array().unwrap();
    let of_peer = |flow: &Value| flow["remote"] == *format!("{host}:5201");
    assert!(flows.len() == 1 && of_peer(&flows[0]), "{outcome}");
}

#[test]
fn the_highest_rate_without_loss_is_found() {
    let Some(_alone) = alone() else { return };
    let mut ends = Ends::over(
        "lossless",
        "rate = '20mbit'\ndelay = '10ms'\nqueue = '1bdp'",
    );
    ends.write_file("kinds = ['iperf3']\nrate = '100mbit'\nbytes_a_day = '2GB'");
    ends.respond();
    let found = |most: &str| {
        let words = ["--udp", "--lossless", "--duration", "1s", "--rate", most];
        let output = ends.asking("iperf3", "a", &words).output().unwrap();
        let outcome: Value = serde_json::from_slice(&output.stdout).unwrap();
        println!("{outcome}");
        outcome["values"].clone()
    };
    // A busy host loses packets itself.
    let long = Duration::from_secs(180);
    let values = until_within(long, "the rate", || {
        let values = found("100mbit");
        let bps = |name: &str| values[name][0].as_f64();
        let is_right = bps("lossless_rate").is_some_and(|bps| (17e6..20.5e6).contains(&bps));
        is_right.then_some(values)
    });
    assert!(values["lossy_rate"][0].as_f64() > values["lossless_rate"][0].as_f64());
    until_within(long, "a lower bound", || {
        let bps = found("5mbit")["lossless_rate_at_least"][0].as_f64()?;
        (4.8e6..5.2e6).contains(&bps).then_some(())
    });
}

/// Whether anybody listens for iperf3 at `b`.
fn listens(ends: &Ends) -> bool {
    let listening = ["ss", "-Hltn", "sport = :5201"];
    !ends.lab.output("b", &listening).trim().is_empty()
}

#[test]
fn a_server_is_lent_only_to_who_may_within_limits() {
    let Some(_alone) = alone() else { return };
    let mut ends = Ends::new("lent");
    let refused = |ends: &Ends, more: &[&str], why: &str| {
        let output = ends.asking("iperf3", "a", more).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains(why), "{said}");
    };
    ends.write_file("");
    ends.respond();
    refused(&ends, &[], "tests of the kind iperf3 are not answered");
    ends.end(Signal::TERM);
    ends.write_file("kinds = ['iperf3']\nduration = '5s'\nrate = '20mbit'\nbytes_a_day = '50MB'");
    ends.respond();
    refused(&ends, &["--duration", "6s"], "lasts 5 s at most");
    refused(&ends, &["--rate", "30mbit"], "lasts 5 s at most");
    refused(
        &ends,
        &["--rate", "30mbit", "--duration", "5s"],
        "a test sends 20 Mb/s at most",
    );
    // Who does not know the password is not served, and costs the peer nothing.
    let (key, trust) = (Key::read(&ends.path("a")).unwrap(), ends.path("hosts"));
    let whom = Whom {
        host: &ends.lab.address("b"),
        port: PORT,
        key: &key,
        trust: &trust,
        trust_option: "",
    };
    let server = Server {
        duration_us: 5_000_000,
        rate_bps: Some(10_000_000),
        patience_us: 0,
    };
    let lent = ends.lab.on("a", || lend(&whom, server)).unwrap();
    fs::write(
        ends.path("key.pem"),
        pem("PUBLIC KEY", &lent.served.public_key),
    )
    .unwrap();
    let client = |password: &str| {
        let (host, key) = (ends.lab.address("b"), ends.text("key.pem"));
        let user = &*lent.served.user;
        let words = [
            "iperf3",
            "--client",
            &host,
            "--time",
            "1",
            "--username",
            user,
            "--bitrate",
            "5M",
            "--rsa-public-key-path",
            &key,
        ];
        let mut client = ends.lab.command("a", &words);
        let output = client.env("IPERF3_PASSWORD", password).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(said).unwrap())
    };
    let (is_served, said) = client("guessed");
    assert!(!is_served && said.contains("authorization"), "{said}");
    let (is_served, said) = client(&lent.served.password);
    assert!(is_served, "{said}");
    drop(lent);
    until("the server to end", || (!listens(&ends)).then_some(()));
    let ended = ends.event("ended", |event| event["kind"] == "iperf3");
    let bytes = ended["bytes"].as_f64().unwrap();
    assert!((100e3..1.5e6).contains(&bytes), "{ended}");
    // Who goes away takes the server with it.
    let mut gone = ends.asking("iperf3", "a", &["--duration", "5s"]);
    let mut gone = gone.stdout(Stdio::null()).spawn().unwrap();
    until("a server", || listens(&ends).then_some(()));
    gone.kill().unwrap();
    gone.wait().unwrap();
    until("the server to end", || (!listens(&ends)).then_some(()));
    // A port that somebody else has is said.
    let other = ["iperf3", "--server", "--one-off", "--port", "5201"];
    let mut other = ends
        .lab
        .command("b", &other)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    until("another server", || listens(&ends).then_some(()));
    let before = ends.used()["bytes"].clone();
    refused(&ends, &["--duration", "1s"], "port 5201");
    assert_eq!(
        ends.used()["bytes"],
        before,
        "what never began costs nothing"
    );
    other.kill().unwrap();
    other.wait().unwrap();
}

/// Trains and data of two tests would be taken for the path's.
#[test]
fn tests_that_load_the_path_wait_for_one_another() {
    let Some(_alone) = alone() else { return };
    let mut ends = Ends::over("turns", "rate = '50mbit'\ndelay = '10ms'\nqueue = '1bdp'");
    let (second, address) = (ends.key("stranger"), ends.lab.address("a"));
    let kinds = "kinds = ['iperf3', 'rate', 'echo']\nrate = '100mbit'\nbytes_a_day = '2GB'";
    let peer = format!("[[peer]]\nname = 'c'\nprefix = '{address}'\nkey = '{second}'\n{kinds}");
    ends.write_file(&format!("{kinds}\n{peer}"));
    ends.respond();
    let mut first = ends.asking("iperf3", "a", &["--duration", "15s", "--rate", "1mbit"]);
    let mut first = first.stdout(Stdio::null()).spawn().unwrap();
    ends.event("began", |event| event["name"] == "a");
    // What loads nothing does not wait.
    let echo = ends
        .asking("echo", "stranger", &["--duration", "1s"])
        .output()
        .unwrap();
    assert!(echo.status.success(), "{echo:?}");
    let hasty = ["--duration", "1s", "--patience", "0s"];
    let output = ends.asking("rate", "stranger", &hasty).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("another test loads its path"), "{said}");
    // Who has gone while it waited keeps nobody away, not itself either.
    let gone = ends.asking("iperf3", "stranger", &["--patience", "60s"]);
    let mut gone = { gone }.stdout(Stdio::null()).spawn().unwrap();
    thread::sleep(Duration::from_secs(1));
    gone.kill().unwrap();
    gone.wait().unwrap();
    let patient = ["--duration", "1s", "--patience", "60s"];
    until("its turn", || {
        let output = ends.asking("iperf3", "stranger", &patient).output();
        output.unwrap().status.success().then_some(())
    });
    assert!(first.wait().unwrap().success());
    ends.event("ended", |event| {
        event["name"] == "c" && event["kind"] == "iperf3"
    });
    let said = ends
        .responder
        .as_ref()
        .unwrap()
        .said
        .lock()
        .unwrap()
        .clone();
    let loads = said.iter().filter(|event| event["kind"] == "iperf3");
    let order: Vec<_> = loads
        .map(|event| (&event["event"], &event["name"]))
        .collect();
    let wanted = [
        ("began", "a"),
        ("ended", "a"),
        ("began", "c"),
        ("ended", "c"),
    ];
    let wanted = wanted.map(|(event, name)| (json!(event), json!(name)));
    let wanted: Vec<_> = wanted.iter().map(|(event, name)| (event, name)).collect();
    assert_eq!(order, wanted);
}

/// Nor does a test of the daemon beside a responder load what that one's test loads.
#[test]
fn a_daemon_and_a_responder_of_one_host_wait_for_one_another() {
    let Some(_alone) = alone() else { return };
    let mut ends = Ends::over("leases", "rate = '50mbit'\ndelay = '10ms'\nqueue = '1bdp'");
    let (began, end) = (ends.path("began"), ends.path("end"));
    let script = format!(
        "touch {}; until [ -e {} ]; do sleep 0.05; done; echo {{}}",
        began.display(),
        end.display()
    );
    let test = format!(
        "[[test]]\nname = 'holds'\ntool = 'program'\nevery = '168h'\nduration = '1s'\nresource = 'wan'\n\
         run = ['sh', '-c', '{script}']\nvalues.x = {{ field = 'x', unit = 'ms' }}\n"
    );
    ends.write_file(&format!(
        "kinds = ['iperf3']\nrate = '100mbit'\nbytes_a_day = '2GB'\n{test}"
    ));
    let daemon = Daemon::start_in(Some(&ends.lab.namespace("b")), "[archive]\n");
    fs::copy(ends.path("measure.toml"), daemon.path("measure.toml")).unwrap();
    daemon.hang_up();
    let status = || daemon.json(&["status"])["measure"].clone();
    until("the file", || (status()["tests"] == 1).then_some(()));
    ends.respond();
    let asks = |more: &[&str]| {
        let words = [&["--duration", "1s", "--rate", "1mbit"], more].concat();
        let output = ends.asking("iperf3", "a", &words).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    thread::scope(|scope| {
        scope.spawn(|| daemon.ask(&["measure", "now", "holds"]));
        until("its beginning", || began.exists().then_some(()));
        let said = asks(&["--patience", "0s"]);
        assert!(said.contains("another test loads its path"), "{said}");
        fs::write(&end, "").unwrap();
    });
    let said = asks(&["--patience", "20s"]);
    assert!(said.contains("goodput"), "{said}");
    // The other way round, until the responder is killed.
    fs::remove_file(&began).unwrap();
    let long = ["--duration", "30s", "--rate", "1mbit"];
    let mut first = ends.asking("iperf3", "a", &long);
    let mut first = first.stdout(Stdio::null()).spawn().unwrap();
    until("a server", || listens(&ends).then_some(()));
    thread::scope(|scope| {
        scope.spawn(|| daemon.ask(&["measure", "now", "holds"]));
        until("the test", || {
            let running = status()["running"].to_string();
            running.contains("holds").then_some(())
        });
        // Ten times as long as it waits between two looks.
        thread::sleep(Duration::from_secs(1));
        assert!(!began.exists(), "both load");
        ends.end(Signal::KILL);
        until("its beginning", || began.exists().then_some(()));
    });
    assert!(!first.wait().unwrap().success());
}

/// Of the keys that a test of throughput needs.
#[test]
fn who_is_killed_during_a_test_leaves_no_file() {
    let Some(_alone) = alone() else { return };
    let mut ends = Ends::over("files", "rate = '50mbit'\ndelay = '10ms'\nqueue = '1bdp'");
    ends.write_file("kinds = ['iperf3']\nrate = '100mbit'\nbytes_a_day = '2GB'");
    ends.respond();
    let mut asking = ends.asking("iperf3", "a", &["--duration", "30s", "--rate", "1mbit"]);
    let mut asking = asking.stdout(Stdio::null()).spawn().unwrap();
    until("the client", || {
        let sends = ["ss", "-Htn", "dport = :5201"];
        let connections = ends.lab.output("a", &sends);
        connections.contains("ESTAB").then_some(())
    });
    asking.kill().unwrap();
    asking.wait().unwrap();
    ends.end(Signal::KILL);
    let left: Vec<_> = fs::read_dir(ends.path("tmp")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// The first run in the archive for which `is_it`.
fn archived(daemon: &Daemon, is_it: impl Fn(&Value) -> bool) -> Option<Value> {
    let output = Command::new(FATPATH)
        .args(["archive", "query", "--json", "--kind", "test", "--archive"])
        .arg(daemon.path("archive"))
        .output()
        .unwrap();
    // Until the daemon has made an archive there is an error to read.
    let lines = output.status.success().then_some(output.stdout)?;
    let lines = String::from_utf8(lines).unwrap();
    let runs = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    runs.into_iter().find(is_it)
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
    assert!(faster.contains("a test sends 20"), "{faster}");
    // 20 datagrams are 2,240 bytes; the responder is killed while they are on their way.
    let mut asking = ends.echo_as("a", &["--duration", "2s"]);
    let mut asking = asking.spawn().unwrap();
    ends.event("began", |_| true);
    let twice = ends.refused(&["--duration", "1s"]);
    assert!(!twice.is_empty(), "one test at a time");
    ends.end(Signal::KILL);
    // Whoever ends a test leaves no loss behind.
    assert!(!asking.wait().unwrap().success());
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

/// Also of a key that was stolen, and has been replaced under the name of its peer.
#[test]
fn who_is_no_peer_any_more_has_no_test_any_more() {
    let Some(_alone) = alone() else { return };
    let mut ends = Ends::new("replaced");
    ends.write_file("");
    ends.respond();
    let mut asking = ends.echo_as("a", &["--duration", "60s"]);
    let mut asking = asking.spawn().unwrap();
    ends.event("began", |_| true);
    let file = fs::read_to_string(ends.path("measure.toml")).unwrap();
    let replaced = file.replace(&ends.key("a"), &ends.key("stranger"));
    fs::write(ends.path("measure.toml"), replaced).unwrap();
    ends.signal(Signal::HUP);
    ends.event("ended", |_| true);
    assert!(!asking.wait().unwrap().success());
}

#[test]
fn a_test_that_cannot_begin_costs_nothing() {
    let Some(_alone) = alone() else { return };
    let mut ends = Ends::new("begin");
    ends.write_file("");
    ends.respond();
    let bind = || UdpSocket::bind(("0.0.0.0", PORT)).unwrap();
    let taken = ends.lab.on("b", bind);
    assert!(!ends.echo(&["--duration", "1s"]).status.success());
    ends.event("ended", |_| true);
    let used = ends.used();
    assert_eq!((&used["tests"], &used["bytes"]), (&json!(1), &json!(0)));
    drop(taken);
    ends.measured(&["--duration", "1s"]);
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
    let refused = |why: &str| {
        let output = ends.respond_command().output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains(why), "{said}");
    };
    fs::write(ends.path("measure.toml"), "# nobody\n").unwrap();
    refused("no port is opened");
    ends.write_file("");
    fs::set_permissions(ends.path("measure.toml"), Permissions::from_mode(0o666)).unwrap();
    refused("may be written by other users");
}
