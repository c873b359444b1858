// SPDX-License-Identifier: MIT OR Apache-2.0
//! All paths that are known, bounded: the one that was seen longest ago makes room.

use crate::assigned::Assigned;
use crate::choose::Host;
use crate::estimate::Estimate;
use crate::evidence::Evidence;
use crate::key::PathKey;
use crate::path::Path;
use crate::profile::Profile;
use std::collections::{BTreeSet, HashMap};

/// What is known of a path is fresh for an hour after a flow. Of one that is seen all the time it is told again six times as often.
const FRESH_US: i64 = 3_600_000_000;

/// And where it is off by more than this share.
const TOLD_OFF: f64 = 0.05;

/// How much is kept, and told apart.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Paths.
    pub paths: usize,
    /// Profiles: of more, those with the fewest paths are left out.
    pub profiles: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            paths: 65_536,
            profiles: 256,
        }
    }
}

/// What the flows of a path go by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Known {
    /// Until when it counts, µs since 1970.
    pub until_us: i64,
    /// Round-trip time without a queue, µs.
    pub base_rtt_us: f64,
    /// Bandwidth-delay product; 0: not known for certain.
    pub bdp_bytes: f64,
}

impl Known {
    fn of(path: &Path, estimate: &Estimate) -> Known {
        Known {
            until_us: estimate.seen_us.saturating_add(FRESH_US),
            base_rtt_us: estimate.base_rtt_us.value,
            bdp_bytes: path.certain_bdp_bytes(estimate).unwrap_or(0.0),
        }
    }

    /// Whether it is to take the place of what was told: that is old, or no longer right.
    fn replaces(&self, told: &Known) -> bool {
        let is_off = |now: f64, then: f64| (now - then).abs() > TOLD_OFF * then;
        self.until_us.saturating_sub(told.until_us) > FRESH_US / 6
            || is_off(self.base_rtt_us, told.base_rtt_us)
            || is_off(self.bdp_bytes, told.bdp_bytes)
    }
}

/// All known paths.
#[derive(Debug, Default)]
pub struct Paths {
    bounds: Bounds,
    paths: HashMap<PathKey, Path>,
    /// By when each was seen.
    by_age: BTreeSet<(i64, PathKey)>,
    /// Those that something was learned of since they were assigned a profile.
    moved: BTreeSet<PathKey>,
    assigned: Assigned,
    /// Of the paths that have a profile, as it was last told.
    told: HashMap<PathKey, Known>,
    host: Option<Host>,
}

impl Paths {
    /// None yet.
    pub fn new(bounds: Bounds) -> Paths {
        Paths {
            bounds,
            ..Paths::default()
        }
    }

    /// Takes what a flow showed. Answers whether it moved anything.
    pub fn learn(&mut self, key: PathKey, seen: Evidence) -> bool {
        if !seen.is_usable() {
            return false;
        }
        let path = self.paths.entry(key).or_default();
        self.by_age.remove(&(path.seen_us(), key));
        path.learn(seen);
        self.by_age.insert((path.seen_us(), key));
        self.moved.insert(key);
        self.forget_oldest();
        true
    }

    /// Takes a path as it was known before, where nothing newer is known.
    pub fn restore(&mut self, key: PathKey, path: Path) {
        let is_newer = |known: &Path| known.seen_us() >= path.seen_us();
        if path.estimate().is_none() || self.paths.get(&key).is_some_and(is_newer) {
            return;
        }
        self.forget(key);
        self.by_age.insert((path.seen_us(), key));
        self.moved.insert(key);
        self.paths.insert(key, path);
        self.forget_oldest();
    }

    /// Forgets a path. Answers whether it was known.
    pub fn forget(&mut self, key: PathKey) -> bool {
        let known = self.paths.remove(&key);
        if let Some(path) = &known {
            self.by_age.remove(&(path.seen_us(), key));
            self.moved.remove(&key);
            self.assigned.set(key, Profile::default());
            self.told.remove(&key);
        }
        known.is_some()
    }

