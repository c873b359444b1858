// SPDX-License-Identifier: MIT OR Apache-2.0
//! One JSON line a flow, at its end. Lines wait in memory for a thread that writes them, for a disk may stand still as long
//! as it likes: nobody else waits for it, and what does not fit meanwhile is counted as missing. When the log cannot
//! be written the daemon goes on, says so once, and counts.

mod file;

use crate::cgroup_paths::CgroupPaths;
use anyhow::Result;
use fatpath_api::{FlowLogEvent, FlowLogLine, LogStatus, TunedFlow};
use file::LogFile;
use parking_lot::{Condvar, Mutex};
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};
use tokio_util::sync::CancellationToken;

/// A file is renamed at this size; two files stay, so the log takes twice as much at most.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Lines are written together up to about this size: a write of its own costs a short flow's line as much as the rest.
const BATCH_BYTES: usize = 64 << 10;

/// So many bytes of lines wait at most: those of some 20,000 flows.
const MAX_WAITING_BYTES: usize = 16 << 20;

/// The wait for lines ends at least this often, to see whether the daemon is to end.
const TICK: Duration = Duration::from_millis(500);

/// At the end the disk has this long to take what waits.
const END_DEADLINE: Duration = Duration::from_secs(5);

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
    pub(crate) flows: Arc<FlowLog>,
    /// One line an event of a flow, where that is asked for.
    pub(crate) events: Option<Arc<FlowLog>>,
}

impl Logs {
    pub(crate) fn new(flows: &Path, events: Option<&Path>) -> Logs {
        Logs {
            flows: Arc::new(FlowLog::new(flows)),
            events: events.map(|path| Arc::new(FlowLog::new(path))),
        }
    }

    /// After this the next line of each opens its file anew: logrotate may have moved it.
    pub(crate) fn reopen(&self) {
        self.each()
            .for_each(|log| log.is_to_reopen.store(true, Ordering::Relaxed));
    }

    /// Writes what nobody else writes any more. A disk that stands still keeps the daemon for [`END_DEADLINE`].
    pub(crate) fn end(&self) {
        for log in self.each() {
            let (last, (sender, written)) = (Arc::clone(log), std::sync::mpsc::channel());
            std::thread::spawn(move || {
                last.append();
                // Nobody listens after the deadline.
                let _ = sender.send(());
            });
            if written.recv_timeout(END_DEADLINE).is_err() {
                let (lines, file) = (log.waiting.lock().lines, log.status.lock().file.clone());
                let file = file.display();
                tracing::error!("{file}: it stands still; the daemon ends without {lines} lines");
            }
        }
    }

    fn each(&self) -> impl Iterator<Item = &Arc<FlowLog>> {
        self.events.iter().chain([&self.flows])
    }
}

/// A log.
pub(crate) struct FlowLog {
    waiting: Mutex<Waiting>,
    are_due: Condvar,
    /// And what it is writing.
    file: Mutex<(LogFile, Vec<u8>)>,
    is_to_reopen: AtomicBool,
    status: Mutex<LogStatus>,
}

/// Lines that wait for the thread that writes them.
#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    lines: u64,
    are_due: bool,
}

impl FlowLog {
    fn new(path: &Path) -> FlowLog {
        FlowLog::bounded(path, MAX_FILE_BYTES)
    }

    fn bounded(path: &Path, max_bytes: u64) -> FlowLog {
        FlowLog {
            waiting: Mutex::default(),
            are_due: Condvar::new(),
            file: Mutex::new((LogFile::new(path, max_bytes), Vec::new())),
            is_to_reopen: AtomicBool::new(false),
            status: Mutex::new(LogStatus {
                file: path.into(),
                ..LogStatus::default()
            }),
        }
    }

    /// Adds a line, which waits for others up to [`BATCH_BYTES`] or until [`FlowLog::flush`]. Never waits for the disk.
    pub(crate) fn write(&self, value: &impl Serialize) {
        let mut waiting = self.waiting.lock();
        let added = waiting.add(value);
        let is_enough = waiting.bytes.len() >= BATCH_BYTES;
        drop(waiting);
        if let Err(why) = added {
            self.failed(1, &why);
        }
        if is_enough {
            self.flush();
        }
    }

    /// The lines that wait are to be written now.
    pub(crate) fn flush(&self) {
        let mut waiting = self.waiting.lock();
        if waiting.lines > 0 && !waiting.are_due {
            waiting.are_due = true;
            self.are_due.notify_one();
        }
    }

    /// Writes lines as they become due.
    ///
    /// # Errors
    /// None: the log itself may fail and recover.
    pub(crate) fn follow(&self, shutdown: &CancellationToken) -> Result<()> {
        while !shutdown.is_cancelled() {
            let mut waiting = self.waiting.lock();
            if !waiting.are_due {
                self.are_due.wait_for(&mut waiting, TICK);
            }
            let are_due = waiting.are_due;
            drop(waiting);
            if are_due {
                self.append();
            }
        }
        Ok(())
    }

