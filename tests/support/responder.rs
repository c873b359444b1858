// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two hosts of a lab, one of which answers tests of the other (`fatpath measure respond`): their keys, the file, and what both say.

use super::{FATPATH, Lab, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

pub const PORT: u16 = 4748;
pub const WITHIN: Duration = Duration::from_secs(20);

/// Host `a` asks, host `b` answers; each has a key.
pub struct Ends {
    pub lab: Lab,
    pub responder: Option<Responder>,
}

pub struct Responder {
    pub process: Child,
    pub said: Arc<Mutex<Vec<Value>>>,
}

impl Ends {
    pub fn new(name: &str) -> Ends {
        Ends::over(name, "rate = '50mbit'\ndelay = '10ms'\nqueue = '1bdp'")
    }

    pub fn over(name: &str, link: &str) -> Ends {
        let lab = Lab::up(name, link);
        fs::set_permissions(lab.scratch(), Permissions::from_mode(0o777)).unwrap();
        let ends = Ends {
            lab,
            responder: None,
        };
        fs::create_dir(ends.path("tmp")).unwrap();
        fs::set_permissions(ends.path("tmp"), Permissions::from_mode(0o777)).unwrap();
        for end in ["a", "b", "stranger"] {
            ends.keys(&["new", "--key", &ends.text(end)]);
        }
        let (key, host) = (ends.key("b"), ends.lab.address("b"));
        ends.keys(&["trust", "host", &key, &host, "--trust", &ends.text("hosts")]);
        ends
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.lab.scratch().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub fn keys(&self, words: &[&str]) -> String {
        let output = Command::new(FATPATH).arg("keys").args(words).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub fn key(&self, end: &str) -> String {
        self.keys(&["show", "--key", &self.text(end)])
    }

    /// The file of `b`: `a` is a peer, with these limits.
    pub fn write_file(&self, limits: &str) {
        self.write_clocked("", limits);
    }

    /// The same, with what the file says of the clock.
    pub fn write_clocked(&self, clock: &str, limits: &str) {
        let (key, address) = (self.key("a"), self.lab.address("a"));
        let file = format!(
            "[responder]\nlisten = '0.0.0.0:{PORT}'\n{clock}\n\
             [[peer]]\nname = 'a'\nprefix = '{address}'\nkey = '{key}'\n{limits}\n"
        );
        fs::write(self.path("measure.toml"), file).unwrap();
    }

    /// `b` answers, as a user who is not root.
    pub fn respond(&mut self) {
        let mut process = self.respond_command().spawn().unwrap();
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

    pub fn respond_command(&self) -> Command {
        let (file, key, used) = (self.text("measure.toml"), self.text("b"), self.text("used"));
        let words = [
            FATPATH, "measure", "respond", "--json", "--user", "nobody", "--file", &file, "--key",
            &key, "--used", &used,
        ];
        let mut command = self.lab.command("b", &words);
        command.env("TMPDIR", self.path("tmp"));
        command
    }

    /// The first event of the name for which `is_it`, once the responder has said it.
    pub fn event(&self, name: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let responder = self.responder.as_ref().unwrap();
        until(name, || {
            let said = responder.said.lock().unwrap();
            let mut events = said.iter().filter(|event| event["event"] == name);
            events.find(|event| is_it(event)).cloned()
        })
    }

    pub fn signal(&self, signal: Signal) {
        let process = &self.responder.as_ref().unwrap().process;
        let pid = Pid::from_raw(i32::try_from(process.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    pub fn end(&mut self, signal: Signal) {
        self.signal(signal);
        let mut responder = self.responder.take().unwrap();
        responder.process.wait().unwrap();
    }

    pub fn echo_as(&self, key: &str, more: &[&str]) -> Command {
        self.asking("echo", key, more)
    }

    pub fn asking(&self, test: &str, key: &str, more: &[&str]) -> Command {
        let (host, key, trust) = (self.lab.address("b"), self.text(key), self.text("hosts"));
        let words = [
            FATPATH, "measure", test, &host, "--json", "--key", &key, "--trust", &trust,
        ];
        let mut command = self.lab.command("a", &[&words[..], more].concat());
        command.env("TMPDIR", self.path("tmp"));
        command
    }

    pub fn one_way(&self, more: &[&str]) -> Output {
        self.asking("one-way", "a", more).output().unwrap()
    }

    pub fn echo(&self, more: &[&str]) -> Output {
        self.echo_as("a", more).output().unwrap()
    }

    pub fn measured(&self, more: &[&str]) -> Value {
        let output = self.echo(more);
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub fn refused(&self, more: &[&str]) -> String {
        let output = self.echo(more);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// What peer `a` has used today.
    pub fn used(&self) -> Value {
        self.status()["peers"][0]["today"].clone()
    }

    pub fn status(&self) -> Value {
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
    pub fn connection(&self) -> TcpStream {
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