    fn forget_oldest(&mut self) {
        while self.paths.len() > self.bounds.paths
            && let Some((_, oldest)) = self.by_age.first().copied()
        {
            self.forget(oldest);
        }
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// None is known.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// One of them.
    pub fn get(&self, key: PathKey) -> Option<&Path> {
        self.paths.get(&key)
    }

    /// Each, the one that was seen last first.
    pub fn iter(&self) -> impl Iterator<Item = (PathKey, &Path)> {
        let newest_first = self.by_age.iter().rev();
        newest_first.filter_map(|(_, key)| Some((*key, self.paths.get(key)?)))
    }

    /// Gives every path of which something was learned since the last time what it is to get now, and begins its trial.
    /// A path that is left alone gets nothing. Answers what has changed: which of the paths get what from now on.
    pub fn assign(&mut self, host: &Host, now_us: i64) -> Vec<(PathKey, Option<Profile>)> {
        let is_other_host = self.host.as_ref() != Some(host);
        if is_other_host {
            self.host = Some(host.clone());
            self.moved = self.paths.keys().copied().collect();
        }
        for key in std::mem::take(&mut self.moved) {
            self.assign_one(key, host, now_us, is_other_host);
        }
        self.assigned.changes(self.bounds.profiles)
    }

    fn assign_one(&mut self, key: PathKey, host: &Host, now_us: i64, is_other_host: bool) {
        let Some((path, estimate)) = self
            .paths
            .get_mut(&key)
            .and_then(|path| path.estimate().map(|estimate| (path, estimate)))
        else {
            return;
        };
        let chosen = match path.guard.quarantine(now_us) {
            Some(_) => Profile::default(),
            None => {
                path.choice(host, host.trust(&key))
                    .unwrap_or_default()
                    .profile
            }
        };
        let keeps_law = !is_other_host && path.guard.keeps_law(&chosen, &estimate, now_us);
        let starts_too_low = |now: &Profile| {
            estimate.has_rate_of_few() && chosen.initial_rate_bps > now.initial_rate_bps
        };
        let is_near = |now: &Profile| now.is_near(&chosen) && !starts_too_low(now);
        let stays = |now: &&Profile| is_near(now) || keeps_law;
        let now = path.guard.profile().filter(stays);
        let profile = now.cloned().unwrap_or(chosen);
        path.guard.begin(&profile, &estimate, now_us);
        let known = Known::of(path, &estimate);
        if profile.is_empty() {
            self.told.remove(&key);
        } else if self.told.get(&key).is_none_or(|told| known.replaces(told)) {
            self.told.insert(key, known);
            self.assigned.tell_again(key);
        }
        self.assigned.set(key, profile);
        if keeps_law {
            // Another one is due in a moment, whether or not a flow tells anything until then.
            self.moved.insert(key);
        }
    }

    /// What the flows of a path go by.
    pub fn known(&self, key: PathKey) -> Option<Known> {
        let path = self.paths.get(&key)?;
        Some(Known::of(path, &path.estimate()?))
    }

    /// Which paths get which profile, by the last answer of [`Paths::assign`]. Paths whose profile is left out get nothing.
    pub fn assigned(&self) -> impl Iterator<Item = (&Profile, &BTreeSet<PathKey>)> {
        self.assigned.all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Loss;
    use crate::guard::LAW_KEPT_US;
    use crate::path::tests::flow;
    use crate::profile::Law;

    fn key(number: u32) -> PathKey {
        let remote = std::net::Ipv4Addr::from_bits(0x0a00_0000 + (number << 8));
        PathKey::new("192.0.2.1".parse().unwrap(), remote.into())
    }

    fn host() -> Host {
        Host {
            law: "cubic".into(),
            send_autotuned_bytes: 4 << 20,
            receive_autotuned_bytes: 6 << 20,
            most_buffer_bytes: 256 << 20,
            overrides: false,
            private: Vec::new(),
        }
    }

    #[test]
    fn the_path_that_was_seen_longest_ago_makes_room() {
        let mut paths = Paths::new(Bounds {
            paths: 3,
            ..Bounds::default()
        });
        for number in 0..4 {
            assert!(paths.learn(key(number), flow(number.into(), 1e9)));
        }
        paths.learn(key(1), flow(9, 1e9));
        paths.learn(key(4), flow(10, 1e9));
        let known: Vec<PathKey> = paths.iter().map(|(key, _)| key).collect();
        assert_eq!(known, [key(4), key(1), key(3)]);
        assert!(paths.forget(key(4)) && !paths.forget(key(4)));
        assert_eq!((paths.len(), paths.by_age.len()), (2, 2));
    }

    #[test]
    fn a_flood_of_flows_that_carry_nothing_is_not_remembered() {
        let mut paths = Paths::default();
        for number in 0..10_000 {
            let mut empty = flow(1, 1e9);
            empty.bytes = 40;
            assert!(!paths.learn(key(number), empty));
        }
        assert!(paths.is_empty());
    }

    #[test]
    fn paths_share_profiles_and_a_path_in_quarantine_gets_none() {
        let mut paths = Paths::default();
        for number in 0..100 {
            paths.learn(key(number), flow(number.into(), 1e9 + f64::from(number)));
        }
        assert_eq!(paths.assign(&host(), 0).len(), 100);
        assert_eq!(paths.assign(&host(), 0), []);
        let assigned: Vec<usize> = paths.assigned().map(|(_, keys)| keys.len()).collect();
        assert_eq!(assigned, [100]);
        let mut harmed = flow(1000, 1e9);
        harmed.retransmitted_pkts = harmed.sent_pkts / 2;
        let seen_us = harmed.seen_us;
        paths.learn(key(7), harmed);
        assert_eq!(paths.assign(&host(), seen_us), [(key(7), None)]);
        let assigned: Vec<usize> = paths.assigned().map(|(_, keys)| keys.len()).collect();
        assert_eq!(assigned, [99]);
    }

    #[test]
    fn what_the_law_on_trial_sends_again_does_not_end_it() {
        let lossy = |number: u64, of_100: u64| {
            let seen = flow(number, 1e9);
            Evidence {
                // Too short to have found the path's rate.
                seen_us: seen.begin_us + 3_000_000,
                loss: Some(Loss::Random),
                retransmitted_pkts: seen.sent_pkts * of_100 / 100,
                ..seen
            }
        };
        let mut paths = Paths::default();
        let law = |paths: &Paths| paths.assigned().next().and_then(|(given, _)| given.law);
        paths.learn(key(0), lossy(0, 10));
        paths.assign(&host(), 0);
        assert_eq!(law(&paths), Some(Law::Cubic));
        paths.learn(key(0), lossy(0, 4));
        paths.assign(&host(), 0);
        assert_eq!(law(&paths), Some(Law::Bbr));
        for number in 1..30 {
            paths.learn(key(0), lossy(number, 7));
            paths.assign(&host(), 0);
            assert_eq!(law(&paths), Some(Law::Bbr), "{number}");
        }
    }

    #[test]
    fn a_path_does_not_leave_bbr_at_once() {
        let told = |number, loss| Evidence {
            loss: Some(loss),
            ..flow(number, 1e9)
        };
        let law = |paths: &Paths| paths.assigned().next().and_then(|(given, _)| given.law);
        let mut paths = Paths::default();
        paths.learn(key(0), told(0, Loss::Random));
        paths.assign(&host(), 0);
        assert_eq!(law(&paths), Some(Law::Bbr));
        (1..4).for_each(|number| assert!(paths.learn(key(0), told(number, Loss::Queue))));
        paths.assign(&host(), LAW_KEPT_US - 1);
        assert_eq!(law(&paths), Some(Law::Bbr));
        paths.assign(&host(), LAW_KEPT_US);
        assert_eq!(
            law(&paths),
            Some(Law::Cubic),
            "and nobody has to tell again"
        );
    }

    #[test]
    fn a_path_with_a_short_queue_leaves_bbr_once_its_rate_is_found() {
        let law = |paths: &Paths| paths.assigned().next().and_then(|(given, _)| given.law);
        for (loss, then) in [(Loss::ShortQueue, Law::Cubic), (Loss::Random, Law::Bbr)] {
            let mut paths = Paths::default();
            let lossy = Evidence {
                loss: Some(loss),
                ..flow(0, 1e9)
            };
            paths.learn(key(0), lossy.clone());
            paths.assign(&host(), 0);
            assert_eq!(law(&paths), Some(Law::Bbr));
            let found = Evidence {
                loss: None,
                law: Some(Law::Bbr),
                excess_share: Some(0.001),
                ..lossy
            };
            paths.learn(key(0), found);
            paths.assign(&host(), 1);
            assert_eq!(law(&paths), Some(then));
        }
    }

    #[test]
    fn a_path_with_a_short_queue_does_not_come_and_go_from_bbr() {
        let law = |paths: &Paths| paths.assigned().next().and_then(|(given, _)| given.law);
        let mut paths = Paths::default();
        let lossy = Evidence {
            loss: Some(Loss::ShortQueue),
            ..flow(0, 1e9)
        };
        let found = |number| Evidence {
            loss: None,
            law: Some(Law::Bbr),
            excess_share: Some(0.001),
            ..flow(number, 1e9)
        };
        let mut given = |seen: &[Evidence], now_us| {
            for seen in seen {
                paths.learn(key(0), seen.clone());
            }
            paths.assign(&host(), now_us);
            law(&paths)
        };
        assert_eq!(given(std::slice::from_ref(&lossy), 0), Some(Law::Bbr));
        assert_eq!(given(&[found(1)], 1), Some(Law::Cubic));
        // Short ones, which find no rate.
        let short: Vec<Evidence> = (2..22)
            .map(|number| Evidence {
                loss: None,
                ..flow(number, 1e9)
            })
            .collect();
        assert_eq!(given(&short, 2), Some(Law::Bbr));
        assert_eq!(given(&[found(22)], 3), Some(Law::Bbr));
        assert_eq!(given(&[], 2 + LAW_KEPT_US), Some(Law::Cubic));
    }

    #[test]
    fn a_start_follows_the_rate_that_a_first_flow_shows_later() {
        let rate = |paths: &Paths| paths.assigned().next().unwrap().0.initial_rate_bps;
        let mut paths = Paths::default();
        paths.learn(key(0), flow(0, 0.8e9));
        paths.assign(&host(), 0);
        let first = rate(&paths).unwrap();
        paths.learn(key(0), flow(0, 1.1e9));
        paths.assign(&host(), 1);
        assert!(rate(&paths).unwrap() > first);
    }

    #[test]
    fn a_path_keeps_its_profile_while_the_estimate_moves_little() {
        let mut paths = Paths::default();
        paths.learn(key(0), flow(0, 1e9));
        let given = paths.assign(&host(), 0);
        for number in 1..40 {
            let wave = if number % 2 == 0 { 1.15 } else { 0.85 };
            paths.learn(key(0), flow(number, 1e9 * wave));
            let told = paths.assign(&host(), 0);
            assert!(told.is_empty() || told == given, "{number}: {told:?}");
        }
        (40..60).for_each(|number| assert!(paths.learn(key(0), flow(number, 4e9))));
        assert_eq!(paths.assign(&host(), 0).len(), 1);
        paths.forget(key(0));
        assert_eq!(paths.assign(&host(), 0), [(key(0), None)]);
        assert!(paths.assigned().next().is_none());
    }

    #[test]
    fn a_path_that_flows_use_stays_fresh() {
        let mut paths = Paths::default();
        let mut told = 0;
        for number in 0..60 {
            paths.learn(key(0), flow(number, 1e9));
            told += paths.assign(&host(), 0).len();
            let known = paths.known(key(0)).unwrap();
            assert_eq!(known.until_us, flow(number, 1e9).seen_us + FRESH_US);
            assert_eq!((known.base_rtt_us, known.bdp_bytes), (100e3, 12.5e6));
        }
        // A flow a minute, told again after more than ten.
        assert_eq!(told, 6);
        assert_eq!(paths.known(key(1)), None);
    }

    /// The profile is as it was: its steps are coarser.
    #[test]
    fn what_is_known_is_told_again_where_it_is_off() {
        for (bps, is_told) in [(1.04e9, false), (1.06e9, true)] {
            let mut paths = Paths::default();
            paths.learn(key(0), flow(0, 1e9));
            let given = paths.assign(&host(), 0);
            paths.learn(key(0), flow(1, bps));
            let again = paths.assign(&host(), 0);
            assert_eq!(again.len(), usize::from(is_told), "{bps}");
            assert!(again.is_empty() || again == given);
        }
    }

    /// A queue of an eighth of the way cannot be told from peers that are an eighth farther away.
    #[test]
    fn of_peers_at_several_distances_no_bandwidth_delay_product_is_known() {
        for (far_us, bdp_bytes) in [(103e3, 12.5e6), (120e3, 0.0)] {
            let mut paths = Paths::default();
            for number in 0..8 {
                let min_rtt_us = if number % 2 == 0 { 100e3 } else { far_us };
                let one = Evidence {
                    min_rtt_us,
                    ..flow(number, 1e9)
                };
                paths.learn(key(0), one);
            }
            assert_eq!(
                paths.known(key(0)).unwrap().bdp_bytes,
                bdp_bytes,
                "{far_us}"
            );
        }
    }

    #[test]
    fn a_lossy_start_ends_starts_for_an_hour() {
        let starts = |paths: &mut Paths| {
            paths.assign(&host(), 0);
            let mut profiles = paths.assigned();
            profiles.any(|(profile, _)| profile.initial_rate_bps.is_some())
        };
        let mut paths = Paths::default();
        (0..20).for_each(|number| assert!(paths.learn(key(0), flow(number, 1e9))));
        assert!(starts(&mut paths));
        paths.learn(
            key(0),
            Evidence {
                sent_pkts: 1_000,
                retransmitted_pkts: 20,
                ..flow(20, 1e9)
            },
        );
        assert!(!starts(&mut paths));
        paths.learn(key(0), flow(79, 1e9));
        assert!(!starts(&mut paths));
        paths.learn(key(0), flow(81, 1e9));
        assert!(starts(&mut paths));
    }

    #[test]
    fn another_host_asks_for_another_choice() {
        let mut paths = Paths::default();
        paths.learn(key(0), flow(0, 1e9));
        paths.assign(&host(), 0);
        let reno = Host {
            law: "reno".into(),
            ..host()
        };
        assert_eq!(paths.assign(&reno, 0).len(), 1);
        assert!(paths.assigned().all(|(profile, _)| profile.law.is_none()));
    }

    #[test]
    fn the_profiles_of_the_fewest_paths_are_left_out() {
        let mut paths = Paths::new(Bounds {
            profiles: 1,
            ..Bounds::default()
        });
        for number in 0..3 {
            paths.learn(key(number), flow(number.into(), 1e9));
        }
        paths.learn(key(3), flow(3, 4e9));
        paths.assign(&host(), 0);
        let mut assigned = paths.assigned();
        let (_, keys) = assigned.next().unwrap();
        assert_eq!(*keys, BTreeSet::from([key(0), key(1), key(2)]));
        assert!(assigned.next().is_none());
    }

    #[test]
    fn what_was_known_before_does_not_hide_what_is_newer() {
        let mut old = Path::default();
        old.learn(flow(1, 1e9));
        let json = serde_json::to_string(&old).unwrap();
        let restored: Path = serde_json::from_str(&json).unwrap();
        assert_eq!(restored, old);
        let mut paths = Paths::default();
        paths.learn(key(0), flow(5, 2e9));
        paths.restore(key(0), old.clone());
        assert_eq!(paths.get(key(0)).unwrap().flows, 1);
        assert_eq!(
            paths
                .get(key(0))
                .unwrap()
                .estimate()
                .unwrap()
                .rate
                .unwrap()
                .bps
                .value,
            2e9
        );
        paths.restore(key(1), old);
        paths.restore(key(2), Path::default());
        assert_eq!(paths.len(), 2);
    }
}