    /// How it fares.
    pub(crate) fn status(&self) -> LogStatus {
        self.status.lock().clone()
    }

    /// Writes the lines that wait.
    fn append(&self) {
        let (file, bytes) = &mut *self.file.lock();
        if self.is_to_reopen.swap(false, Ordering::Relaxed) {
            file.close();
        }
        let lines = self.waiting.lock().hand_over(bytes);
        if lines == 0 {
            return;
        }
        match file.append(bytes) {
            Ok(()) => self.written(lines),
            Err(error) => self.failed(lines, &error.to_string()),
        }
        bytes.clear();
        bytes.shrink_to(2 * BATCH_BYTES);
    }

    fn written(&self, lines: u64) {
        let mut status = self.status.lock();
        status.written += lines;
        if status.error.take().is_some() {
            tracing::error!("{}: written again", status.file.display());
        }
    }

    fn failed(&self, lines: u64, why: &str) {
        let mut status = self.status.lock();
        status.missing += lines;
        if status.error.replace(why.to_owned()).is_none() {
            let file = status.file.display();
            tracing::error!("{file}: {why}; flows go on being tuned, their lines are missing");
        }
    }
}

impl Waiting {
    fn add(&mut self, value: &impl Serialize) -> Result<(), String> {
        let begun = self.bytes.len();
        if begun >= MAX_WAITING_BYTES {
            return Err("the disk does not keep up with the lines".to_owned());
        }
        if let Err(error) = serde_json::to_writer(&mut self.bytes, value) {
            self.bytes.truncate(begun);
            return Err(error.to_string());
        }
        self.bytes.push(b'\n');
        self.lines += 1;
        Ok(())
    }

    /// In exchange for what `empty` has room for; answers how many lines there are.
    fn hand_over(&mut self, empty: &mut Vec<u8>) -> u64 {
        std::mem::swap(&mut self.bytes, empty);
        self.are_due = false;
        std::mem::take(&mut self.lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line alone, on the disk.
    fn write(log: &FlowLog, value: &impl Serialize) {
        log.write(value);
        log.append();
    }

    #[test]
    fn a_full_file_is_renamed_and_no_line_is_cut() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log/flows.jsonl");
        let log = FlowLog::bounded(&path, 20);
        for n in 0..5 {
            write(&log, &format!("line-{n}"));
        }
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        assert_eq!(read(&path), "\"line-4\"\n");
        assert_eq!(
            read(&dir.path().join("log/flows.jsonl.1")),
            "\"line-2\"\n\"line-3\"\n"
        );
        assert_eq!((log.status().written, log.status().error), (5, None));
    }

    #[test]
    fn failure_is_counted_and_so_is_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("flows.jsonl");
        std::fs::create_dir(&path).unwrap();
        let log = FlowLog::new(&path);
        write(&log, &1);
        write(&log, &2);
        assert!(log.status().error.unwrap().contains("directory"));
        std::fs::remove_dir(&path).unwrap();
        write(&log, &3);
        let status = log.status();
        assert_eq!((status.written, status.missing, status.error), (1, 2, None));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "3\n");
    }

    #[test]
    fn a_full_disk_is_survived() {
        let log = FlowLog::new(Path::new("/dev/full"));
        log.write(&1);
        log.write(&2);
        log.append();
        assert_eq!((log.status().written, log.status().missing), (0, 2));
    }

    #[test]
    fn lines_are_due_together_or_when_they_are_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let log = FlowLog::new(&dir.path().join("flows.jsonl"));
        let are_due = || log.waiting.lock().are_due;
        let line = "a".repeat(BATCH_BYTES / 4);
        for _ in 0..3 {
            log.write(&line);
        }
        assert!(!are_due());
        log.write(&line);
        assert!(are_due());
        log.append();
        assert_eq!((are_due(), log.status().written), (false, 4));
        log.flush();
        assert!(!are_due(), "nothing waits");
        log.write(&1);
        log.flush();
        assert!(are_due());
    }

    #[test]
    fn a_disk_that_stands_still_bounds_what_waits_and_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let log = FlowLog::new(&dir.path().join("flows.jsonl"));
        let line = "a".repeat(1 << 20);
        for _ in 0..20 {
            log.write(&line);
        }
        assert!(log.waiting.lock().bytes.len() < MAX_WAITING_BYTES + (2 << 20));
        let status = log.status();
        assert_eq!(status.missing, 4);
        assert!(status.error.unwrap().contains("does not keep up"));
        log.append();
        assert_eq!((log.status().written, log.status().error), (16, None));
    }

    #[test]
    fn what_waits_at_the_end_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("flows.jsonl");
        let logs = Logs::new(&path, None);
        logs.flows.write(&1);
        logs.end();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "1\n");
    }
}
