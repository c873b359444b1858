// SPDX-License-Identifier: MIT OR Apache-2.0
//! One JSON line a flow, at its end. The log is bounded: a full file becomes `.1`, and
//! the one before it goes. When it cannot be written the daemon goes on, says so once,
//! and counts what is missing.

use crate::access::fatpath_group;
use crate::cgroup_paths::CgroupPaths;
use fatpath_api::{FlowLogEvent, FlowLogLine, LogStatus, TunedFlow};
use parking_lot::Mutex;
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::SystemTime;

/// A file is renamed at this size; two files stay, so the log takes twice as much at most.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// The line that tells of a flow's end.
pub(crate) fn end_of(mut flow: TunedFlow, cgroups: &CgroupPaths) -> FlowLogLine {
    flow.cgroup = cgroups.path(flow.flow.cgroup_id);
    FlowLogLine {
        time: humantime::format_rfc3339_millis(SystemTime::now()).to_string(),
        event: FlowLogEvent::FlowEnd,
        flow,
    }
}

/// The logs that this daemon writes.
pub(crate) struct Logs {
    /// One line a flow, at its end.
    pub(crate) flows: Mutex<FlowLog>,
    /// One line an event of a flow, where that is asked for.
    pub(crate) events: Option<Mutex<FlowLog>>,
}

impl Logs {
    pub(crate) fn new(flows: &Path, events: Option<&Path>) -> Logs {
        let log = |path| Mutex::new(FlowLog::new(path));
        Logs {
            flows: log(flows),
            events: events.map(log),
        }
    }

    /// After this the next line of each opens its file anew: logrotate may have moved it.
    pub(crate) fn reopen(&self) {
        let logs = self.events.iter().chain([&self.flows]);
        logs.for_each(|log| log.lock().reopen());
    }
}

/// The log.
pub(crate) struct FlowLog {
    file: Option<File>,
    max_bytes: u64,
    pub(crate) status: LogStatus,
}

impl FlowLog {
    fn new(path: &Path) -> FlowLog {
        FlowLog::bounded(path, MAX_FILE_BYTES)
    }

    fn bounded(path: &Path, max_bytes: u64) -> FlowLog {
        FlowLog {
            file: None,
            max_bytes,
            status: LogStatus {
                file: path.into(),
                ..LogStatus::default()
            },
        }
    }

    /// Writes one line. Answers what there is to say of it: only when failure begins or ends.
    pub(crate) fn write(&mut self, value: &impl Serialize) -> Option<String> {
        let line = serde_json::to_vec(value).map_err(io::Error::from);
        match line.and_then(|line| self.append(line)) {
            Ok(()) => {
                self.status.written += 1;
                let was = self.status.error.take();
                was.map(|_| format!("{}: written again", self.status.file.display()))
            }
            Err(error) => {
                self.file = None;
                self.status.missing += 1;
                let was = self.status.error.replace(error.to_string());
                was.is_none().then(|| {
                    let file = self.status.file.display();
                    format!("{file}: {error}; flows go on being tuned, their lines are missing")
                })
            }
        }
    }

    /// All of the line or nothing of it.
    fn append(&mut self, mut line: Vec<u8>) -> io::Result<()> {
        line.push(b'\n');
        let mut length = self.open()?.metadata()?.len();
        if length > 0 && length + line.len() as u64 > self.max_bytes {
            self.rotate()?;
            length = 0;
        }
        let file = self.open()?;
        let written = file.write_all(&line);
        if written.is_err() {
            // A device has no length; the error that counts is the first.
            let _ = file.set_len(length);
        }
        written
    }

    /// 0640 root:fatpath, as the API: who may ask the daemon may read its log.
    fn open(&mut self) -> io::Result<&mut File> {
        if self.file.is_none() {
            if let Some(directory) = self.status.file.parent() {
                std::fs::create_dir_all(directory)?;
            }
            let mut options = OpenOptions::new();
            let file = options
                .append(true)
                .create(true)
                .mode(0o640)
                .open(&self.status.file)?;
            if let Some(group) = fatpath_group() {
                let _ = std::os::unix::fs::fchown(&file, None, Some(group));
            }
            self.file = Some(file);
        }
        Ok(self.file.as_mut().expect("it was opened above"))
    }

    fn reopen(&mut self) {
        self.file = None;
    }

    fn rotate(&mut self) -> io::Result<()> {
        self.file = None;
        let mut old = self.status.file.clone().into_os_string();
        old.push(".1");
        std::fs::rename(&self.status.file, old)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_file_is_renamed_and_no_line_is_cut() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log/flows.jsonl");
        let mut log = FlowLog::bounded(&path, 20);
        for n in 0..5 {
            assert_eq!(log.write(&format!("line-{n}")), None);
        }
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        assert_eq!(read(&path), "\"line-4\"\n");
        assert_eq!(
            read(&dir.path().join("log/flows.jsonl.1")),
            "\"line-2\"\n\"line-3\"\n"
        );
    }

    #[test]
    fn failure_is_said_once_and_so_is_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("flows.jsonl");
        std::fs::create_dir(&path).unwrap();
        let mut log = FlowLog::new(&path);
        assert!(log.write(&1).unwrap().contains("go on being tuned"));
        assert_eq!(log.write(&2), None);
        std::fs::remove_dir(&path).unwrap();
        assert!(log.write(&3).unwrap().contains("written again"));
        assert_eq!((log.status.written, log.status.missing), (1, 2));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "3\n");
    }

    #[test]
    fn a_full_disk_is_survived() {
        let mut log = FlowLog::new(Path::new("/dev/full"));
        assert!(log.write(&1).is_some());
        assert_eq!(log.write(&2), None);
        assert_eq!(log.status.missing, 2);
    }
}
