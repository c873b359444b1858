// SPDX-License-Identifier: MIT OR Apache-2.0
//! The worker that moves segments from the spool to the store, and has the store forget what is kept no longer.

use super::spool_worker::with_cause;
use super::{Archive, Settings};
use anyhow::Result;
use fatpath_archive::store::{Location, Migration, Retention, Store, Watch};
use fatpath_archive::{SealedSegments, move_oldest};
use fatpath_clock::now_us;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// The wait for a segment ends at least this often.
const TICK: Duration = Duration::from_millis(100);

/// From an attempt that failed to the next.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// What is kept no longer goes so often.
const RETAIN_INTERVAL: Duration = Duration::from_secs(60);

/// A store that changes is asked so often how it fares: a server asks the system for the size of each file for it.
const STATUS_INTERVAL: Duration = Duration::from_secs(10);

/// How far a change of a server's tables is, is logged so often.
const MIGRATION_LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Moves segments until `shutdown`. Where the store is away they wait in the spool, and nothing else waits.
pub(crate) fn follow_segments(archive: &Archive, shutdown: &CancellationToken) -> Result<()> {
    let mut opened = None;
    let mut retaining = Retaining::default();
    let mut logged = None;
    while !shutdown.is_cancelled() {
        archive.wait_until_on(shutdown);
        let Some(settings) = archive.settings() else {
            continue;
        };
        let mut watch = watch(archive, shutdown, &settings, &mut logged);
        let rest = match work(archive, &settings, &mut opened, &mut retaining, &mut watch) {
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

/// Says how far a change of a server's tables is. It ends with the daemon, and when the policy asks for another store than
/// that of `settings`.
fn watch<'a>(
    archive: &'a Archive,
    shutdown: &'a CancellationToken,
    settings: &Settings,
    logged: &'a mut Option<Instant>,
) -> impl FnMut(&Migration) -> bool + use<'a> {
    let url = url(Some(settings));
    move |migration| {
        if logged.is_none_or(|at| at.elapsed() >= MIGRATION_LOG_INTERVAL) {
            tracing::info!("archive: the store: {migration}; events wait in the spool");
            *logged = Some(Instant::now());
        }
        archive.status.lock().store_error = Some(migration.to_string());
        !shutdown.is_cancelled() && self::url(archive.settings().as_ref()) == url
    }
}

/// Of the server that they name.
fn url(settings: Option<&Settings>) -> Option<String> {
    Some(settings?.server.as_ref()?.url.clone())
}

/// When the store was last asked to forget what is kept no longer, and why it did not.
#[derive(Default)]
struct Retaining {
    asked: Option<(Settings, Instant)>,
    failure: Option<String>,
}

impl Retaining {
    fn is_due(&self, settings: &Settings) -> bool {
        let asked = self.asked.as_ref();
        asked.is_none_or(|(of, at)| of != settings || at.elapsed() >= RETAIN_INTERVAL)
    }

    /// Where it fails, old days go later: segments are moved meanwhile.
    fn ask(&mut self, store: &mut dyn Store, settings: &Settings, watch: &mut Watch) {
        let retention = Retention {
            days: settings.days,
            total_bytes: settings.total_bytes,
        };
        let prepared = store.prepare(watch);
        let retained = prepared.and_then(|()| store.retain(retention, now_us()));
        let failed = retained.err();
        self.failure = failed.map(|error| format!("old days stay: {}", with_cause(&error)));
        self.asked = Some((settings.clone(), Instant::now()));
    }
}

/// The store.
struct Opened {
    location: Location,
    store: Box<dyn Store + Send>,
    looks: Looks,
}

/// When the store was last asked how it fares.
#[derive(Default)]
struct Looks {
    at: Option<Instant>,
    /// It has changed since.
    is_stale: bool,
}

impl Looks {
    /// `is_empty`: no day was there then. The first one is shown at once.
    fn is_due(&self, is_empty: bool, now: Instant) -> bool {
        let Some(at) = self.at else { return true };
        let age = now.saturating_duration_since(at);
        // Days go, and other hosts write.
        age >= RETAIN_INTERVAL || self.is_stale && (is_empty || age >= STATUS_INTERVAL)
    }

    fn look(&mut self, archive: &Archive, store: &dyn Store) -> Result<(), String> {
        let is_empty = archive.status.lock().days.is_empty();
        if !self.is_due(is_empty, Instant::now()) {
            return Ok(());
        }
        let now = store.status().map_err(|error| with_cause(&error))?;
        let mut status = archive.status.lock();
        (status.store_bytes, status.days) = (now.bytes, now.days);
        (self.at, self.is_stale) = (Some(Instant::now()), false);
        Ok(())
    }
}

/// Whether there may be more to do at once.
fn work(
    archive: &Archive,
    settings: &Settings,
    opened: &mut Option<Opened>,
    retaining: &mut Retaining,
    watch: &mut Watch,
) -> Result<bool, ()> {
    let sealed = archive.sealed.lock().as_ref().map(Arc::clone);
    let Some(sealed) = sealed else {
        return Ok(false);
    };
    let opened = open(archive, settings, opened);
    let done = opened.and_then(|Opened { store, looks, .. }| {
        let store = &mut **store;
        let moved = move_and_retain(archive, store, &sealed, settings, retaining, watch)?;
        looks.is_stale |= moved;
        if retaining.failure.is_none() {
            looks.look(archive, store)?;
        }
        Ok(moved)
    });
    let failure = done.as_ref().err().or(retaining.failure.as_ref()).cloned();
    archive.note("the store", failure, |status| &mut status.store_error);
    done.map_err(drop)
}

/// The store that the policy asks for, opened when it is another one than before.
fn open<'o>(
    archive: &Archive,
    settings: &Settings,
    opened: &'o mut Option<Opened>,
) -> Result<&'o mut Opened, String> {
    let location = archive.location_of(Some(settings))?;
    if opened.as_ref().is_none_or(|open| open.location != location) {
        let store = location.open().map_err(|error| with_cause(&error))?;
        *opened = Some(Opened {
            location,
            store,
            looks: Looks::default(),
        });
    }
    Ok(opened.as_mut().expect("it was opened above"))
}

