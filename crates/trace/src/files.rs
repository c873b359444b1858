// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files of one trace: `FOLDER/NAME/daemon-TIME-0001.parquet` and so on, of this daemon and of those before it.

use crate::Running;
use anyhow::{Context, Result};
use fatpath_api::Sample;
use fatpath_clock::{monotonic_ns, unix_ns};
use fatpath_host::{fatpath_group, make_folder, make_own_folder};
use fatpath_policy::Trace;
use fatpath_record::{Bounds, Recorder, Recovered, Row, dated, recover};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// Names of files begin so; those of `fatpath trace` begin otherwise, and are never deleted here.
const PREFIX: &str = "daemon-";

/// Rows are written at the latest after this time: what a crash can cost. Each time the table of contents, of up to
/// 2 MB, is written anew: every 10 s that would be 9 GB a day for each trace.
const FLUSH_INTERVAL: Duration = Duration::from_secs(60);

/// A folder that cannot be made is tried again so often.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// A file is finished, so that it can be read, when no flow has been traced for so long.
const IDLE: Duration = Duration::from_secs(60);

/// A row in memory is 1 KB or less.
const ROW_BYTES: u64 = 1024;

/// So many wait in memory before they are written: 4 MB a trace.
const MOST_ROWS: usize = 4096;

/// What became of a trace's samples.
#[derive(Default)]
pub(crate) struct Written {
    pub(crate) written: u64,
    pub(crate) lost: u64,
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    pub(crate) error: Option<String>,
}

pub(crate) struct Files {
    running: Arc<Running>,
    recorder: Option<Recorder>,
    /// Samples that came while there was no recorder.
    unrecorded: u64,
    tried: Option<Instant>,
    flushed: Instant,
    took: Instant,
}

impl Files {
    pub(crate) fn of(running: &Arc<Running>) -> Files {
        let now = Instant::now();
        Files {
            running: Arc::clone(running),
            recorder: None,
            unrecorded: 0,
            tried: None,
            flushed: now,
            took: now,
        }
    }

    pub(crate) fn running(&self) -> &Arc<Running> {
        &self.running
    }

    pub(crate) fn are_of(&self, running: &Arc<Running>) -> bool {
        Arc::ptr_eq(&self.running, running)
    }

    pub(crate) fn take(&mut self, sample: &Sample) {
        self.took = Instant::now();
        if self.recorder.is_none() {
            self.try_to_begin();
        }
        let row = Row {
            time_us: (unix_ns(sample.now_ns) / 1000) as i64,
            sample: sample.clone(),
        };
        match &mut self.recorder {
            Some(recorder) => {
                let said = recorder.take(row);
                self.say(said);
            }
            None => self.unrecorded += 1,
        }
    }

    fn try_to_begin(&mut self) {
        if self.tried.is_some_and(|at| at.elapsed() < RETRY_INTERVAL) {
            return;
        }
        self.tried = Some(Instant::now());
        match begin(&self.running.trace) {
            Ok(recorder) => {
                self.recorder = Some(recorder);
                let before = self.running.written.lock().error.take();
                let lost = self.unrecorded;
                self.say(before.map(|_| format!("written again, {lost} samples lost")));
            }
            Err(error) => {
                let error = format!("{error:#}");
                let before = self.running.written.lock().error.replace(error.clone());
                let said = format!("{error}; samples are lost until it can be written");
                self.say(before.is_none().then_some(said));
            }
        }
    }

    /// What does not depend on a sample.
    pub(crate) fn look(&mut self) {
        let is_idle = self.traces_nothing() && self.took.elapsed() >= IDLE;
        if let Some(recorder) = &mut self.recorder {
            let is_due = self.flushed.elapsed() >= FLUSH_INTERVAL;
            let said = match (is_idle, is_due) {
                (true, _) => recorder.close(),
                (false, true) => recorder.flush(),
                (false, false) => None,
            };
            if is_due {
                self.flushed = Instant::now();
            }
            self.say(said);
        }
        self.tell();
    }

