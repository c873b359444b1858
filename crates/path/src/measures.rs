// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is measured of paths: by their flows, and by tests where no flow said anything lately. A rule of the policy is for
//! several paths, and has one value: [`Measures::find`] chooses it, [`Found::is_worth`] says when it is worth a change.

use crate::following::Following;
use crate::key::{PathKey, path_of};
use crate::moment::Window;
use crate::paths::Paths;
use ipnet::IpNet;
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

/// What flows said counts before tests for an hour, and paths of which something was said within it before others.
const LATELY_US: i64 = 3_600_000_000;

/// A test is made with a peer, which may say anything: where flows of this host said something of the path, it moves what is
/// known by no more than this, until flows say something else.
const MOST_TEST_FACTOR: f64 = 4.0;

/// A change of less than a quarter changes nothing.
const LEAST_CHANGE: f64 = 1.25;

/// What a rule can give of a path.
const RTT_US: std::ops::RangeInclusive<f64> = 1.0..=60e6;
const BPS: std::ops::RangeInclusive<f64> = 1e3..=1e14;

/// Paths that are followed, and that tests told of.
const MOST_PATHS: usize = 65_536;

/// What is measured of all paths.
#[derive(Debug, Default)]
pub struct Measures {
    following: HashMap<PathKey, Following>,
    tests: HashMap<IpNet, Tested>,
}

/// What tests said of the paths to a prefix.
#[derive(Clone, Copy, Debug, Default)]
struct Tested {
    rtt: Option<Reading>,
    rate: Option<Reading>,
}

/// One number that was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// µs, or bits a second.
    pub value: f64,
    /// When, µs since 1970.
    pub at_us: i64,
    /// By what.
    pub by: By,
}

/// What measured a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Flows that the path held back; of a round-trip time all flows.
    Flows,
    /// Flows that something else held back: the path may carry more.
    HeldFlows,
    /// A test.
    Test,
    /// A test that said more or less than it may beside what flows saw before.
    BoundedTest,
}

/// What a rule asks of its paths. A part that is not measured is as the rule gives it, or not known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    /// Whether the round-trip time is measured.
    pub rtt: bool,
    /// Whether the rate is measured.
    pub rate: bool,
    /// Round-trip time where it is not measured, or not yet, µs.
    pub rtt_us: Option<f64>,
    /// Rate where it is not measured, or not yet, bits a second.
    pub bps: Option<f64>,
}

/// What was found for a rule, on one of its paths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// The peers.
    pub prefix: IpNet,
    /// This host's address; none where tests alone know of the path.
    pub local: Option<IpAddr>,
    /// Round-trip time, µs; none where it is not asked for, or not known.
    pub rtt: Option<Reading>,
    /// Rate, bits a second; none likewise.
    pub rate: Option<Reading>,
}

impl Measures {
    /// Takes windows of flows that closed since the last time. Paths that `wanted` leaves out are not followed.
    pub fn take(
        &mut self,
        closed: impl IntoIterator<Item = (PathKey, Window)>,
        wanted: impl Fn(&PathKey) -> bool,
    ) {
        let mut of_paths: HashMap<PathKey, Vec<Window>> = HashMap::new();
        for (key, window) in closed {
            of_paths.entry(key).or_default().push(window);
        }
        for (key, windows) in of_paths {
            if wanted(&key) {
                self.following.entry(key).or_default().take(windows);
            }
        }
        keep_newest(&mut self.following, Following::at_us);
    }

    /// Takes what a test measured: round-trip time in µs, rate in bits a second.
    pub fn take_test(&mut self, peer: IpAddr, at_us: i64, rtt_us: Option<f64>, bps: Option<f64>) {
        let reading = |value: Option<f64>, range: &std::ops::RangeInclusive<f64>| {
            let value = value.filter(|value| range.contains(value))?;
            let by = By::Test;
            Some(Reading { value, at_us, by })
        };
        let (rtt, rate) = (reading(rtt_us, &RTT_US), reading(bps, &BPS));
        if rtt.is_some() || rate.is_some() {
            let known = self.tests.entry(path_of(peer)).or_default();
            known.rtt = rtt.or(known.rtt);
            known.rate = rate.or(known.rate);
            keep_newest(&mut self.tests, Tested::at_us);
        }
    }

