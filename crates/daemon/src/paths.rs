// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is learned of paths, and what their flows get for it. A worker takes what flows tell from the table of the
//! instruments, and gives the engine rules for the flows that no rule of the policy file matches.
//!
//! What is known is `fatpath-path`'s affair. The policy's section `[auto]` says whether anything is learned.

pub(crate) mod answers;
mod host;
mod learned;
mod measured;
mod memory;
mod rules;

use crate::archive::Archive;
use anyhow::{Result, anyhow};
use fatpath_clock::monotonic_ns;
use fatpath_clock::steady_unix_ns;
use fatpath_path::{Evidence, PathKey, Paths, Profile};
use fatpath_policy::{Auto, AutoMode, Policy, Prefix};
use ipnet::IpNet;
use parking_lot::Mutex;
use std::time::Instant;

pub(crate) use host::{Autotuned, most_buffer_bytes};
pub use host::{defaults_of_host, most_measured_buffer_bytes};
use learned::Given;
pub(crate) use learned::Learned;
use measured::MeasuredState;
pub(crate) use measured::{Measured, rule_measured};
pub(crate) use memory::Memory;

/// The paths of this daemon. The engine's lock is taken before these, and of these an earlier one before a later one.
#[derive(Default)]
pub(crate) struct PathsState {
    settings: Mutex<Auto>,
    autotuned: Mutex<Autotuned>,
    paths: Mutex<Paths>,
    measured: Mutex<MeasuredState>,
}

impl PathsState {
    /// A policy became live, on a host that grows buffers by itself so far.
    pub(crate) fn set_policy(&self, settings: Auto, autotuned: Autotuned) {
        let mut live = self.settings.lock();
        *self.autotuned.lock() = autotuned;
        let mut paths = self.paths.lock();
        match settings.mode {
            AutoMode::Off => *paths = Paths::default(),
            AutoMode::Observe | AutoMode::Tune => {
                let known: Vec<PathKey> = paths.iter().map(|(key, _)| key).collect();
                let excluded = known.into_iter();
                let excluded = excluded.filter(|key| is_excluded(&settings, key.prefix));
                excluded.for_each(|key| _ = paths.forget(key));
            }
        }
        *live = settings;
    }

    pub(crate) fn mode(&self) -> AutoMode {
        self.settings.lock().mode
    }

    /// Takes what flows tell. Answers of which paths something was learned.
    pub(crate) fn learn(&self, told: Vec<(PathKey, Evidence)>) -> Vec<PathKey> {
        let (settings, mut paths) = (self.settings.lock(), self.paths.lock());
        let told = told
            .into_iter()
            .filter(|(key, _)| !is_excluded(&settings, key.prefix));
        told.filter_map(|(key, evidence)| paths.learn(key, evidence).then_some(key))
            .collect()
    }

    /// Puts what is due into the archive; without `now` everything that waits.
    pub(crate) fn store(&self, memory: &mut Memory, archive: &Archive, now: Option<Instant>) {
        memory.store(&self.paths.lock(), archive, now);
    }

    /// Takes what was known when the daemon last ran. Answers how many paths are known.
    pub(crate) fn restore(&self, archive: &Archive) -> Result<usize> {
        let known = memory::known(archive, now_us())?;
        let (settings, mut paths) = (self.settings.lock(), self.paths.lock());
        for (key, path) in known {
            if !is_excluded(&settings, key.prefix) {
                paths.restore(key, path);
            }
        }
        Ok(paths.len())
    }

    /// Gives each path what it is to get now. Answers what has changed, or all.
    pub(crate) fn assign(&self, is_to_tell_all: bool) -> Vec<(PathKey, Option<Given>)> {
        let host = self.host();
        let mut paths = self.paths.lock();
        let changes = paths.assign(&host, now_us());
        let told: Vec<(PathKey, Option<Profile>)> = match is_to_tell_all {
            true => all_of(&paths),
            false => changes,
        };
        let given = |(key, profile): (PathKey, Option<Profile>)| {
            let given = profile.map(|profile| Given::new(&profile, paths.known(key)));
            (key, given)
        };
        told.into_iter().map(given).collect()
    }

    /// What this host does by itself, and what the policy allows.
    fn host(&self) -> fatpath_path::Host {
        let settings = self.settings.lock().clone();
        host::read(*self.autotuned.lock(), &settings)
    }

    /// The rules for what paths get.
    ///
    /// # Errors
    /// When the policy's reader refuses one, which is a defect.
    pub(crate) fn rules(&self) -> Result<Policy> {
        let paths = self.paths.lock();
        let profiles = paths.assigned().map(|(profile, _)| profile);
        rules::learned_policy(profiles).map_err(|problems| {
            let problem = problems.first().map(ToString::to_string);
            anyhow!("{}", problem.unwrap_or_default())
        })
    }

    /// Forgets the paths to a prefix or an address. Answers how many there were.
    pub(crate) fn forget(&self, prefix: IpNet) -> usize {
        let mut paths = self.paths.lock();
        let keys = paths.iter().map(|(key, _)| key);
        let keys: Vec<PathKey> = keys.filter(|key| overlap(prefix, key.prefix)).collect();
        keys.iter().for_each(|key| _ = paths.forget(*key));
        self.forget_measured(prefix);
        keys.len()
    }
}

fn all_of(paths: &Paths) -> Vec<(PathKey, Option<Profile>)> {
    let assigned = paths.assigned();
    let of_each = assigned
        .flat_map(|(profile, keys)| keys.iter().map(move |key| (*key, Some(profile.clone()))));
    of_each.collect()
}

/// An address is part of its path, and a short prefix has several.
fn overlap(one: IpNet, other: IpNet) -> bool {
    one.contains(&other) || other.contains(&one)
}

/// What is to be added to a time of CLOCK_MONOTONIC for its date, µs.
pub(crate) fn unix_minus_monotonic_us() -> i64 {
    (steady_unix_ns(0) / 1000) as i64
}

/// On the clock by which flows are dated.
fn now_us() -> i64 {
    (steady_unix_ns(monotonic_ns()) / 1000) as i64
}

/// Nothing is learned of this host itself, nor of a path to any address that the policy excludes.
fn is_excluded(settings: &Auto, peers: IpNet) -> bool {
    let overlaps = |excluded: &Prefix| {
        excluded.contains(peers.network()) || peers.contains(&excluded.address())
    };
    peers.network().is_loopback() || settings.exclude.iter().any(overlaps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fatpath_path::path_of;

    #[test]
    fn a_path_to_an_excluded_address_is_excluded() {
        let excludes = |prefix: &str, remote: &str| {
            let policy = format!("[auto]\nexclude = [\"{prefix}\"]\n");
            let settings = fatpath_policy::parse(&policy, None).unwrap().auto;
            is_excluded(&settings, path_of(remote.parse().unwrap()))
        };
        assert!(excludes("192.0.0.0/16", "192.0.2.1"));
        assert!(excludes("192.0.2.77", "192.0.2.1"));
        assert!(!excludes("192.0.3.0/24", "192.0.2.1"));
        assert!(excludes("192.0.3.0/24", "127.0.0.1"));
        assert!(excludes("2001:db8::/32", "2001:db8:9::1"));
    }
}
