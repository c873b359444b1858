// SPDX-License-Identifier: MIT OR Apache-2.0
//! The worker that appends queued events to the spool, and makes them durable each second.

use super::host_load::HostLoad;
use super::{Archive, Settings};
use anyhow::{Context, Result, bail};
use fatpath_api::ArchiveDrops;
use fatpath_archive::{Bounds, Event, Kind, Origin, Spool};
use fatpath_clock::now_us;
use fatpath_host::make_folder;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// The wait for an event ends at least this often.
const TICK: Duration = Duration::from_millis(100);

/// A crash of the host loses the events of this time at most.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// Appends events until `shutdown`. A spool that cannot be opened or written is tried again each second.
///
/// # Errors
/// When there can be no more events.
pub(crate) fn follow_events(archive: &Archive, shutdown: &CancellationToken) -> Result<()> {
    let queued = archive.queued.lock();
    let mut writer = Writer::new(archive)?;
    let mut synced = Instant::now();
    while !shutdown.is_cancelled() {
        if writer.spool.is_none() && !archive.is_on() {
            archive.wait_until_on(shutdown);
            writer.follow_settings();
        }
        match queued.recv_timeout(TICK) {
            Ok((kind, event)) => writer.append(kind, &event),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => bail!("nobody has events any more"),
        }
        if synced.elapsed() >= SYNC_INTERVAL {
            synced = Instant::now();
            writer.follow_settings();
            writer.append_host_load();
            writer.sync();
        }
    }
    for (kind, event) in queued.try_iter() {
        writer.append(kind, &event);
    }
    writer.close();
    Ok(())
}

struct Writer<'a> {
    archive: &'a Archive,
    origin: Origin,
    spool: Option<(Settings, Spool)>,
    host_load: HostLoad,
}

impl Writer<'_> {
    fn new(archive: &Archive) -> Result<Writer<'_>> {
        let boot = "/proc/sys/kernel/random/boot_id";
        let boot = std::fs::read_to_string(boot).context(boot)?;
        let mut writer = Writer {
            archive,
            origin: Origin {
                host: Archive::own_host(),
                boot: boot.trim().to_owned(),
            },
            spool: None,
            host_load: HostLoad::default(),
        };
        writer.follow_settings();
        Ok(writer)
    }

    /// What cannot be appended the spool counts; without a spool it is counted here.
    fn append(&mut self, kind: Kind, event: &Event) {
        match &mut self.spool {
            // Why it failed, the next sync says.
            Some((_, spool)) => drop(spool.append(kind, event)),
            None => drop(self.archive.unqueued.fetch_add(1, Ordering::Relaxed)),
        }
    }

    fn append_host_load(&mut self) {
        let Some((settings, _)) = &self.spool else {
            return;
        };
        let interval = Duration::from_micros(settings.host_interval_us);
        if let Some(event) = self.host_load.event(interval) {
            let event = Arc::new(event);
            self.archive.latest.lock().take(Kind::Sample, &event);
            self.append(Kind::Sample, &event);
        }
    }

    fn follow_settings(&mut self) {
        let wanted = self.archive.settings();
        let is_open = self.spool.as_ref().map(|(settings, _)| settings);
        if wanted.as_ref() == is_open {
            return;
        }
        self.close();
        if let Some(settings) = wanted {
            self.open(settings);
        }
    }

    fn open(&mut self, settings: Settings) {
        let folder = self.archive.folder.join("spool");
        let bounds = Bounds::of(settings.spool_bytes);
        let opened = make_folder(&self.archive.folder)
            .map_err(|error| error.to_string())
            .and_then(|()| {
                let spool = Spool::open(&folder, self.origin.clone(), bounds, now_us());
                spool.map_err(|error| with_cause(&error))
            });
        let failure = opened.as_ref().err().cloned();
        self.archive
            .note("the spool", failure, |status| &mut status.spool_error);
        if let Ok(spool) = opened {
            *self.archive.sealed.lock() = Some(Arc::clone(spool.sealed()));
            self.spool = Some((settings, spool));
        }
    }

    fn sync(&mut self) {
        let Some((_, spool)) = &mut self.spool else {
            return;
        };
        let synced = spool.sync(now_us());
        let failure = synced.err().map(|error| with_cause(&error));
        self.archive
            .note("the spool", failure, |status| &mut status.spool_error);
        self.tell();
    }

    fn close(&mut self) {
        if let Some((_, spool)) = &mut self.spool
            && let Err(error) = spool.seal_all(now_us())
        {
            tracing::error!("archive: the spool: {}", with_cause(&error));
        }
        self.tell();
        *self.archive.sealed.lock() = None;
        self.spool = None;
    }

    fn tell(&self) {
        let Some((_, spool)) = &self.spool else {
            return;
        };
        let now = spool.status();
        let dropped = now.dropped.iter().map(|(kind, events)| ArchiveDrops {
            kind: kind.name().to_owned(),
            events: *events,
        });
        let mut status = self.archive.status.lock();
        let before: u64 = status.dropped.iter().map(|drops| drops.events).sum();
        status.dropped = dropped.collect();
        let after: u64 = status.dropped.iter().map(|drops| drops.events).sum();
        if before == 0 && after > 0 {
            tracing::warn!(
                "archive: the spool is full, and events are dropped; `fatpath status` counts them"
            );
        }
        (status.spool_bytes, status.spool_events) = (now.bytes, now.events);
        let lag_us = now.oldest_us.map_or(0, |oldest_us| now_us() - oldest_us);
        status.lag_s = lag_us.max(0) as f64 / 1e6;
    }
}

/// The file, and what is wrong with it.
pub(super) fn with_cause(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