/// Whether a segment was moved.
fn move_and_retain(
    archive: &Archive,
    store: &mut dyn Store,
    sealed: &Arc<SealedSegments>,
    settings: &Settings,
    retaining: &mut Retaining,
    watch: &mut Watch,
) -> Result<bool, String> {
    if !sealed.is_empty() {
        store.prepare(watch).map_err(|error| with_cause(&error))?;
    }
    let moved = move_oldest(sealed, store).map_err(|error| with_cause(&error))?;
    if let Some(put) = &moved {
        let mut status = archive.status.lock();
        status.stored += put.stored;
        status.refused += put.refused;
        // The store works again.
        retaining.failure = None;
    }
    if retaining.is_due(settings) {
        retaining.ask(store, settings, watch);
    }
    Ok(moved.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fatpath_archive::store::ServerAddress;

    #[test]
    fn a_store_that_changes_is_asked_how_it_fares_now_and_then() {
        let begun = Instant::now();
        let (soon, later) = (begun + Duration::from_secs(1), begun + STATUS_INTERVAL);
        let mut looks = Looks::default();
        assert!(looks.is_due(true, begun), "never asked");
        looks.at = Some(begun);
        assert!(!looks.is_due(true, later), "nothing has changed");
        assert!(looks.is_due(true, begun + RETAIN_INTERVAL));
        looks.is_stale = true;
        assert!(!looks.is_due(false, soon));
        assert!(looks.is_due(true, soon), "its first day");
        assert!(looks.is_due(false, later));
    }

    #[test]
    fn a_change_of_tables_ends_with_the_daemon_or_for_another_store() {
        let folder = tempfile::tempdir().unwrap();
        let (archive, shutdown) = (Archive::new(folder.path()), CancellationToken::new());
        let at = |url: &str| {
            let mut settings = Settings::default();
            settings.server = Some(fatpath_policy::ArchiveServer {
                url: url.to_owned(),
                password_file: None,
            });
            settings
        };
        let (begun, mut logged) = (at("postgres://a@b/c"), None);
        let mut goes_on = watch(&archive, &shutdown, &begun, &mut logged);
        let mut is_watched = |settings: Option<Settings>| {
            archive.set_policy(settings);
            goes_on(&MIGRATION)
        };
        let mut shorter = begun.clone();
        shorter.days = 1;
        assert!(is_watched(Some(begun.clone())) && is_watched(Some(shorter)));
        assert!(!is_watched(Some(at("postgres://a@b/d"))));
        assert!(!is_watched(Some(Settings::default())));
        assert!(!is_watched(None));
        assert!(is_watched(Some(begun.clone())));
        shutdown.cancel();
        assert!(!is_watched(Some(begun.clone())));
    }

    const MIGRATION: Migration = Migration {
        from: 1,
        to: 2,
        elapsed: Duration::ZERO,
        index: None,
    };

    #[test]
    fn old_days_that_could_not_go_are_tried_when_they_are_due_again() {
        // Nobody listens there.
        let address = ServerAddress::new("postgres://a@127.0.0.1:1/x", None).unwrap();
        let mut store = Location::Server(address).open().unwrap();
        let (mut retaining, settings) = (Retaining::default(), Settings::default());
        assert!(retaining.is_due(&settings));
        retaining.ask(&mut *store, &settings, &mut |_| true);
        let failure = retaining.failure.as_ref().unwrap();
        assert!(
            failure.starts_with("old days stay: postgres://"),
            "{failure}"
        );
        assert!(!retaining.is_due(&settings));
        let mut changed = settings;
        changed.days += 1;
        assert!(retaining.is_due(&changed));
    }
}
