// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which path gets which profile, and what of it has changed since it was last told.

use crate::key::PathKey;
use crate::profile::Profile;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Profiles in use are bounded: of more, those with the fewest paths are left out.
#[derive(Debug, Default)]
pub(crate) struct Assigned {
    profiles: HashMap<PathKey, Profile>,
    paths: BTreeMap<Profile, BTreeSet<PathKey>>,
    /// Those that fitted when it was last told.
    used: BTreeSet<Profile>,
    /// Paths with another profile than when it was last told.
    moved: BTreeSet<PathKey>,
}

impl Assigned {
    /// Gives a path a profile; an empty one is none.
    pub(crate) fn set(&mut self, key: PathKey, profile: Profile) {
        let before = match profile.is_empty() {
            true => self.profiles.remove(&key),
            false => self.profiles.insert(key, profile.clone()),
        };
        if before.as_ref().unwrap_or(&Profile::default()) == &profile {
            return;
        }
        if let Some(before) = before {
            self.take_off(&before, key);
        }
        if !profile.is_empty() {
            self.paths.entry(profile).or_default().insert(key);
        }
        self.moved.insert(key);
    }

    /// The path is among the changes next time, whether it gets another profile or not.
    pub(crate) fn tell_again(&mut self, key: PathKey) {
        self.moved.insert(key);
    }

    fn take_off(&mut self, profile: &Profile, key: PathKey) {
        let Some(paths) = self.paths.get_mut(profile) else {
            return;
        };
        paths.remove(&key);
        if paths.is_empty() {
            self.paths.remove(profile);
        }
    }

    /// What has changed since it was last told: what each of these paths gets now.
    pub(crate) fn changes(&mut self, most_profiles: usize) -> Vec<(PathKey, Option<Profile>)> {
        if self.moved.is_empty() {
            return Vec::new();
        }
        let used = self.fitting(most_profiles);
        for profile in used.symmetric_difference(&self.used) {
            self.moved
                .extend(self.paths.get(profile).into_iter().flatten());
        }
        self.used = used;
        let moved = std::mem::take(&mut self.moved).into_iter();
        moved.map(|key| (key, self.given(key).cloned())).collect()
    }

    fn fitting(&self, most_profiles: usize) -> BTreeSet<Profile> {
        let mut by_use: Vec<(&Profile, usize)> = self
            .paths
            .iter()
            .map(|(profile, paths)| (profile, paths.len()))
            .collect();
        // Of two with as many paths the one that is in use stays.
        by_use.sort_by_key(|(profile, paths)| (usize::MAX - paths, !self.used.contains(profile)));
        let fitting = by_use.into_iter().take(most_profiles);
        fitting.map(|(profile, _)| profile.clone()).collect()
    }

    fn given(&self, key: PathKey) -> Option<&Profile> {
        let profile = self.profiles.get(&key);
        profile.filter(|profile| self.used.contains(profile))
    }

    /// All, as it was last told.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&Profile, &BTreeSet<PathKey>)> {
        let all = self.paths.iter();
        all.filter(|(profile, _)| self.used.contains(profile))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(number: u8) -> PathKey {
        let remote = std::net::Ipv4Addr::new(10, 0, number, 1);
        PathKey::new("192.0.2.1".parse().unwrap(), remote.into())
    }

    fn profile(number: u64) -> Profile {
        Profile {
            send_buffer_bytes: (number > 0).then_some(number),
            ..Profile::default()
        }
    }

    proptest! {
        /// Whoever takes the changes one after the other has what whoever asks for all is told.
        #[test]
        fn changes_lead_to_what_all_says(
            turns in proptest::collection::vec(proptest::collection::vec((0..20_u8, 0..8_u64), 0..10), 1..20),
            most in 1..6_usize,
        ) {
            let mut assigned = Assigned::default();
            let mut has = BTreeMap::<PathKey, Profile>::new();
            for turn in turns {
                for (path, number) in turn {
                    assigned.set(key(path), profile(number));
                }
                for (key, profile) in assigned.changes(most) {
                    match profile {
                        Some(profile) => has.insert(key, profile),
                        None => has.remove(&key),
                    };
                }
                let all: BTreeMap<PathKey, Profile> = assigned
                    .all()
                    .flat_map(|(profile, keys)| keys.iter().map(|key| (*key, profile.clone())))
                    .collect();
                prop_assert_eq!(&has, &all);
                let profiles: BTreeSet<&Profile> = has.values().collect();
                prop_assert!(profiles.len() <= most);
                prop_assert!(assigned.changes(most).is_empty());
            }
        }
    }
}
