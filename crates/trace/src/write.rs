// SPDX-License-Identifier: MIT OR Apache-2.0
//! The worker that writes queued samples.

use crate::files::Files;
use crate::{MAX_QUEUED, Queued, Running, Traces};
use anyhow::{Result, bail};
use fatpath_api::Sample;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// The wait for a sample ends at least this often.
const TICK: Duration = Duration::from_millis(500);

/// What does not depend on a sample is done so often: ended traces, rows that have waited long enough, what is told.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Writes samples until `shutdown`. A disk that takes none is tried again.
///
/// # Errors
/// When there can be no more samples.
pub fn write_samples(traces: &Traces, shutdown: &CancellationToken) -> Result<()> {
    let queued = traces.queued.lock();
    let mut writer = Writer {
        traces,
        open: Vec::new(),
    };
    let mut looked = Instant::now();
    while !shutdown.is_cancelled() {
        if writer.open.is_empty() {
            traces.wait_for_one(shutdown);
        }
        match queued.recv_timeout(TICK) {
            Ok((running, sample)) => writer.take(&running, &sample),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => bail!("nobody has samples any more"),
        }
        if looked.elapsed() >= LOOK_INTERVAL {
            looked = Instant::now();
            writer.look(&queued);
        }
    }
    for (running, sample) in queued.try_iter() {
        writer.take(&running, &sample);
    }
    writer.open.drain(..).for_each(Files::end);
    Ok(())
}

struct Writer<'a> {
    traces: &'a Traces,
    /// Of the traces that had a sample.
    open: Vec<Files>,
}

impl Writer<'_> {
    fn take(&mut self, running: &Arc<Running>, sample: &Sample) {
        if let Some(files) = self.open.iter_mut().find(|files| files.are_of(running)) {
            return files.take(sample);
        }
        // A trace that has ended meanwhile has had its last file.
        if self.traces.live().has(running) {
            // Files of the one that it replaces count for its bounds once they are finished; no sample of that one is
            // behind this one in the queue.
            self.end_what_is_over();
            let mut files = Files::of(running);
            files.take(sample);
            self.open.push(files);
        }
    }

    /// What is queued for a trace that has ended is written first.
    fn look(&mut self, queued: &Receiver<Queued>) {
        for (running, sample) in queued.try_iter().take(MAX_QUEUED) {
            self.take(&running, &sample);
        }
        self.end_what_is_over();
        self.open.iter_mut().for_each(Files::look);
    }

    fn end_what_is_over(&mut self) {
        let live = self.traces.live();
        let (going_on, over) = std::mem::take(&mut self.open)
            .into_iter()
            .partition(|files| live.has(files.running()));
        self.open = going_on;
        Vec::into_iter(over).for_each(Files::end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fatpath_api::SampleKind;
    use fatpath_estats::testing;
    use std::collections::HashMap;

    #[test]
    fn a_trace_that_another_replaces_is_finished_first_and_what_is_late_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().display();
        let traces = Traces::default();
        let mut writer = Writer {
            traces: &traces,
            open: Vec::new(),
        };
        let sample = testing::sample(1, SampleKind::Interval, 0);
        let mut live = |max_flows: u32| {
            let text =
                format!("[[trace]]\nname = 't'\nfolder = '{folder}'\nmax_flows = {max_flows}\n");
            let policy = fatpath_policy::parse(&text, None).unwrap();
            traces.set_policy(&policy.traces, HashMap::new());
            let running = Arc::clone(&traces.live().running[0]);
            writer.take(&running, &sample);
            assert_eq!(writer.open.len(), 1);
            running
        };
        let first = live(1);
        live(2);
        assert_eq!((first.status().files, first.status().written), (1, 1));
        writer.take(&first, &sample);
        assert_eq!(first.status().written, 1);
        let second = Arc::clone(&traces.live().running[0]);
        let sample = Arc::new(sample);
        (0..5).for_each(|_| traces.put(&second, &sample));
        traces.set_policy(&[], HashMap::new());
        writer.look(&traces.queued.lock());
        assert!(writer.open.is_empty());
        assert_eq!(second.status().written, 1 + 5, "those in the queue, too");
        assert_eq!(dir.path().join("t").read_dir().unwrap().count(), 2);
    }
}