    fn traces_nothing(&self) -> bool {
        let mut places = self.running.places.lock();
        places.clear_silent(monotonic_ns());
        places.traced() == 0
    }

    /// What was written stays.
    pub(crate) fn end(mut self) {
        if let Some(recorder) = &mut self.recorder {
            let said = recorder.close();
            self.say(said);
        }
        self.tell();
    }

    /// Of what is said once when it begins, and once when it ends.
    fn say(&self, said: Option<String>) {
        if let Some(said) = said {
            tracing::error!("trace `{}`: {said}", self.running.trace.name);
        }
    }

    fn tell(&self) {
        let mut written = self.running.written.lock();
        written.lost = self.unrecorded;
        let Some(recorder) = &self.recorder else {
            return;
        };
        let recorded = recorder.recorded();
        let (files, bytes) = recorder.kept();
        *written = Written {
            written: recorded.written_rows,
            lost: self.unrecorded + recorded.lost_rows,
            files: files as u64,
            bytes,
            error: recorded.error.clone(),
        };
    }
}

/// A file that a crash left unfinished is finished first.
fn begin(trace: &Trace) -> Result<Recorder> {
    let folder = trace.own_folder();
    // A directory that is there may be somebody else's, who chose who may read it.
    let is_there = trace.folder.is_dir();
    let made = match is_there {
        true => Ok(()),
        false => make_folder(&trace.folder),
    };
    made.and_then(|()| make_own_folder(&folder))
        .with_context(|| {
            format!(
                "cannot make {} (it must be a directory of the daemon's own user, not a link)",
                folder.display()
            )
        })?;
    recover(&folder)?.iter().for_each(log);
    let name = dated(PREFIX, SystemTime::now());
    let mut recorder = Recorder::begin(&folder, &name, bounds(trace))?
        .shared_with(fatpath_group())
        .after_earlier(PREFIX)?;
    if let Err(error) = recorder.prune() {
        let (name, why) = (&trace.name, anyhow::Error::from(error));
        tracing::error!("trace `{name}`: cannot delete an old file: {why:#}");
    }
    Ok(recorder)
}

fn log(recovered: &Recovered) {
    match recovered.is_failure() {
        true => tracing::error!("{recovered}"),
        false => tracing::info!("{recovered}"),
    }
}