    /// Keeps the paths alone that `wanted` names, and what tests told of the prefixes that `wanted_of_tests` names.
    pub fn retain(
        &mut self,
        wanted: impl Fn(&PathKey) -> bool,
        wanted_of_tests: impl Fn(&IpNet) -> bool,
    ) {
        self.following.retain(|key, _| wanted(key));
        self.tests.retain(|prefix, _| wanted_of_tests(prefix));
    }

    /// What a rule gets whose paths are those that `is_of_rule` and, of tests, `is_prefix_of_rule` name: of those that
    /// something was said of lately, else of the one of which it was said last, the path that holds most.
    pub fn find(
        &self,
        known: &Paths,
        asked: &Asked,
        now_us: i64,
        is_of_rule: impl Fn(&PathKey) -> bool,
        is_prefix_of_rule: impl Fn(&IpNet) -> bool,
    ) -> Option<Found> {
        let keys: BTreeSet<PathKey> = known
            .iter()
            .map(|(key, _)| key)
            .chain(self.following.keys().copied())
            .filter(|key| is_of_rule(key))
            .collect();
        let of_flows = keys.iter().map(|key| self.of_path(key, known, now_us));
        let untold = self.tests.iter().filter(|(prefix, _)| {
            is_prefix_of_rule(prefix) && !keys.iter().any(|key| key.prefix == **prefix)
        });
        let of_tests = untold.map(|(prefix, tested)| Found {
            prefix: *prefix,
            local: None,
            rtt: tested.rtt,
            rate: tested.rate,
        });
        let found = of_flows.chain(of_tests).map(|found| found.of(asked));
        let found: Vec<Found> = found.filter(Found::says_something).collect();
        let is_late = |one: &&Found| now_us.saturating_sub(one.at_us()) <= LATELY_US;
        let by_size = |one: &&Found, other: &&Found| {
            let sizes = [one, other].map(|found| found.size(asked));
            let sizes = sizes[0].partial_cmp(&sizes[1]);
            sizes
                .unwrap_or(std::cmp::Ordering::Equal)
                .then_with(|| other.prefix.cmp(&one.prefix))
        };
        let late = found.iter().filter(is_late).max_by(by_size);
        late.or(found.iter().max_by_key(|found| found.at_us()))
            .copied()
    }

    fn of_path(&self, key: &PathKey, known: &Paths, now_us: i64) -> Found {
        let tested = self.tests.get(&key.prefix).copied().unwrap_or_default();
        let (rtt, rate) = match self.following.get(key) {
            Some(following) => of_following(following),
            None => of_estimate(key, known),
        };
        Found {
            prefix: key.prefix,
            local: Some(key.local),
            rtt: flows_first(rtt, tested.rtt, now_us),
            rate: flows_first(rate, tested.rate, now_us),
        }
    }
}

fn of_following(following: &Following) -> (Option<Reading>, Option<Reading>) {
    let at_us = following.at_us();
    let rate = following.rate().map(|rate| Reading {
        value: rate.bps,
        at_us,
        by: by_flows(rate.is_of_path),
    });
    let rtt = following.rtt_us().map(|value| Reading {
        value,
        at_us,
        by: By::Flows,
    });
    (rtt, rate)
}

/// What was learned before the daemon started, or of flows too short to be followed.
fn of_estimate(key: &PathKey, known: &Paths) -> (Option<Reading>, Option<Reading>) {
    let Some(estimate) = known.get(*key).and_then(crate::Path::estimate) else {
        return (None, None);
    };
    let at_us = estimate.seen_us;
    let rate = estimate.rate.map(|rate| Reading {
        value: rate.bps.value,
        at_us,
        by: by_flows(rate.limit.is_none()),
    });
    let rtt = Reading {
        value: estimate.base_rtt_us.value,
        at_us,
        by: By::Flows,
    };
    (Some(rtt), rate)
}

fn by_flows(is_of_path: bool) -> By {
    match is_of_path {
        true => By::Flows,
        false => By::HeldFlows,
    }
}

fn flows_first(flows: Option<Reading>, test: Option<Reading>, now_us: i64) -> Option<Reading> {
    let is_late = |reading: &Reading| now_us.saturating_sub(reading.at_us) <= LATELY_US;
    let test = test.map(|test| flows.map_or(test, |flows| bounded(test, flows)));
    let all = flows.into_iter().chain(test);
    flows
        .filter(is_late)
        .or(all.max_by_key(|reading| reading.at_us))
}

