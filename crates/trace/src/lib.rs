// SPDX-License-Identifier: MIT OR Apache-2.0
//! The traces that the policy asks for (`[[trace]]`): samples of chosen flows, written to Parquet files as `fatpath trace`
//! writes them.
//!
//! One worker looks at every sample and puts those of chosen flows into a queue; it never waits for a disk. Another one
//! writes what is queued. A disk that is slow or full costs samples, which are counted, and nothing else.
//!
//! Start at [`Traces`]; [`Places`] decides which flows are traced when there are more than `max_flows`.

mod choose;
mod files;
mod meant;
mod places;
mod write;

use fatpath_api::{Sample, TraceStatus};
use fatpath_policy::Trace;
use files::Written;
use parking_lot::Mutex;
use places::Places;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use choose::choose_samples;
pub use write::write_samples;

/// Samples that wait for the files, at most: of 1 KB each about 16 MB.
const MAX_QUEUED: usize = 16_384;

/// The traces of this daemon.
pub struct Traces {
    live: watch::Sender<Arc<Live>>,
    queue: SyncSender<Queued>,
    queued: Mutex<Receiver<Queued>>,
}

/// A sample, and the trace that it is for.
type Queued = (Arc<Running>, Arc<Sample>);

/// What the live policy asks for.
#[derive(Default)]
struct Live {
    running: Vec<Arc<Running>>,
    /// Names of its rules by number.
    rules: HashMap<u32, String>,
}

/// A trace, from the policy that brought it to the one that takes it away or changes it.
struct Running {
    trace: Trace,
    places: Mutex<Places>,
    /// Samples that found the queue full.
    unqueued: AtomicU64,
    /// Samples of any flows that nobody looked at.
    unread: AtomicU64,
    written: Mutex<Written>,
}

impl Default for Traces {
    fn default() -> Traces {
        let (queue, queued) = sync_channel(MAX_QUEUED);
        Traces {
            live: watch::Sender::default(),
            queue,
            queued: Mutex::new(queued),
        }
    }
}

impl Traces {
    /// A policy became live, or its rules have other numbers; a trace that is as it was goes on.
    pub fn set_policy(&self, wanted: &[Trace], rules: HashMap<u32, String>) {
        let before = self.live();
        let running = wanted.iter().map(|trace| {
            let same = before.running.iter().find(|one| one.trace == *trace);
            same.map_or_else(|| Arc::new(Running::new(trace)), Arc::clone)
        });
        let running = running.collect();
        self.live.send_replace(Arc::new(Live { running, rules }));
    }

    /// How they fare.
    pub fn status(&self) -> Vec<TraceStatus> {
        self.live().running.iter().map(|one| one.status()).collect()
    }

    fn live(&self) -> Arc<Live> {
        Arc::clone(&self.live.borrow())
    }

    /// On a thread of the runtime: waits until there is a trace, until `shutdown` at most.
    fn wait_for_one(&self, shutdown: &CancellationToken) {
        let mut live = self.live.subscribe();
        let there_is_one = live.wait_for(|live| !live.running.is_empty());
        // The sender lives as long as this.
        let _ = Handle::current().block_on(shutdown.run_until_cancelled(there_is_one));
    }

    /// Never waits: where the queue is full the sample is counted, and lost.
    fn put(&self, running: &Arc<Running>, sample: &Arc<Sample>) {
        let queued = (Arc::clone(running), Arc::clone(sample));
        if self.queue.try_send(queued).is_err() {
            running.unqueued.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Live {
    fn has(&self, running: &Arc<Running>) -> bool {
        self.running.iter().any(|one| Arc::ptr_eq(one, running))
    }

    fn rule_of(&self, sample: &Sample) -> Option<&str> {
        let id = sample.flow.rule_id?;
        self.rules.get(&id).map(String::as_str)
    }
}

impl Running {
    fn new(trace: &Trace) -> Running {
        Running {
            trace: trace.clone(),
            places: Mutex::new(Places::new(trace.max_flows, trace.interval_us)),
            unqueued: AtomicU64::new(0),
            unread: AtomicU64::new(0),
            written: Mutex::default(),
        }
    }

    fn status(&self) -> TraceStatus {
        let (places, written) = (self.places.lock(), self.written.lock());
        TraceStatus {
            name: self.trace.name.clone(),
            folder: self.trace.own_folder(),
            flows: places.traced() as u64,
            flows_left_out: places.left_out(),
            written: written.written,
            missing: written.lost + self.unqueued.load(Ordering::Relaxed),
            unread: self.unread.load(Ordering::Relaxed),
            files: written.files,
            bytes: written.bytes,
            error: written.error.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fatpath_policy::parse;

    fn live(text: &str) -> Vec<Trace> {
        parse(text, None).unwrap().traces
    }

    #[test]
    fn a_trace_goes_on_under_another_policy_and_begins_anew_when_it_changes() {
        let traces = Traces::default();
        let (a, b) = ("[[trace]]\nname = 'a'\n", "[[trace]]\nname = 'b'\n");
        traces.set_policy(&live(a), HashMap::new());
        let first = traces.live();
        traces.set_policy(
            &live(&[b, a].concat()),
            HashMap::from([(7, "x".to_owned())]),
        );
        let second = traces.live();
        assert!(second.has(&first.running[0]) && second.running.len() == 2);
        let changed = format!("{a}max_flows = 3\n");
        traces.set_policy(&live(&changed), HashMap::new());
        let third = traces.live();
        assert!(!third.has(&first.running[0]) && third.running.len() == 1);
        traces.set_policy(&[], HashMap::new());
        assert_eq!(traces.status(), []);
    }

    #[test]
    fn a_queue_that_nobody_empties_is_bounded_and_what_found_it_full_counts() {
        let traces = Traces::default();
        traces.set_policy(&live("[[trace]]\nname = 'a'\n"), HashMap::new());
        let running = Arc::clone(&traces.live().running[0]);
        let kind = fatpath_api::SampleKind::Interval;
        let sample = Arc::new(fatpath_estats::testing::sample(1, kind, 0));
        for _ in 0..MAX_QUEUED + 5 {
            traces.put(&running, &sample);
        }
        assert_eq!(traces.status()[0].missing, 5);
        assert_eq!(traces.queued.lock().try_iter().count(), MAX_QUEUED);
    }
}
