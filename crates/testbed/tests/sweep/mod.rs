// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sweep of a test in the simulator, and the folders that `fatpath sim` writes of it.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::bench::program;

/// A folder with a scenario, gone with the test.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(test: &str, scenario: &str) -> Folder {
        let name = format!("fatpath-sim-{test}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("x.toml"), scenario).unwrap();
        Folder(folder)
    }

    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(program());
        command
            .args(arguments.split_whitespace())
            .current_dir(&self.0)
            .stdin(Stdio::null());
        command
    }

    pub fn output(&self, arguments: &str) -> Output {
        self.command(arguments).output().unwrap()
    }

    pub fn refused(&self, arguments: &str) -> String {
        let output = self.output(arguments);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        String::from_utf8(output.stderr).unwrap()
    }

    /// All files but the history, whose lines stand in the order in which runs ended.
    pub fn results(&self, out: &str) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = self.files(out);
        files.remove(Path::new("history.jsonl"));
        files
    }

    pub fn files(&self, out: &str) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        let folder = self.0.join(out);
        read_into(&mut files, &folder, Path::new(""));
        files
    }

    pub fn rows(&self, out: &str) -> Vec<Value> {
        let text = fs::read(self.0.join(out).join("results.json")).unwrap();
        serde_json::from_slice(&text).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn read_into(files: &mut BTreeMap<PathBuf, Vec<u8>>, folder: &Path, part: &Path) {
    for entry in fs::read_dir(folder.join(part)).unwrap() {
        let path = part.join(entry.unwrap().file_name());
        match folder.join(&path).is_dir() {
            true => read_into(files, folder, &path),
            false => {
                files.insert(path.clone(), fs::read(folder.join(&path)).unwrap());
            }
        }
    }
}

/// Of pictures, a difference is told by its file.
pub fn assert_alike(one: &BTreeMap<PathBuf, Vec<u8>>, other: &BTreeMap<PathBuf, Vec<u8>>) {
    let names = one.keys().chain(other.keys());
    let differ = |name: &&PathBuf| one.get(*name) != other.get(*name);
    assert_eq!(
        names.filter(differ).collect::<Vec<_>>(),
        Vec::<&PathBuf>::new()
    );
}

pub fn said(output: &Output) -> String {
    format!(
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// A link with random loss only (its queue holds all that is sent), and one flow of every source.
pub const SWEEP: &str = r#"
name = "x"
[hosts.a]
sysctl = { "net.ipv4.tcp_congestion_control" = "reno" }
[hosts.b]
sysctl = { "net.ipv4.tcp_congestion_control" = "reno" }
[links.wan]
between = ["a", "b"]
rate = "5mbit"
delay = "10ms"
loss = "{loss}"
queue = "10MB"
[vary]
loss = ["0%", "0.1%", "1%"]
[experiment]
repeats = 2
observe = true
warm_up = 1
[[program]]
host = "b"
run = "iperf3 -s -1"
ready = { port = 5201 }
[[program]]
host = "a"
run = "iperf3 -c {b} -t 2 -C fp_aimd --json"
result = "iperf3"
[[flow]]
from = "a"
to = "b"
source = "chunks"
chunk = "20kB"
every = "200ms"
count = 5
[[flow]]
from = "b"
to = "a"
source = "web"
users = 5
mean_object = "5kB"
think = "300ms"
stop = "2s"
[[flow]]
from = "a"
to = "b"
source = "udp"
rate = "200kbit"
start = "500ms"
stop = "2s"
"#;
