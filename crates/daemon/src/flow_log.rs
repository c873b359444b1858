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
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

/// A file is renamed at this size; two files stay, so the log takes twice as much at most.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Lines are written together up to about this size: a write of its own costs a short flow's line as much as the rest.
const BATCH_BYTES: usize = 64 << 10;

/// The line that tells of a flow's end.
pub(crate) fn end_of(mut flow: TunedFlow, cgroups: &CgroupPaths) -> FlowLogLine {
    flow.cgroup = cgroups.path(flow.flow.cgroup_id);
    FlowLogLine {
        time: humantime::format_rfc3339_millis(SystemTime::now()).to_string(),
        event: FlowLogEvent::FlowEnd,
        flow,
    }
}

/// Logs that writing begins or ends to fail, where [`FlowLog::write`] or [`FlowLog::flush`] answers so.
pub(crate) fn say(said: Option<String>) {
    if let Some(said) = said {
        tracing::error!("{said}");
    }
}

/// The logs that this daemon writes.
pub(crate) struct Logs {
    /// One line a flow, at its end.
    pub(crate) flows: FlowLog,
    /// One line an event of a flow, where that is asked for.
    pub(crate) events: Option<FlowLog>,
}

impl Logs {
    pub(crate) fn new(flows: &Path, events: Option<&Path>) -> Logs {
        Logs {
            flows: FlowLog::new(flows),
            events: events.map(FlowLog::new),
        }
    }

    /// After this the next line of each opens its file anew: logrotate may have moved it.
    pub(crate) fn reopen(&self) {
        let logs = self.events.iter().chain([&self.flows]);
        logs.for_each(FlowLog::reopen);
    }
}

/// The log. A disk may stand still while a line is written: nobody who asks how the log fares waits for that.
pub(crate) struct FlowLog {
    lines: Mutex<Lines>,
    is_to_reopen: AtomicBool,
    status: Mutex<LogStatus>,
}

impl FlowLog {
    fn new(path: &Path) -> FlowLog {
        FlowLog::bounded(path, MAX_FILE_BYTES)
    }

    fn bounded(path: &Path, max_bytes: u64) -> FlowLog {
        FlowLog {
            lines: Mutex::new(Lines {
                path: path.into(),
                file: None,
                max_bytes,
                waiting: Vec::new(),
                waiting_lines: 0,
            }),
            is_to_reopen: AtomicBool::new(false),
            status: Mutex::new(LogStatus {
                file: path.into(),
                ..LogStatus::default()
            }),
        }
    }

    /// Adds a line, which waits for others up to [`BATCH_BYTES`] or until [`FlowLog::flush`]. Answers what there is to
    /// say of it: only when failure begins or ends.
    pub(crate) fn write(&self, value: &impl Serialize) -> Option<String> {
        let mut lines = self.lines.lock();
        if let Err(error) = lines.add(value) {
            return self.failed(1, &error);
        }
        match lines.waiting.len() < BATCH_BYTES {
            true => None,
            false => self.append(&mut lines),
        }
    }

    /// Writes the lines that wait; answers as [`FlowLog::write`].
    pub(crate) fn flush(&self) -> Option<String> {
        self.append(&mut self.lines.lock())
    }

    /// How it fares.
    pub(crate) fn status(&self) -> LogStatus {
        self.status.lock().clone()
    }

    fn reopen(&self) {
        self.is_to_reopen.store(true, Ordering::Relaxed);
    }

    fn append(&self, lines: &mut Lines) -> Option<String> {
        if self.is_to_reopen.swap(false, Ordering::Relaxed) {
            lines.file = None;
        }
        let count = lines.waiting_lines;
        match lines.append_waiting() {
            Ok(()) => self.written(count),
            Err(error) => self.failed(count, &error),
        }
    }

    fn written(&self, lines: u64) -> Option<String> {
        if lines == 0 {
            return None;
        }
        let mut status = self.status.lock();
        status.written += lines;
        let was = status.error.take();
        was.map(|_| format!("{}: written again", status.file.display()))
    }

    fn failed(&self, lines: u64, error: &io::Error) -> Option<String> {
        let mut status = self.status.lock();
        status.missing += lines;
        let was = status.error.replace(error.to_string());
        was.is_none().then(|| {
            let file = status.file.display();
            format!("{file}: {error}; flows go on being tuned, their lines are missing")
        })
    }
}