/// Flows that something else held back do not say how much more the path carries.
fn bounded(test: Reading, flows: Reading) -> Reading {
    let most = match flows.by {
        By::HeldFlows => f64::INFINITY,
        _ => flows.value * MOST_TEST_FACTOR,
    };
    let value = test.value.max(flows.value / MOST_TEST_FACTOR).min(most);
    let by = match value == test.value {
        true => test.by,
        false => By::BoundedTest,
    };
    Reading { value, by, ..test }
}

fn keep_newest<K: Copy + Eq + std::hash::Hash, T>(
    all: &mut HashMap<K, T>,
    at_us: impl Fn(&T) -> i64,
) {
    while all.len() > MOST_PATHS
        && let Some(oldest) = all.iter().min_by_key(|(_, one)| at_us(one))
    {
        let oldest = *oldest.0;
        all.remove(&oldest);
    }
}

impl Tested {
    fn at_us(&self) -> i64 {
        let readings = self.rtt.into_iter().chain(self.rate);
        readings
            .map(|reading| reading.at_us)
            .max()
            .unwrap_or(i64::MIN)
    }
}

impl Found {
    /// What is asked for alone, within what a rule can give.
    fn of(self, asked: &Asked) -> Found {
        let within = |reading: Option<Reading>, range: std::ops::RangeInclusive<f64>| {
            reading.map(|reading| Reading {
                value: reading.value.clamp(*range.start(), *range.end()),
                ..reading
            })
        };
        Found {
            rtt: within(self.rtt, RTT_US).filter(|_| asked.rtt),
            rate: within(self.rate, BPS).filter(|_| asked.rate),
            ..self
        }
    }

    fn says_something(&self) -> bool {
        self.rtt.is_some() || self.rate.is_some()
    }

    /// When something was measured last, µs since 1970.
    pub fn at_us(&self) -> i64 {
        let readings = self.rtt.into_iter().chain(self.rate);
        readings
            .map(|reading| reading.at_us)
            .max()
            .unwrap_or(i64::MIN)
    }

    /// Bandwidth-delay product where both are known; then the round-trip time, then the rate.
    fn size(&self, asked: &Asked) -> (Option<f64>, Option<f64>, Option<f64>) {
        let value = |reading: Option<Reading>| reading.map(|reading| reading.value);
        let rtt_us = value(self.rtt).or(asked.rtt_us);
        let bps = value(self.rate).or(asked.bps);
        let bdp = rtt_us.zip(bps).map(|(rtt_us, bps)| rtt_us * bps);
        (bdp, rtt_us, bps)
    }

    /// Whether it is worth a change of what is in force: something is known that was not, or differs by a quarter or more.
    pub fn is_worth(&self, in_force: Option<&Found>) -> bool {
        let Some(in_force) = in_force else {
            return true;
        };
        let pairs = [(self.rtt, in_force.rtt), (self.rate, in_force.rate)];
        pairs.into_iter().any(|pair| match pair {
            (Some(new), Some(old)) => {
                let ratio = new.value / old.value;
                !(1.0 / LEAST_CHANGE..=LEAST_CHANGE).contains(&ratio)
            }
            (Some(_), None) => true,
            (None, _) => false,
        })
    }