/// So that the bounds of the policy hold with the last group of a file, by which it may be larger than its own.
fn bounds(trace: &Trace) -> Bounds {
    let group_bytes = trace.file_bytes / 4;
    let rows = usize::try_from(group_bytes / ROW_BYTES);
    Bounds {
        file_bytes: trace.file_bytes - group_bytes,
        total_bytes: trace.total_bytes - group_bytes,
        files: trace.max_files as usize,
        group_rows: rows.map_or(MOST_ROWS, |rows| rows.min(MOST_ROWS)),
        // `look` writes by time.
        group_us: i64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fatpath_api::SampleKind;
    use fatpath_estats::testing::{SECOND, sample};
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    fn running(folder: &Path, keys: &str) -> Arc<Running> {
        let folder = folder.display();
        let text = format!("[[trace]]\nname = 't'\nfolder = '{folder}'\n{keys}\n");
        let policy = fatpath_policy::parse(&text, None).unwrap();
        Arc::new(Running::new(&policy.traces[0]))
    }

    fn take(files: &mut Files, from: u64, count: u64) {
        for n in from..from + count {
            let mut sample = sample(n % 50, SampleKind::Interval, n * SECOND / 1000);
            // What no dictionary makes small.
            sample.bytes_sent = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 1;
            sample.bytes_acked = sample.bytes_sent ^ n;
            sample.snd_una = sample.bytes_sent as u32;
            files.take(&sample);
        }
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn bytes(folder: &Path) -> u64 {
        let names = names(folder).into_iter();
        names
            .map(|name| folder.join(name).metadata().unwrap().len())
            .sum()
    }

    #[test]
    fn the_policys_bounds_hold_at_every_moment_and_over_restarts() {
        let dir = tempfile::tempdir().unwrap();
        let keys = "file_size = '1MiB'\nsize = '2MiB'";
        let folder = dir.path().join("new/t");
        let mut most = 0;
        for begin in [0, 100_000] {
            let running = running(&dir.path().join("new"), keys);
            let mut files = Files::of(&running);
            for part in 0..60 {
                take(&mut files, begin + part * 500, 500);
                most = most.max(bytes(&folder));
            }
            files.look();
            let status = running.status();
            assert!(status.files >= 1 && status.bytes <= 2 << 20, "{status:?}");
            files.end();
            assert_eq!(running.status().written, 30_000);
        }
        assert!((1 << 20..=2 << 20).contains(&most), "{most}");
        let mode = folder.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o750);
        let names = names(&folder);
        let first = names[0].as_str();
        assert!(
            first.starts_with("daemon-2") && first.ends_with(".parquet"),
            "{names:?}"
        );
    }

    #[test]
    fn so_many_files_stay() {
        let dir = tempfile::tempdir().unwrap();
        for round in 0..6 {
            let running = running(dir.path(), "files = 3");
            let mut files = Files::of(&running);
            take(&mut files, 0, 10);
            files.end();
            let names = names(&dir.path().join("t"));
            assert_eq!(names.len(), (round + 1).min(2), "one may grow: {names:?}");
        }
    }

    #[test]
    fn what_was_left_unfinished_is_finished_and_counts() {
        let dir = tempfile::tempdir().unwrap();
        let crashed = running(dir.path(), "");
        let mut files = Files::of(&crashed);
        take(&mut files, 0, 10);
        files.recorder.as_mut().unwrap().flush();
        drop(files);
        let running = running(dir.path(), "");
        let mut files = Files::of(&running);
        take(&mut files, 0, 10);
        files.look();
        assert_eq!(running.status().files, 1);
        files.end();
        assert_eq!(names(&dir.path().join("t")).len(), 2);
    }

    #[test]
    fn a_link_that_somebody_left_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let elsewhere = dir.path().join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, dir.path().join("t")).unwrap();
        let running = running(dir.path(), "");
        let mut files = Files::of(&running);
        take(&mut files, 0, 3);
        files.end();
        let status = running.status();
        assert_eq!((status.missing, status.written), (3, 0));
        assert!(status.error.unwrap().contains("not a link"));
        assert!(names(&elsewhere).is_empty());
    }

    #[test]
    fn files_of_the_command_stay_whatever_the_bounds() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("t");
        std::fs::create_dir(&folder).unwrap();
        for number in 1..=5 {
            let name = format!("trace-2026-11-27T101500Z-000{number}.parquet");
            std::fs::write(folder.join(name), "PAR1").unwrap();
        }
        let running = running(dir.path(), "files = 2");
        let mut files = Files::of(&running);
        take(&mut files, 0, 3);
        files.end();
        assert_eq!(names(&folder).len(), 6);
    }

    #[test]
    fn a_damaged_file_stops_no_trace() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("t");
        std::fs::create_dir(&folder).unwrap();
        let damaged = folder.join("daemon-2026-11-27T101500Z-0001.parquet");
        std::fs::write(damaged.with_extension("parquet.part"), "PAR1").unwrap();
        std::fs::write(damaged.with_extension("parquet.footer"), "?").unwrap();
        let running = running(dir.path(), "");
        let mut files = Files::of(&running);
        take(&mut files, 0, 3);
        files.end();
        let status = running.status();
        assert_eq!((status.missing, status.written, status.error), (0, 3, None));
        assert_eq!(names(&folder).len(), 3);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_counted_and_tried_again() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("place");
        std::fs::write(&place, "a file").unwrap();
        let running = running(&place, "");
        let mut files = Files::of(&running);
        take(&mut files, 0, 3);
        files.look();
        let status = running.status();
        assert_eq!((status.missing, status.written), (3, 0));
        assert!(status.error.unwrap().contains("cannot make"));
        std::fs::remove_file(&place).unwrap();
        files.tried = None;
        take(&mut files, 3, 3);
        files.end();
        let status = running.status();
        assert_eq!((status.missing, status.written, status.error), (3, 3, None));
    }
}
