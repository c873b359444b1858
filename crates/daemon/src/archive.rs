// SPDX-License-Identifier: MIT OR Apache-2.0
//! The way of events into the archive. Whoever has an event puts it into a queue and never waits: one worker appends
//! queued events to the spool and makes them durable each second, another one moves segments from the spool to the
//! store. A disk that is slow or full delays both, and tunes nothing less.
//!
//! The archive is on while the live policy has `[archive]`.

pub(crate) mod answers;
mod event;
mod host_load;
mod move_worker;
mod said;
mod spool_worker;

use fatpath_api::ArchiveStatus;
use fatpath_archive::store::{Location, ServerAddress};
use fatpath_archive::{Event, Kind, Latest, SealedSegments};
use fatpath_policy::Archive as Settings;
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub(crate) use event::{event_now, flow_tuned, learned_applied, policy_applied};
pub(crate) use move_worker::follow_segments;
pub use said::archive_said;
pub(crate) use said::keep_said_in;
pub(crate) use spool_worker::follow_events;

/// Events that wait for the spool, at most: of 1 KB each about 16 MB.
const MAX_QUEUED: usize = 16_384;

/// The archive of this daemon.
pub(crate) struct Archive {
    folder: PathBuf,
    settings: watch::Sender<Option<Settings>>,
    queue: SyncSender<(Kind, Arc<Event>)>,
    queued: Mutex<Receiver<(Kind, Arc<Event>)>>,
    latest: Mutex<Latest>,
    /// Of the open spool.
    sealed: Mutex<Option<Arc<SealedSegments>>>,
    status: Mutex<ArchiveStatus>,
    /// Events that found the queue full.
    unqueued: AtomicU64,
    /// Flows below the size from which each is kept.
    small_flows: AtomicU32,
}

impl Archive {
    /// Its databases are in the folder, its spool in `spool` there.
    pub(crate) fn new(folder: &Path) -> Archive {
        let (queue, queued) = sync_channel(MAX_QUEUED);
        Archive {
            folder: folder.to_path_buf(),
            settings: watch::Sender::default(),
            queue,
            queued: Mutex::new(queued),
            latest: Mutex::default(),
            sealed: Mutex::default(),
            status: Mutex::new(ArchiveStatus {
                folder: folder.to_path_buf(),
                ..ArchiveStatus::default()
            }),
            unqueued: AtomicU64::new(0),
            small_flows: AtomicU32::new(0),
        }
    }

    /// A policy became live.
    pub(crate) fn set_policy(&self, settings: Option<Settings>) {
        self.settings.send_replace(settings);
    }

    /// Where events are stored.
    ///
    /// # Errors
    /// What is wrong with the URL of the policy.
    pub(crate) fn location(&self) -> Result<Location, String> {
        self.location_of(self.settings().as_ref())
    }

    fn location_of(&self, settings: Option<&Settings>) -> Result<Location, String> {
        match settings.and_then(|settings| settings.server.as_ref()) {
            None => Ok(Location::Folder(self.folder.clone())),
            Some(server) => {
                let address = ServerAddress::new(&server.url, server.password_file.as_deref());
                address.map(Location::Server)
            }
        }
    }

    /// What this host stored, in a store that may be of many: none of another host is asked for.
    pub(crate) fn own_host() -> String {
        rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned()
    }

    /// The live policy asks for an archive.
    pub(crate) fn is_on(&self) -> bool {
        self.settings().is_some()
    }

    /// Waits until it is on.
    pub(crate) async fn turned_on(&self) {
        // The sender lives as long as this.
        let _ = self.settings.subscribe().wait_for(Option::is_some).await;
    }

    /// The same for a thread of the runtime, until `shutdown` at most.
    fn wait_until_on(&self, shutdown: &CancellationToken) {
        Handle::current().block_on(shutdown.run_until_cancelled(self.turned_on()));
    }

    fn settings(&self) -> Option<Settings> {
        self.settings.borrow().clone()
    }

    /// Never waits: where the queue is full the event is counted, and lost to the store.
    pub(crate) fn put(&self, kind: Kind, event: Event) {
        if !self.is_on() {
            return;
        }
        let event = Arc::new(event);
        self.latest.lock().take(kind, &event);
        if self.queue.try_send((kind, event)).is_err() {
            self.unqueued.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How it fares; `None` while it is off.
    pub(crate) fn status(&self) -> Option<ArchiveStatus> {
        self.settings()?;
        Some(ArchiveStatus {
            unqueued: self.unqueued.load(Ordering::Relaxed),
            ..self.status.lock().clone()
        })
    }

    /// Logs a failure when it begins, and when it ends.
    fn note(
        &self,
        what: &str,
        failure: Option<String>,
        of: fn(&mut ArchiveStatus) -> &mut Option<String>,
    ) {
        let mut status = self.status.lock();
        let before = of(&mut status);
        match (&before, &failure) {
            (None, Some(error)) => tracing::error!("archive: {what}: {error}; tuning goes on"),
            (Some(_), None) => tracing::info!("archive: {what}: works again"),
            _ => {}
        }
        *before = failure;
    }
}
