// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces that the policy asks for: files of chosen flows, within their bounds, until another policy takes them away.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::Value;
use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::lent::Lent;
use support::{Daemon, alone, cgroup_root, until};

/// Connections over loopback, to a port of their own.
struct Flows {
    port: u16,
    listener: TcpListener,
    pairs: Vec<(TcpStream, TcpStream)>,
}

impl Flows {
    fn open(address: &str, count: usize) -> Flows {
        let listener = TcpListener::bind((address, 0)).unwrap();
        let mut flows = Flows {
            port: listener.local_addr().unwrap().port(),
            listener,
            pairs: Vec::new(),
        };
        flows.add(count);
        flows
    }

    fn add(&mut self, count: usize) {
        let to = self.listener.local_addr().unwrap();
        self.pairs.extend((0..count).map(|_| {
            let here = TcpStream::connect(to).unwrap();
            (here, self.listener.accept().unwrap().0)
        }));
    }

    /// Each message is acknowledged: time for a sample.
    fn exchange(&mut self, messages: usize) {
        for _ in 0..messages {
            for (here, there) in &mut self.pairs {
                here.write_all(&[0; 1000]).unwrap();
                there.read_exact(&mut [0; 1000]).unwrap();
            }
        }
    }
}

fn policy(folder: &Path, port: u16, more: &str) -> String {
    format!(
        "[instruments]\ninterval = '1ms'\n\
         [[rule]]\nname = 'path'\ndestination = ['127.0.9.2']\nnotsent_lowat = 100000\n\
         [[trace]]\nname = 'chosen'\nrules = ['path']\ndestination_ports = [{port}]\n\
         folder = '{}'\n{more}\n",
        folder.display()
    )
}

const NO_TRACE: &str = "[instruments]\ninterval = '1ms'\n";

fn apply(daemon: &Daemon, policy: &str) {
    let applied = daemon.apply(policy);
    let said = String::from_utf8_lossy(&applied.stderr);
    assert!(applied.status.success(), "{said}");
}

/// The trace, as `fatpath status` has it.
fn status(daemon: &Daemon) -> Value {
    daemon.json(&["status"])["traces"][0].clone()
}