    /// With what another knew of the same path that this one does not: a part that was measured does not become unknown
    /// again. The round-trip time of one path and the rate of another make no product.
    pub fn or_known_of(self, other: Option<&Found>) -> Found {
        let is_same = |other: &&Found| (other.prefix, other.local) == (self.prefix, self.local);
        let other = other.filter(is_same);
        Found {
            rtt: self.rtt.or(other.and_then(|other| other.rtt)),
            rate: self.rate.or(other.and_then(|other| other.rate)),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::tests::flow;
    use proptest::prelude::*;

    const NOW_US: i64 = 100 * LATELY_US;
    const BOTH: Asked = Asked {
        rtt: true,
        rate: true,
        rtt_us: None,
        bps: None,
    };

    fn key(number: u8) -> PathKey {
        let peer = [10, 0, number, 1];
        PathKey::new([192, 0, 2, 1].into(), peer.into())
    }

    fn window(age_s: i64, rtt_us: f64, bps: f64) -> Window {
        Window {
            flow: 1,
            at_us: NOW_US - age_s * 1_000_000,
            length_us: 1_000_000,
            rtt_us,
            mean_rtt_us: rtt_us,
            bps,
            limit: None,
            lost: false,
            receives: false,
        }
    }

    fn found(measures: &Measures, asked: &Asked) -> Option<Found> {
        measures.find(&Paths::default(), asked, NOW_US, |_| true, |_| true)
    }

    fn numbers(found: Option<Found>) -> (Option<f64>, Option<f64>) {
        let value = |reading: Option<Reading>| reading.map(|reading| reading.value);
        found.map_or((None, None), |found| (value(found.rtt), value(found.rate)))
    }

    #[test]
    fn of_several_paths_the_one_that_holds_most_counts() {
        let mut measures = Measures::default();
        let told = [
            (key(1), window(5, 10e3, 1e9)),
            (key(2), window(50, 80e3, 5e8)),
            (key(3), window(7200, 200e3, 1e9)),
        ];
        measures.take(told, |_| true);
        let both = found(&measures, &BOTH).unwrap();
        assert_eq!(both.prefix, key(2).prefix, "the third was seen long ago");
        let rate = Asked {
            rtt: false,
            rtt_us: Some(10e3),
            ..BOTH
        };
        assert_eq!(numbers(found(&measures, &rate)), (None, Some(1e9)));
        let old = measures.find(
            &Paths::default(),
            &BOTH,
            NOW_US,
            |it| *it == key(3),
            |_| false,
        );
        assert_eq!(numbers(old), (Some(200e3), Some(1e9)));
    }

    #[test]
    fn tests_count_where_no_flow_said_anything_lately() {
        let mut measures = Measures::default();
        let peer = "10.0.1.9".parse().unwrap();
        measures.take_test(peer, NOW_US - 1_000_000, Some(30e3), None);
        assert_eq!(numbers(found(&measures, &BOTH)), (Some(30e3), None));
        measures.take([(key(1), window(1000, 20e3, 1e8))], |_| true);
        assert_eq!(numbers(found(&measures, &BOTH)), (Some(20e3), Some(1e8)));
        let later_us = NOW_US + LATELY_US;
        measures.take_test(peer, later_us, None, Some(3e8));
        let later = measures.find(&Paths::default(), &BOTH, later_us, |_| true, |_| true);
        assert_eq!(numbers(later), (Some(30e3), Some(3e8)));
        assert_eq!(later.unwrap().rate.unwrap().by, By::Test);
    }

    #[test]
    fn what_was_learned_before_counts_until_flows_are_seen() {
        let mut paths = Paths::default();
        paths.learn(key(1), flow(1, 4e8));
        let mut measures = Measures::default();
        let find =
            |measures: &Measures| numbers(measures.find(&paths, &BOTH, NOW_US, |_| true, |_| true));
        assert_eq!(find(&measures), (Some(100e3), Some(4e8)));
        measures.take([(key(1), window(1, 50e3, 1e8))], |_| true);
        assert_eq!(find(&measures), (Some(50e3), Some(1e8)));
    }

    #[test]
    fn an_impossible_test_says_nothing() {
        let mut measures = Measures::default();
        let peer = "10.0.1.9".parse().unwrap();
        for (rtt_us, bps) in [(-1.0, f64::NAN), (f64::INFINITY, 0.0), (1e9, 1e15)] {
            measures.take_test(peer, NOW_US, Some(rtt_us), Some(bps));
        }
        assert_eq!(found(&measures, &BOTH), None);
    }

    #[test]
    fn what_is_not_kept_is_found_no_more() {
        let mut measures = Measures::default();
        measures.take([(key(1), window(1, 20e3, 1e8))], |_| true);
        measures.take_test("10.0.2.9".parse().unwrap(), NOW_US, Some(30e3), None);
        measures.retain(|_| false, |_| true);
        assert_eq!(numbers(found(&measures, &BOTH)), (Some(30e3), None));
        measures.retain(|_| true, |prefix| *prefix != key(2).prefix);
        assert_eq!(found(&measures, &BOTH), None);
    }

    #[test]
    fn numbers_of_two_paths_are_not_joined() {
        let mut measures = Measures::default();
        measures.take_test("10.0.1.9".parse().unwrap(), NOW_US, Some(30e3), None);
        let rtt = found(&measures, &BOTH).unwrap();
        let rate = Found {
            rate: Some(Reading {
                value: 1e8,
                ..rtt.rtt.unwrap()
            }),
            rtt: None,
            ..rtt
        };
        let joined = rtt.or_known_of(Some(&rate));
        assert_eq!(numbers(Some(joined)), (Some(30e3), Some(1e8)));
        let other_peers = Found {
            prefix: key(2).prefix,
            ..rate
        };
        let other_address = Found {
            local: Some(key(1).local),
            ..rate
        };
        assert_eq!(rtt.or_known_of(Some(&other_peers)), rtt);
        assert_eq!(rtt.or_known_of(Some(&other_address)), rtt);
        assert_eq!(rtt.or_known_of(None), rtt);
    }

    #[test]
    fn a_test_of_a_path_that_flows_know_is_bounded() {
        let later_us = NOW_US + 2 * LATELY_US;
        let after = |limit, bps| {
            let mut measures = Measures::default();
            let flow = Window {
                limit,
                ..window(1, 20e3, 1e8)
            };
            measures.take([(key(1), flow)], |_| true);
            let peer = "10.0.1.9".parse().unwrap();
            measures.take_test(peer, later_us, Some(1e6), Some(bps));
            let found = measures.find(&Paths::default(), &BOTH, later_us, |_| true, |_| true);
            let found = found.unwrap();
            assert_eq!(found.rtt.unwrap().value, 80e3);
            let rate = found.rate.unwrap();
            (rate.value, rate.by)
        };
        assert_eq!(after(None, 3e8), (3e8, By::Test));
        assert_eq!(after(None, 1e13), (4e8, By::BoundedTest));
        assert_eq!(after(None, 1e3), (25e6, By::BoundedTest));
        let held = Some(crate::Limit::Application);
        assert_eq!(after(held, 1e10), (1e10, By::Test), "they saw no bound");
        assert_eq!(after(held, 1e3).1, By::BoundedTest);
    }

    proptest! {
        /// Whatever tests say, and however long ago the flows were.
        #[test]
        fn no_test_leads_further_from_what_flows_saw_than_the_factor(
            windows in proptest::collection::vec((1e3..1e6_f64, 1e6..1e10_f64), 1..10),
            tests in proptest::collection::vec((proptest::num::f64::ANY, proptest::num::f64::ANY), 1..10),
            hours in 0..1000i64,
        ) {
            let mut measures = Measures::default();
            for ((rtt_us, bps), age_s) in windows.into_iter().zip((1..=10).rev()) {
                measures.take([(key(1), window(age_s, rtt_us, bps))], |_| true);
            }
            let saw = found(&measures, &BOTH).unwrap();
            let peer = "10.0.1.9".parse().unwrap();
            let mut now_us = NOW_US;
            for (rtt_us, bps) in tests {
                now_us += hours * LATELY_US;
                measures.take_test(peer, now_us, Some(rtt_us), Some(bps));
                let told = measures.find(&Paths::default(), &BOTH, now_us, |_| true, |_| true);
                let told = told.unwrap();
                for (saw, told) in [(saw.rtt, told.rtt), (saw.rate, told.rate)] {
                    let (Some(saw), Some(told)) = (saw, told) else { continue };
                    let ratio = told.value / saw.value;
                    prop_assert!((0.2499..=4.0001).contains(&ratio), "{saw:?} {told:?}");
                }
            }
        }

        /// What is in force is never a quarter off for longer than a look, and a path that wavers by less changes nothing.
        #[test]
        fn small_changes_change_nothing(
            rates in proptest::collection::vec(1e6..1e9_f64, 1..60),
        ) {
            let mut in_force: Option<Found> = None;
            for bps in rates {
                let at_us = NOW_US;
                let reading = |value| Some(Reading { value, at_us, by: By::Flows });
                let prefix = key(1).prefix;
                let now = Found { prefix, local: None, rtt: reading(20e3), rate: reading(bps) };
                let before = in_force.and_then(|found| found.rate);
                if now.is_worth(in_force.as_ref()) {
                    let is_small = before.is_some_and(|rate| (bps / rate.value).ln().abs() < 1.24_f64.ln());
                    prop_assert!(!is_small);
                    in_force = Some(now);
                }
                let off = bps / in_force.unwrap().rate.unwrap().value;
                prop_assert!((0.799..=1.2501).contains(&off), "{off}");
            }
        }
    }
}
