// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two ends on this host, one of which is `fatpath recv --listen`: their keys, what the listener says, and transfers to it.

use super::mover::*;
use super::{FATPATH, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

/// Who writes what a listener of root's takes.
pub const WRITER: &str = "nobody";
pub const WRITER_ID: u32 = 65534;

/// Bytes of a file that takes some seconds.
pub const LONG: usize = 32 << 20;

/// Two ends on this host, each with a key and a file of keys that it trusts.
pub struct Ends {
    pub folder: tempfile::TempDir,
    pub listener: Option<Listener>,
    /// A program, with arguments, that starts the listener.
    pub wrapper: Vec<String>,
}

/// A listener that runs.
pub struct Listener {
    pub process: Child,
    pub port: u16,
    pub said: Arc<Mutex<Vec<Value>>>,
}

impl Ends {
    /// They trust each other, and one listens.
    pub fn new(more: &[&str]) -> Ends {
        let mut ends = Ends::strangers();
        ends.trust("caller");
        ends.trust("host");
        ends.listen(more);
        ends
    }

    /// They have keys, and trust nobody.
    pub fn strangers() -> Ends {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let ends = Ends {
            folder,
            listener: None,
            wrapper: vec![],
        };
        for end in ["caller", "host"] {
            ends.keys(&["new", "--key", &ends.text(end)]);
        }
        fs::create_dir(ends.there()).unwrap();
        chown(ends.there(), Some(WRITER_ID), Some(WRITER_ID)).unwrap();
        ends
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        text(&self.path(name)).to_owned()
    }

    pub fn there(&self) -> PathBuf {
        self.path("into")
    }

    pub fn keys(&self, arguments: &[&str]) -> String {
        let output = Command::new(FATPATH)
            .arg("keys")
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub fn key(&self, end: &str) -> String {
        self.keys(&["show", "--key", &self.text(end)])
    }

    /// The other end trusts `whose` key.
    pub fn trust(&self, whose: &str) {
        let (key, file) = (self.key(whose), self.text(&format!("trusted-{whose}")));
        self.keys(&["trust", whose, &key, "127.0.0.1", "--trust", &file]);
    }

    pub fn listener_command(&self, trust: &Path) -> Command {
        let mut words = self.wrapper.iter().map(String::as_str).chain([FATPATH]);
        let mut command = Command::new(words.next().unwrap());
        command.args(words);
        command.args(["recv", "--listen", "127.0.0.1:0", "--json", "--into"]);
        command.arg(self.there());
        command.args(["--key", &self.text("host"), "--trust", text(trust)]);
        command
    }

    pub fn listen(&mut self, more: &[&str]) {
        let mut command = self.listener_command(&self.path("trusted-caller"));
        command.args(["--user", WRITER]).args(more);
        command.process_group(0); // what a terminal says to it, it does not say to the test
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let said = Arc::new(Mutex::new(vec![]));
        let heard = said.clone();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                heard
                    .lock()
                    .unwrap()
                    .push(serde_json::from_str(&line).unwrap());
            }
        });
        let mut listener = Listener {
            process,
            port: 0,
            said,
        };
        let address = listener.event("listening", |_| true)["address"].clone();
        let (_, port) = address.as_str().unwrap().rsplit_once(':').unwrap();
        listener.port = port.parse().unwrap();
        self.listener = Some(listener);
    }

    pub fn listener(&mut self) -> &mut Listener {
        self.listener.as_mut().unwrap()
    }

    pub fn port(&self) -> u16 {
        self.listener.as_ref().unwrap().port
    }

    /// A file, for sending.
    pub fn file(&self, bytes: usize) -> PathBuf {
        let path = self.path("file");
        fs::write(&path, content(bytes)).unwrap();
        path
    }

    pub fn send(&self, file: &Path, below: &str, more: &[&str]) -> Command {
        self.send_by("caller", file, below, more)
    }

    pub fn send_by(&self, key: &str, file: &Path, below: &str, more: &[&str]) -> Command {
        let mut command = self.command(key, "send");
        command.args([text(file), &self.place(below)]).args(more);
        command
    }

    /// What is below the listener's folder, into a folder here.
    pub fn fetch(&self, below: &str, to: &Path, more: &[&str]) -> Command {
        self.fetch_by("caller", below, to, more)
    }

    pub fn fetch_by(&self, key: &str, below: &str, to: &Path, more: &[&str]) -> Command {
        let mut command = self.command(key, "recv");
        command.args([&self.place(below), text(to)]).args(more);
        command
    }

    fn place(&self, below: &str) -> String {
        format!("fatpath://127.0.0.1:{}/{below}", self.port())
    }

    fn command(&self, key: &str, verb: &str) -> Command {
        let (key, trust) = (self.text(key), self.text("trusted-host"));
        let mut command = Command::new(FATPATH);
        command.args([verb, "--json", "--key", &key, "--trust", &trust]);
        command
    }

    /// What `send` fails with.
    pub fn refused(&self, mut send: Command) -> String {
        let output = send.output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        error_of(&output)
    }
}

pub fn error_of(output: &Output) -> String {
    report(output)["errors"][0]["message"]
        .as_str()
        .unwrap()
        .to_owned()
}

impl Listener {
    /// What it says of a kind, once it has said it.
    pub fn event(&self, kind: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        until(&format!("the listener to say {kind}"), || {
            let said = self.said.lock().unwrap();
            let mut said = said.iter();
            said.find(|event| event["event"] == kind && is_it(event))
                .cloned()
        })
    }

    pub fn end(&mut self, signal: Signal) -> Option<i32> {
        kill(self.process.id(), signal);
        self.process.wait().unwrap().code()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub fn kill(process: u32, signal: Signal) {
    kill_process(Pid::from_raw(process as i32).unwrap(), signal).unwrap();
}

pub fn started(mut command: Command) -> Child {
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// A transfer of [`LONG`] bytes that lasts some seconds, of which more has arrived than was there.
pub fn begun(ends: &Ends, file: &Path) -> Child {
    let arrived = || part_bytes(&ends.there()).map_or(0, |(_, bytes)| bytes);
    let before = arrived();
    let sender = started(ends.send(file, "", &["--limit", "100mbit"]));
    until("a part to grow", || {
        (arrived() > before + LONG as u64 / 8).then_some(())
    });
    sender
}

/// The process of a transfer, which any thread of the listener may have started.
pub fn called_by_thread(listener: u32) -> u32 {
    until("the process of a transfer", || {
        let threads = fs::read_dir(format!("/proc/{listener}/task")).unwrap();
        threads.flatten().find_map(|thread| {
            let text = fs::read_to_string(thread.path().join("children")).ok()?;
            text.split_whitespace().next()?.parse().ok()
        })
    })
}
