// SPDX-License-Identifier: MIT OR Apache-2.0
//! The archive of a daemon: flows are there once, also when the daemon is killed; while the store is away, events
//! wait and tuning goes on.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use fatpath_api::endpoint::{GetArchive, GetLatest, GetPathHistory};
use fatpath_api::{ArchiveQuery, HistoryInterval, LatestQuery, PathHistoryQuery};
use fatpath_daemon::client;
use fatpath_harness::cluster::{Cluster, PASSWORD, TLS_ADDRESS, TLS_NAME};
use serde_json::Value;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;
use support::{Daemon, alone, until};

const RULE: &str = "[[rule]]\nname = 'far'\ndestination = ['127.0.9.0/24']\nsend_buffer = '1MiB'\n";

fn policy() -> String {
    format!("[archive]\nevery_flow_from = 0\n{RULE}")
}

/// A tuned flow that has ended; its address here.
fn ended_flow() -> SocketAddr {
    let listener = TcpListener::bind("127.0.9.1:0").unwrap();
    let here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let _there = listener.accept().unwrap();
    here.local_addr().unwrap()
}

/// Archived events of a kind.
fn events(daemon: &Daemon, kind: &str) -> Vec<Value> {
    let archive = daemon.path("archive");
    let archive = archive.to_str().unwrap();
    let arguments = [
        "archive",
        "query",
        "--json",
        "--kind",
        kind,
        "--archive",
        archive,
    ];
    let output = Command::new(env!("CARGO_BIN_EXE_fatpath"))
        .args(arguments)
        .output()
        .unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// How many archived flows had this address here.
fn flows_of(daemon: &Daemon, local: SocketAddr) -> usize {
    let local = local.to_string();
    let flows = events(daemon, "flow");
    flows
        .iter()
        .filter(|flow| flow["body"]["local"] == *local)
        .count()
}

/// How many flows the daemon has in its memory as the newest of their path, with this address here.
fn latest_flows_of(daemon: &Daemon, local: SocketAddr) -> usize {
    let output = daemon.ask(&["archive", "latest", "127.0.9.1", "--kind", "flow", "--json"]);
    let lines = String::from_utf8(output.stdout).unwrap();
    let flows = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let of_local = |flow: &Value| flow["body"]["local"] == *local.to_string();
    flows.filter(of_local).count()
}

fn status(daemon: &Daemon) -> Value {
    daemon.json(&["status"])["archive"].clone()
}

#[test]
fn a_flow_is_archived_once_whatever_ends_the_daemon() {
    let Some(_alone) = alone() else { return };
    let often = "[archive]\nhost_interval = '1s'";
    let mut daemon = Daemon::start(&policy().replace("[archive]", often));
    let first = ended_flow();
    until("the flow", || (flows_of(&daemon, first) > 0).then_some(()));
    let flows = events(&daemon, "flow");
    assert_eq!(
        (&flows[0]["rule"], &flows[0]["peer"]),
        (&"far".into(), &"127.0.9.1".into())
    );
    assert_eq!(events(&daemon, "decision")[0]["name"], "policy.applied");
    daemon.kill_9();
    // It ends while no daemon runs: the next one hears of it.
    let second = ended_flow();
    daemon.restart();
    until("the second flow", || {
        (flows_of(&daemon, second) > 0).then_some(())
    });
    assert_eq!(
        (flows_of(&daemon, first), flows_of(&daemon, second)),
        (1, 1)
    );
    let load = until("the host's load", || {
        ended_flow();
        let mut loads = events(&daemon, "sample").into_iter();
        loads.find(|load| load["body"]["interfaces"]["lo"]["received_bytes"].is_u64())
    });
    assert_eq!(load["name"], "host.load");
    let output = daemon.ask(&["status"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("archive") && text.contains("1 day"), "{text}");
}

#[test]
fn the_archive_answers_on_the_socket_that_only_reads() {
    let Some(_alone) = alone() else { return };
    let daemon = Daemon::start(&policy());
    let locals = [ended_flow(), ended_flow(), ended_flow()];
    for local in locals {
        until("the flow", || (flows_of(&daemon, local) > 0).then_some(()));
    }
    let socket = daemon.path("run/view.sock");
    let mut query = ArchiveQuery {
        prefix: Some("127.0.9.0/24".into()),
        kinds: Some("flow".into()),
        limit: Some(2),
        ..ArchiveQuery::default()
    };
    let ask = |query: &ArchiveQuery| client::ask::<GetArchive>(&socket, query);
    let first = ask(&query).unwrap().unwrap();
    let next = first.next.unwrap();
    (query.until_us, query.skip) = (Some(next.until_us), Some(next.skip));
    let second = ask(&query).unwrap().unwrap();
    let pages = second.events.iter().chain(&first.events);
    let found: Vec<&Value> = pages.map(|event| &event.body["local"]).collect();
    let locals = locals.map(|local| Value::from(local.to_string()));
    assert_eq!(found, locals.each_ref());
    let mut latest = LatestQuery {
        prefix: Some("127.0.9.0/24".into()),
        ..LatestQuery::default()
    };
    let ask_latest = |query: &LatestQuery| client::ask::<GetLatest>(&socket, query);
    let page = ask_latest(&latest).unwrap().unwrap();
    let (value, last) = (&page.values[0], &locals[2]);
    assert_eq!((value.of.as_str(), page.values.len()), ("127.0.9.0/24", 1));
    assert_eq!(
        (&value.body["local"], value.name.as_str()),
        (last, "flow.end")
    );
    // The policy and this host's load are of no path.
    (latest.prefix, latest.limit) = (None, Some(1));
    let page = ask_latest(&latest).unwrap().unwrap();
    assert_eq!((page.values[0].of.as_str(), page.values.len()), ("", 1));
    assert!(page.next.is_some());
    latest.limit = Some(5_000);
    let refused = ask_latest(&latest).unwrap_err().to_string();
    assert!(refused.contains("limit is 1 to 1000"), "{refused}");
    query.limit = Some(5_000);
    let refused = ask(&query).unwrap_err().to_string();
    assert!(refused.contains("limit is 1 to 1000"), "{refused}");
    let of_path = PathHistoryQuery {
        prefix: "127.0.9.1".into(),
        by: HistoryInterval::Hour,
        since_us: None,
        until_us: None,
    };
    let history = client::ask::<GetPathHistory>(&socket, &of_path);
    let history = history.unwrap().unwrap();
    let flows = history.intervals.iter();
    let flows = flows.map(|interval| interval.measures["srtt_us"].n);
    assert_eq!(flows.sum::<u64>(), 3);
    assert_eq!(history.events[0].name, "policy.applied");
}

#[test]
fn while_the_store_is_away_events_wait_and_flows_are_tuned() {
    let Some(_alone) = alone() else { return };
    let daemon = Daemon::idle(&policy());
    let today = humantime::format_rfc3339(SystemTime::now()).to_string();
    let database = daemon.path(&format!("archive/{}.db", &today[..10]));
    // Nobody can open a folder as a database.
    std::fs::create_dir_all(&database).unwrap();
    let mut daemon = daemon;
    daemon.restart();
    let local = ended_flow();
    until("the store to be missed", || {
        status(&daemon)["store_error"].as_str().map(drop)
    });
    until("the flow in the spool", || {
        (status(&daemon)["spool_events"].as_u64()? >= 2).then_some(())
    });
    // The memory has it, and of two flows of one path the newer one.
    assert_eq!(latest_flows_of(&daemon, local), 1);
    let newer = ended_flow();
    until("the newer flow", || {
        (latest_flows_of(&daemon, newer) == 1).then_some(())
    });
    assert_eq!(latest_flows_of(&daemon, local), 0);
    assert_eq!(
        daemon.stderr().matches("archive: the store").count(),
        1,
        "{}",
        daemon.stderr()
    );
    std::fs::remove_dir(&database).unwrap();
    until("the flow in the store", || {
        (flows_of(&daemon, local) == 1).then_some(())
    });
    until("the store's return", || {
        status(&daemon)["store_error"].is_null().then_some(())
    });
    // What the daemon said of it is archived, too.
    until("the error in the archive", || {
        let mut said = events(&daemon, "event").into_iter();
        said.find(|event| {
            let message = event["body"]["message"].as_str().unwrap_or_default();
            event["name"] == "log.error" && message.starts_with("archive: the store: ")
        })
    });
}

#[test]
fn a_site_has_the_flows_of_a_host_once_also_over_a_crash_of_its_server() {
    let Some(_alone) = alone() else { return };
    let Some(mut cluster) = Cluster::for_test() else {
        return;
    };
    let (url, file) = (cluster.url(), cluster.password_file("a wrong one").unwrap());
    let server = format!("url = '{url}'\npassword_file = '{}'", file.display());
    let daemon = Daemon::start(&policy().replace("[archive]", &format!("[archive]\n{server}")));
    cluster
        .psql("site", "ALTER DATABASE site SET log_statement = 'all'")
        .unwrap();
    let flows = flows_at_site;
    let first = ended_flow();
    until("the wrong password to be said", || {
        let said = status(&daemon)["store_error"].as_str()?.to_owned();
        said.contains("password authentication failed")
            .then_some(())
    });
    // The daemon reads it for each connection.
    std::fs::rename(cluster.password_file(PASSWORD).unwrap(), &file).unwrap();
    until("the flow at the site", || {
        (flows(&cluster, first) == "1").then_some(())
    });
    let said = cluster.log();
    let (batches, sizes) = (
        said.matches("COPY incoming").count(),
        said.matches("pg_total_relation_size").count(),
    );
    assert!(
        batches >= 2 && sizes < batches,
        "{batches} batches, {sizes} times all sizes"
    );
    cluster.crash();
    let second = ended_flow();
    until("the server to be missed", || {
        status(&daemon)["store_error"].as_str().map(drop)
    });
    assert_eq!(
        latest_flows_of(&daemon, second),
        1,
        "from memory, without the server"
    );
    cluster.run().unwrap();
    until("the second flow at the site", || {
        (flows(&cluster, second) == "1").then_some(())
    });
    assert_eq!(flows(&cluster, first), "1");
    // A later fatpath brings the tables forward while this one is connected.
    cluster
        .psql(
            "site",
            "UPDATE fatpath.schema_version SET version = version + 1",
        )
        .unwrap();
    let third = ended_flow();
    until("the later version to be said", || {
        let said = status(&daemon)["store_error"].as_str()?.to_owned();
        said.contains("update fatpath here").then_some(())
    });
    until("the third flow in the spool", || {
        (status(&daemon)["spool_events"].as_u64()? >= 1).then_some(())
    });
    assert_eq!(flows(&cluster, third), "0");
    cluster
        .psql(
            "site",
            "UPDATE fatpath.schema_version SET version = version - 1",
        )
        .unwrap();
    until("the third flow at the site", || {
        (flows(&cluster, third) == "1").then_some(())
    });
    let socket = daemon.path("run/view.sock");
    let query = ArchiveQuery {
        kinds: Some("flow".into()),
        ..ArchiveQuery::default()
    };
    let page = client::ask::<GetArchive>(&socket, &query).unwrap().unwrap();
    assert_eq!(page.events.len(), 3);
    let arguments = ["archive", "query", "--json", "--kind", "flow"];
    let of_url = ["--url", &url, "--password-file"].map(Path::new);
    let of_policy = [Path::new("--policy"), &daemon.path("policy.toml")];
    for place in [[&of_url[..], &[&file]].concat(), of_policy.to_vec()] {
        let mut query = Command::new(support::FATPATH);
        let output = query.args(arguments).args(&place).output().unwrap();
        let lines = String::from_utf8(output.stdout).unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(lines.lines().count(), 3, "{place:?}: {said}");
    }
    let said = daemon.stderr();
    assert!(
        !said.contains(PASSWORD) && !said.contains("a wrong one"),
        "{said}"
    );
}

/// How many flows of a site's store had this address at the host, as the server says it.
fn flows_at_site(cluster: &Cluster, local: SocketAddr) -> String {
    let counted = format!("SELECT count(*) FROM fatpath.flow WHERE local = '{local}'");
    cluster.psql("site", &counted).unwrap_or_default()
}

/// Each batch takes as long as on a disk that is slow.
const SLOW: &str = "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(2); RETURN NULL; END $$; \
     CREATE TRIGGER slow AFTER INSERT ON fatpath.record FOR EACH STATEMENT EXECUTE FUNCTION slow()";

/// The transaction in which the server writes a batch, slowly.
fn batch_under_way(cluster: &Cluster) -> Option<String> {
    let begin = "SELECT xact_start FROM pg_stat_activity WHERE application_name = 'fatpath' AND wait_event = 'PgSleep'";
    let begin = cluster.psql("site", begin).unwrap();
    (!begin.is_empty()).then_some(begin)
}

#[test]
fn a_slow_store_holds_nothing_up_and_has_all_once() {
    let Some(_alone) = alone() else { return };
    let Some(cluster) = Cluster::for_test() else {
        return;
    };
    let (url, file) = (cluster.url(), cluster.password_file(PASSWORD).unwrap());
    let server = format!("url = '{url}'\npassword_file = '{}'", file.display());
    let mut daemon = Daemon::start(&policy().replace("[archive]", &format!("[archive]\n{server}")));
    let mut locals = vec![ended_flow()];
    until("the flow at the site", || {
        (flows_at_site(&cluster, locals[0]) == "1").then_some(())
    });
    cluster.psql("site", SLOW).unwrap();
    // While one batch is written a flow ends, is known, and the daemon says how it fares.
    until("answers while a batch is written", || {
        let before = batch_under_way(&cluster);
        let local = ended_flow();
        locals.push(local);
        until("the flow in the memory", || {
            (latest_flows_of(&daemon, local) == 1).then_some(())
        });
        let stored = status(&daemon)["stored"].as_u64();
        let is_same = before.is_some() && before == batch_under_way(&cluster);
        (is_same && stored > Some(0)).then_some(())
    });
    // A daemon that is killed meanwhile leaves a batch that nobody commits. What it has not in its spool yet is lost.
    let taken = |daemon: &Daemon| {
        let status = status(daemon);
        status["stored"].as_u64().unwrap() + status["spool_events"].as_u64().unwrap()
    };
    until("a batch under way", || {
        let before = taken(&daemon);
        locals.push(ended_flow());
        until("the flow in the spool", || {
            (taken(&daemon) > before).then_some(())
        });
        batch_under_way(&cluster)
    });
    daemon.kill_9();
    daemon.restart();
    locals.push(ended_flow());
    for local in &locals {
        until("a flow at the site", || {
            (flows_at_site(&cluster, *local) == "1").then_some(())
        });
    }
    assert!(status(&daemon)["store_error"].is_null());
    let all = "SELECT count(*), count(DISTINCT local) FROM fatpath.flow";
    let all = cluster.psql("site", all).unwrap();
    assert_eq!(all, format!("{0}|{0}", locals.len()));
}

/// Stores a log's line, and asks for what is stored: what is printed, or why not.
fn import_and_query(url: &str, password: &Path, trusted: Option<&Path>) -> Result<String, String> {
    let log = password.with_file_name("events.jsonl");
    let line = r#"{"timestamp":"2026-11-23T00:00:00Z","event":"derived.busy"}"#;
    std::fs::write(&log, format!("{line}\n")).unwrap();
    let ask = |arguments: &[&str]| {
        let mut fatpath = Command::new(support::FATPATH);
        fatpath.arg("archive").args(arguments);
        fatpath
            .args(["--url", url, "--password-file"])
            .arg(password);
        fatpath
            .env_remove("SSL_CERT_DIR")
            .env_remove("SSL_CERT_FILE");
        if let Some(file) = trusted {
            fatpath.env("SSL_CERT_FILE", file);
        }
        let output = fatpath.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        match output.status.success() {
            true => Ok(text(output.stdout)),
            false => Err(text(output.stderr)),
        }
    };
    ask(&["import", log.to_str().unwrap()])?;
    ask(&["query", "--since", "2026-11-01", "--csv"])
}

#[test]
fn a_server_elsewhere_is_talked_to_with_tls_and_must_be_who_it_says() {
    let Some(mut cluster) = Cluster::for_test() else {
        return;
    };
    let authority = cluster.listen_with_tls().unwrap();
    let password = cluster.password_file(PASSWORD).unwrap();
    let url = |name: &str, option: &str| {
        format!("postgres://fatpath@{name}/site?hostaddr={TLS_ADDRESS}{option}")
    };
    let ask = |name, option, trusted| import_and_query(&url(name, option), &password, trusted);
    let trusted = Some(&*authority);
    let stored = ask(TLS_NAME, "", trusted).unwrap();
    assert!(stored.contains("derived.busy"), "{stored}");
    for (name, option, trusted, why) in [
        (TLS_NAME, "", None, "UnknownIssuer"),
        ("other.test", "", trusted, "not valid for name"),
        (TLS_NAME, "&sslmode=disable", trusted, "no encryption"),
        ("localhost", "", trusted, "no encryption"),
        (
            "localhost",
            "&sslmode=require",
            trusted,
            "not valid for name",
        ),
    ] {
        let refused = ask(name, option, trusted).unwrap_err();
        assert!(refused.contains(why), "{name} {option}: {refused}");
    }
}

#[test]
fn without_the_section_nothing_is_archived() {
    let Some(_alone) = alone() else { return };
    let daemon = Daemon::start(RULE);
    ended_flow();
    until("the flow's line", || {
        (!daemon.log().is_empty()).then_some(())
    });
    assert!(status(&daemon).is_null());
    assert!(!daemon.path("archive").exists());
}
