// SPDX-License-Identifier: MIT OR Apache-2.0
//! The worker that looks at every sample while there is a trace, and queues those of chosen flows.

use crate::meant::is_meant;
use crate::{Live, Traces};
use anyhow::{Result, bail};
use fatpath_api::{Sample, SampleKind};
use fatpath_supervisor::Heartbeat;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::runtime::Handle;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::watch;

/// Follows what `subscribe` gives, and asks `cgroup_path` for the path of a cgroup by its id. Without a trace it does
/// not listen, so that nobody hands samples over.
///
/// # Errors
/// When there can be no more samples.
pub fn choose_samples(
    traces: &Traces,
    subscribe: impl Fn() -> Receiver<Arc<Sample>>,
    cgroup_path: impl Fn(u64) -> Option<String>,
    heartbeat: &Heartbeat,
) -> Result<()> {
    let mut live = traces.live.subscribe();
    loop {
        let there_is_one = live.wait_for(|live| !live.running.is_empty());
        let waited = Handle::current().block_on(heartbeat.wait(there_is_one));
        if waited.is_none() {
            return Ok(());
        }
        drop(waited);
        let chooser = Chooser {
            traces,
            cgroup_path: &cgroup_path,
            live: traces.live(),
        };
        if !chooser.follow(&mut live, subscribe(), heartbeat)? {
            return Ok(());
        }
    }
}

struct Chooser<'a, P> {
    traces: &'a Traces,
    cgroup_path: &'a P,
    live: Arc<Live>,
}

/// What ends a wait.
enum Next {
    Policy,
    Sample(Result<Arc<Sample>, RecvError>),
}

impl<P: Fn(u64) -> Option<String>> Chooser<'_, P> {
    /// Until no trace is left; false: the daemon is to end.
    fn follow(
        mut self,
        live: &mut watch::Receiver<Arc<Live>>,
        mut samples: Receiver<Arc<Sample>>,
        heartbeat: &Heartbeat,
    ) -> Result<bool> {
        while !self.live.running.is_empty() {
            let next = async {
                tokio::select! {
                    _ = live.changed() => Next::Policy,
                    received = samples.recv() => Next::Sample(received),
                }
            };
            match Handle::current().block_on(heartbeat.wait(next)) {
                None => return Ok(false),
                Some(Next::Policy) => self.live = Arc::clone(&live.borrow_and_update()),
                Some(Next::Sample(received)) => {
                    self.take(received)?;
                    self.take_rest(&mut samples)?;
                }
            }
        }
        Ok(true)
    }

    /// What is there already costs no wait; as much as there may be.
    fn take_rest(&self, samples: &mut Receiver<Arc<Sample>>) -> Result<()> {
        for _ in 0..samples.len() {
            match samples.try_recv() {
                Ok(sample) => self.choose(&sample),
                Err(TryRecvError::Lagged(unread)) => self.count_unread(unread),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Closed) => bail!("nobody has samples any more"),
            }
        }
        Ok(())
    }

    fn take(&self, received: Result<Arc<Sample>, RecvError>) -> Result<()> {
        match received {
            Ok(sample) => self.choose(&sample),
            Err(RecvError::Lagged(unread)) => self.count_unread(unread),
            Err(RecvError::Closed) => bail!("nobody has samples any more"),
        }
        Ok(())
    }

    fn choose(&self, sample: &Arc<Sample>) {
        let rule = self.live.rule_of(sample);
        let cgroup = || (self.cgroup_path)(sample.flow.cgroup_id);
        for running in &self.live.running {
            if is_meant(&running.trace, sample, rule, cgroup) && running.places.lock().take(sample)
            {
                self.traces.put(running, sample);
            } else if sample.kind == SampleKind::End {
                // The last sample of a flow may lack the rule that it had, or have another one.
                running.places.lock().forget(sample.flow.cookie);
            }
        }
    }

    fn count_unread(&self, samples: u64) {
        for running in &self.live.running {
            running.unread.fetch_add(samples, Ordering::Relaxed);
        }
    }
}
