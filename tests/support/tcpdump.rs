// SPDX-License-Identifier: MIT OR Apache-2.0
//! A capture of a host of a lab.

use super::Lab;
use fatpath_capture::{Analysis, Ended, Limits, Reader};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

/// A running tcpdump on a host of a lab.
pub struct Tcpdump {
    child: Child,
    pub file: PathBuf,
}

impl Tcpdump {
    pub fn start(lab: &Lab, host: &str, port: u16) -> Tcpdump {
        let file = lab.scratch().join(format!("{host}.pcap"));
        let mut command = Command::new("tcpdump");
        command.args([
            "-i",
            "any",
            "-s",
            "128",
            "-B",
            "16384",
            "-Z",
            "root",
            "-U",
            "--immediate-mode",
        ]);
        command
            .arg("-w")
            .arg(&file)
            .args(["tcp", "port", &port.to_string()]);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        // A child of a thread that is on the host.
        let mut child = lab.on(host, || command.spawn().unwrap());
        let said = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = said.map_while(Result::ok);
        assert!(said.any(|line| line.contains("listening on")), "no tcpdump");
        thread::spawn(move || said.for_each(drop));
        Tcpdump { child, file }
    }

    /// The capture's file, when all has been written.
    pub fn stop(mut self) -> PathBuf {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::INT).unwrap();
        assert!(self.child.wait().unwrap().success());
        self.file.clone()
    }
}

/// Both ends have closed the connection, as far as the file has been written.
pub fn is_closed(file: &Path) -> bool {
    let mut reader = Reader::new(File::open(file).unwrap()).unwrap();
    let mut analysis = Analysis::new(Limits::default());
    while let Ok(Some(frame)) = reader.next_frame() {
        analysis.take(&frame);
    }
    let (connections, _) = analysis.finish();
    connections
        .first()
        .is_some_and(|one| one.ended == Ended::Closed)
}