/// The file, and the lines that wait for it.
struct Lines {
    path: PathBuf,
    file: Option<File>,
    max_bytes: u64,
    waiting: Vec<u8>,
    waiting_lines: u64,
}

impl Lines {
    fn add(&mut self, value: &impl Serialize) -> io::Result<()> {
        let begun = self.waiting.len();
        if let Err(error) = serde_json::to_writer(&mut self.waiting, value) {
            self.waiting.truncate(begun);
            return Err(error.into());
        }
        self.waiting.push(b'\n');
        self.waiting_lines += 1;
        Ok(())
    }

    /// No line waits afterwards, whatever became of them.
    fn append_waiting(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.waiting_lines) == 0 {
            return Ok(());
        }
        let mut lines = std::mem::take(&mut self.waiting);
        let appended = self.append(&lines);
        lines.clear();
        self.waiting = lines;
        if appended.is_err() {
            self.file = None;
        }
        appended
    }

    /// All of the lines or none of them.
    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let mut length = self.open()?.metadata()?.len();
        if length > 0 && length + lines.len() as u64 > self.max_bytes {
            self.rotate()?;
            length = 0;
        }
        let file = self.open()?;
        let written = file.write_all(lines);
        if written.is_err() {
            // A device has no length; the error that counts is the first.
            let _ = file.set_len(length);
        }
        written
    }

    /// 0640 root:fatpath, as the API: who may ask the daemon may read its log.
    fn open(&mut self) -> io::Result<&mut File> {
        if self.file.is_none() {
            if let Some(directory) = self.path.parent() {
                std::fs::create_dir_all(directory)?;
            }
            let mut options = OpenOptions::new();
            let file = options
                .append(true)
                .create(true)
                .mode(0o640)
                .open(&self.path)?;
            if let Some(group) = fatpath_group() {
                let _ = std::os::unix::fs::fchown(&file, None, Some(group));
            }
            self.file = Some(file);
        }
        Ok(self.file.as_mut().expect("it was opened above"))
    }

    fn rotate(&mut self) -> io::Result<()> {
        self.file = None;
        let mut old = self.path.clone().into_os_string();
        old.push(".1");
        std::fs::rename(&self.path, old)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line alone.
    fn write(log: &FlowLog, value: &impl Serialize) -> Option<String> {
        log.write(value).or_else(|| log.flush())
    }

    #[test]
    fn a_full_file_is_renamed_and_no_line_is_cut() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log/flows.jsonl");
        let log = FlowLog::bounded(&path, 20);
        for n in 0..5 {
            assert_eq!(write(&log, &format!("line-{n}")), None);
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
        let log = FlowLog::new(&path);
        assert!(write(&log, &1).unwrap().contains("go on being tuned"));
        assert_eq!(write(&log, &2), None);
        std::fs::remove_dir(&path).unwrap();
        assert!(write(&log, &3).unwrap().contains("written again"));
        assert_eq!((log.status().written, log.status().missing), (1, 2));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "3\n");
    }

    #[test]
    fn a_full_disk_is_survived() {
        let log = FlowLog::new(Path::new("/dev/full"));
        assert!(write(&log, &1).is_some());
        assert_eq!(write(&log, &2), None);
        assert_eq!(log.status().missing, 2);
    }

    #[test]
    fn lines_are_written_together_and_each_is_counted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("flows.jsonl");
        let log = FlowLog::new(&path);
        let line = "a".repeat(BATCH_BYTES / 4);
        for _ in 0..3 {
            assert_eq!(log.write(&line), None);
        }
        assert_eq!((path.exists(), log.status().written), (false, 0));
        assert_eq!(log.write(&line), None);
        assert_eq!((path.exists(), log.status().written), (true, 4));
        let length = || path.metadata().unwrap().len();
        let written = length();
        assert_eq!(log.write(&1), None);
        assert_eq!(length(), written);
        assert_eq!(log.flush(), None);
        assert_eq!((length(), log.status().written), (written + 2, 5));
    }

    #[test]
    fn lines_that_failed_together_are_all_missing() {
        let log = FlowLog::new(Path::new("/dev/full"));
        assert_eq!(log.write(&1), None);
        assert!(write(&log, &2).is_some());
        assert_eq!((log.status().written, log.status().missing), (0, 2));
    }
}