fn number(status: &Value, name: &str) -> u64 {
    status[name].as_u64().unwrap_or_default()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Once there is one, and none is unfinished.
fn finished(folder: &Path) -> Vec<PathBuf> {
    until("the last file to be finished", || {
        let files = files(folder);
        let is_finished = |file: &PathBuf| file.extension().is_some_and(|it| it == "parquet");
        let all_are = !files.is_empty() && files.iter().all(is_finished);
        all_are.then_some(files)
    })
}

#[test]
fn so_many_chosen_flows_are_written_until_the_policy_ends_it() {
    let Some(_alone) = alone() else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut chosen = Flows::open("127.0.9.2", 5);
    let mut others = Flows::open("127.0.9.2", 1);
    let policy = policy(
        dir.path(),
        chosen.port,
        "max_flows = 2\nfile_size = '1MiB'\n",
    );
    let daemon = Lent::with(&policy);
    let folder = dir.path().join("chosen");
    let before = until("samples to be written", || {
        chosen.exchange(500);
        others.exchange(500);
        let now = status(&daemon);
        (number(&now, "written") > 200 && number(&now, "flows_left_out") >= 3).then_some(now)
    });
    assert_eq!(number(&before, "flows"), 2, "{before}");
    assert_eq!(before["folder"], folder.to_str().unwrap());
    let mode = folder.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o750);
    let shown = daemon.ask(&["status"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(
        shown.contains("trace        chosen: 2 flows now"),
        "{shown}"
    );
    assert!(
        shown.contains("not traced: max_flows was reached"),
        "{shown}"
    );

    // Flows that end make place for others.
    chosen.pairs.clear();
    until("the flows to leave their places", || {
        (number(&status(&daemon), "flows") == 0).then_some(())
    });
    chosen.add(2);
    until("other flows to be traced", || {
        chosen.exchange(500);
        (number(&status(&daemon), "flows") == 2).then_some(())
    });

    apply(&daemon, NO_TRACE);
    let files = finished(&folder);
    assert_eq!(status(&daemon), Value::Null);
    // How many files there are depends on how long the samples above took.
    let flows: Vec<_> = files
        .iter()
        .flat_map(|file| fatpath_record::read(file).unwrap())
        .collect();
    let to = format!("127.0.9.2 {}", chosen.port);
    let cookies: HashSet<u64> = flows.iter().map(|flow| flow.cookie).collect();
    assert!((4..=7).contains(&cookies.len()), "{cookies:?}");
    assert!(flows.iter().all(|flow| flow.remote == to), "{flows:?}");
    let points: usize = flows.iter().map(|flow| flow.points.len()).sum();
    assert!(points as u64 >= number(&before, "written"), "{points}");

    let picture = dir.path().join("cwnd.svg");
    let drawn = Command::new(support::FATPATH)
        .args(["trace", "plot"])
        .arg(&files[0])
        .arg("--out")
        .arg(&picture)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&drawn.stderr);
    assert!(drawn.status.success(), "{said}");
    chosen.exchange(100);
    assert_eq!(finished(&folder), files, "it has ended");
}

#[test]
fn thousands_of_flows_are_no_more_than_so_many_in_the_file() {
    let Some(_alone) = alone() else { return };
    let most = getrlimit(Resource::Nofile).maximum;
    let enough = Rlimit {
        current: Some(8192),
        maximum: most.map(|most| most.max(8192)),
    };
    setrlimit(Resource::Nofile, enough).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut flows = Flows::open("127.0.9.2", 2000);
    let policy = policy(dir.path(), flows.port, "max_flows = 10\n");
    let daemon = Lent::with(&policy);
    until("every other flow to be counted", || {
        flows.exchange(1);
        let now = status(&daemon);
        assert!(number(&now, "flows") <= 10, "{now}");
        (number(&now, "flows_left_out") == 1990).then_some(())
    });
    apply(&daemon, NO_TRACE);
    let files = finished(&dir.path().join("chosen"));
    assert_eq!(fatpath_record::read(&files[0]).unwrap().len(), 10);
}

#[test]
fn a_cgroup_chooses_flows_and_so_do_those_below() {
    let Some(_alone) = alone() else { return };
    let dir = tempfile::tempdir().unwrap();
    let name = format!("fatpath-traces-{}", std::process::id());
    let root = cgroup_root();
    let inner = root.join(&name).join("inner");
    std::fs::create_dir_all(&inner).unwrap();
    let more = format!("file_size = '1MiB'\ncgroup = '/{name}'\n");
    let move_to = |group: &Path| {
        let process = std::process::id().to_string();
        std::fs::write(group.join("cgroup.procs"), process).unwrap();
    };
    move_to(&inner);
    let mut flows = Flows::open("127.0.9.2", 1);
    move_to(&root);
    let listener = TcpListener::bind("127.0.9.2:0").unwrap();
    let _other = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let any_port = policy(dir.path(), flows.port, &more);
    let any_port = any_port.replace(&format!("[{}]", flows.port), "['1-65535']");
    let daemon = Lent::with(&any_port);
    until("samples to be written", || {
        flows.exchange(2000);
        (number(&status(&daemon), "written") > 0).then_some(())
    });
    apply(&daemon, NO_TRACE);
    let files = finished(&dir.path().join("chosen"));
    let read = fatpath_record::read(&files[0]).unwrap();
    let to = format!("127.0.9.2 {}", flows.port);
    let remotes: Vec<&str> = read.iter().map(|flow| flow.remote.as_str()).collect();
    assert_eq!(remotes, [to.as_str()]);
    for folder in [&inner, &root.join(&name)] {
        std::fs::remove_dir(folder).unwrap();
    }
}

#[test]
fn so_many_files_stay_over_policies() {
    let Some(_alone) = alone() else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut flows = Flows::open("127.0.9.2", 1);
    let with = |max_flows: u32| {
        let more = format!("files = 3\nfile_size = '4MiB'\nmax_flows = {max_flows}");
        policy(dir.path(), flows.port, &more)
    };
    let policies: Vec<String> = (1..=4).map(with).collect();
    let daemon = Lent::with(NO_TRACE);
    let folder = dir.path().join("chosen");
    for policy in policies {
        // The status may still be that of the policy before: only a new file tells that this one is live.
        let before = files(&folder);
        let is_new = |file: &PathBuf| {
            !before.contains(file) && file.extension().is_some_and(|it| it == "part")
        };
        // As `systemctl reload` does it.
        daemon.write_policy(&policy);
        daemon.hang_up();
        until("a file of this policy to grow", || {
            flows.exchange(2000);
            files(&folder).iter().any(is_new).then_some(())
        });
        let files = files(&folder);
        let of_parquet = |file: &&PathBuf| !file.to_string_lossy().contains(".footer");
        assert!(files.iter().filter(of_parquet).count() <= 3, "{files:?}");
    }
    apply(&daemon, NO_TRACE);
    let files = finished(&folder);
    assert_eq!(files.len(), 2, "one more may grow: {files:?}");
    for file in files {
        assert_eq!(fatpath_record::read(&file).unwrap().len(), 1);
    }
}

/// A file system of its own, that is full soon.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(place: PathBuf) -> SmallDisk {
        std::fs::create_dir(&place).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=2M", "tmpfs"]);
        assert!(mount.arg(&place).status().unwrap().success());
        SmallDisk(place)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_under_a_trace_is_said_once_and_tracing_goes_on() {
    let Some(_alone) = alone() else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut flows = Flows::open("127.0.9.2", 1);
    let disk = SmallDisk::mount(dir.path().join("disk"));
    // Of its own: another test's daemon may have said something of a trace already.
    let daemon = Daemon::start(&policy(&disk.0, flows.port, "file_size = '1MiB'\n"));
    let mut written = |more_than: u64| {
        until("samples to be written", || {
            flows.exchange(2000);
            let now = number(&status(&daemon), "written");
            (now > more_than).then_some(now)
        })
    };
    written(0);
    let ballast = disk.0.join("ballast");
    assert!(std::fs::write(&ballast, vec![0; 4 << 20]).is_err());
    let missing = until("the full disk to be said", || {
        flows.exchange(2000);
        let now = status(&daemon);
        let missing = number(&now, "missing");
        (now["error"].is_string() && missing > 0).then_some(missing)
    });
    let said = daemon.stderr();
    let lines = said.lines().filter(|line| line.contains("trace `chosen`"));
    assert_eq!(lines.count(), 1, "{said}");
    std::fs::remove_file(&ballast).unwrap();
    let now = until("tracing to go on", || {
        flows.exchange(2000);
        let now = status(&daemon);
        now["error"].is_null().then_some(now)
    });
    assert!(number(&now, "missing") >= missing, "{now}");
    assert!(daemon.stderr().contains("written again"));
    apply(&daemon, NO_TRACE);
    let files = finished(&disk.0.join("chosen"));
    assert!(!fatpath_record::read(&files[0]).unwrap().is_empty());
}
