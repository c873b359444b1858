// SPDX-License-Identifier: MIT OR Apache-2.0
//! The worker that moves segments from the spool to the store, and has the store forget what is kept no longer.

use super::event::now_us;
use super::spool_worker::with_cause;
use super::{Archive, Settings};
use anyhow::Result;
use fatpath_archive::store::{Location, Retention, Store};
use fatpath_archive::{SealedSegments, move_oldest};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// The wait for a segment ends at least this often.
const TICK: Duration = Duration::from_millis(100);

/// From an attempt that failed to the next.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// What is kept no longer goes so often.
const RETAIN_INTERVAL: Duration = Duration::from_secs(60);

/// Moves segments until `shutdown`. Where the store is away they wait in the spool, and nothing else waits.
pub(crate) fn follow_segments(archive: &Archive, shutdown: &CancellationToken) -> Result<()> {
    let mut opened = None;
    let mut retained: Option<(Settings, Instant)> = None;
    while !shutdown.is_cancelled() {
        archive.wait_until_on(shutdown);
        let rest = match work(archive, &mut opened, &mut retained) {
            Ok(true) => Duration::ZERO,
            Ok(false) => TICK,
            Err(_) => RETRY_INTERVAL,
        };
        let begun = Instant::now();
        while begun.elapsed() < rest && !shutdown.is_cancelled() {
            std::thread::sleep(TICK);
        }
    }
    Ok(())
}

/// Whether there may be more to do at once.
fn work(
    archive: &Archive,
    opened: &mut Option<(Location, Box<dyn Store + Send>)>,
    retained: &mut Option<(Settings, Instant)>,
) -> Result<bool, ()> {
    let Some(settings) = archive.settings() else {
        return Ok(false);
    };
    let sealed = archive.sealed.lock().as_ref().map(Arc::clone);
    let Some(sealed) = sealed else {
        return Ok(false);
    };
    let is_due = retained
        .as_ref()
        .is_none_or(|(of, at)| *of != settings || at.elapsed() >= RETAIN_INTERVAL);
    let retention = is_due.then_some(Retention {
        days: settings.days,
        total_bytes: settings.total_bytes,
    });
    let store = store_of(archive, &settings, opened);
    let done = store.and_then(|store| move_and_retain(archive, store, &sealed, retention));
    let failure = done.as_ref().err().cloned();
    archive.note("the store", failure, |status| &mut status.store_error);
    if done.is_ok() && is_due {
        *retained = Some((settings, Instant::now()));
    }
    done.map_err(drop)
}

/// The store that the policy asks for, opened when it is another one than before.
fn store_of<'o>(
    archive: &Archive,
    settings: &Settings,
    opened: &'o mut Option<(Location, Box<dyn Store + Send>)>,
) -> Result<&'o mut dyn Store, String> {
    let location = archive.location_of(Some(settings))?;
    if opened.as_ref().is_none_or(|(of, _)| *of != location) {
        let store = location.open().map_err(|error| with_cause(&error))?;
        *opened = Some((location, store));
    }
    let (_, store) = opened.as_mut().expect("it was opened above");
    Ok(store.as_mut())
}

/// Whether a segment was moved.
fn move_and_retain(
    archive: &Archive,
    store: &mut dyn Store,
    sealed: &Arc<SealedSegments>,
    retention: Option<Retention>,
) -> Result<bool, String> {
    let moved = move_oldest(sealed, store).map_err(|error| with_cause(&error))?;
    if let Some(retention) = retention {
        let retained = store.retain(retention, now_us());
        retained.map_err(|error| with_cause(&error))?;
    }
    if moved.is_some() || retention.is_some() {
        let now = store.status().map_err(|error| with_cause(&error))?;
        let put = moved.unwrap_or_default();
        let mut status = archive.status.lock();
        status.stored += put.stored;
        status.refused += put.refused;
        (status.store_bytes, status.days) = (now.bytes, now.days);
    }
    Ok(moved.is_some())
}
