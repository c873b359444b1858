// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules whose paths are measured (`rtt = "measured"`): what is in force for each, and when another value takes its place.
//!
//! What is known of paths, and what is worth a change, is decided in `fatpath-path`; what a rule makes of it, in
//! `fatpath-policy`.

use super::{PathsState, is_excluded, most_measured_buffer_bytes, now_us, overlap};
use crate::archive::event_now;
use fatpath_api::TestOutcome;
use fatpath_archive::{Event, rfc3339};
use fatpath_measure::outcome::{rate_bps, rtt_us};
use fatpath_path::{Asked, By, Found, Measures, PathKey, Paths, Reading, Window, path_of};
use fatpath_policy::{Auto, Match, MeasuredPath, MeasuredPaths, Policy, Prefix, Rule};
use ipnet::IpNet;
use serde_json::json;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// What is measured, and what the live rules have of it.
#[derive(Default)]
pub(super) struct MeasuredState {
    measures: Measures,
    live: Measured,
}

/// What rules have of what is measured.
#[derive(Clone, Default)]
pub(crate) struct Measured {
    rules: Vec<Asking>,
    in_force: BTreeMap<String, InForce>,
}

/// A rule that asks for what is measured.
#[derive(Clone)]
struct Asking {
    name: String,
    matches: Match,
    asked: Asked,
}

/// What a rule has.
#[derive(Clone, Copy)]
pub(crate) struct InForce {
    pub(crate) found: Found,
    /// µs since 1970.
    pub(crate) since_us: i64,
}

impl PathsState {
    /// What the rules of a policy that is to become live have of what is measured.
    pub(crate) fn measured_for(&self, policy: &Policy) -> Measured {
        let rules = policy.measured_rules().map(Asking::of).collect();
        let (paths, state) = (self.paths.lock(), self.measured.lock());
        Measured {
            rules,
            in_force: BTreeMap::new(),
        }
        .follow(&state.measures, &paths, &policy.auto, now_us())
    }

    /// What the live rules are to have from now on; none while nothing has changed by a quarter.
    pub(crate) fn measured_anew(&self) -> Option<Measured> {
        let settings = self.settings.lock();
        let (paths, state) = (self.paths.lock(), self.measured.lock());
        if state.live.rules.is_empty() {
            return None;
        }
        let live = state.live.clone();
        let next = live.follow(&state.measures, &paths, &settings, now_us());
        let has_changed = next.changes(&state.live).next().is_some();
        has_changed.then_some(next)
    }

    /// The rules have it. Answers those that had something else before.
    pub(crate) fn set_measured(
        &self,
        measured: Measured,
    ) -> Vec<(String, InForce, Option<InForce>)> {
        let (settings, mut state) = (self.settings.lock(), self.measured.lock());
        let before = std::mem::replace(&mut state.live, measured);
        let MeasuredState { measures, live } = &mut *state;
        measures.retain(
            |key| live.is_wanted(key, &settings),
            |prefix| !is_excluded(&settings, *prefix),
        );
        live.changes(&before).collect()
    }

    /// Forgets what was measured of the paths to a prefix. Rules keep what they have until something else is measured.
    pub(super) fn forget_measured(&self, prefix: IpNet) {
        let measures = &mut self.measured.lock().measures;
        measures.retain(
            |key| !overlap(prefix, key.prefix),
            |tested| !overlap(prefix, *tested),
        );
    }

    /// Since when a rule has what was measured, µs since 1970.
    pub(crate) fn measured_since_us(&self, rule: &str) -> Option<i64> {
        let state = self.measured.lock();
        Some(state.live.in_force.get(rule)?.since_us)
    }

    /// Takes windows of flows that closed.
    pub(crate) fn follow(&self, windows: Vec<(PathKey, Window)>) {
        let (settings, mut state) = (self.settings.lock(), self.measured.lock());
        let MeasuredState { measures, live } = &mut *state;
        measures.take(windows, |key| live.is_wanted(key, &settings));
    }

    /// Whether the live policy has a rule that asks for what is measured.
    pub(crate) fn is_measured(&self) -> bool {
        !self.measured.lock().live.rules.is_empty()
    }

    /// Takes what a test measured of the path to a peer.
    pub(crate) fn take_test(&self, peer: IpAddr, outcome: &TestOutcome) {
        let settings = self.settings.lock();
        if is_excluded(&settings, path_of(peer)) {
            return;
        }
        let (rtt_us, bps) = (rtt_us(outcome), rate_bps(outcome));
        let measures = &mut self.measured.lock().measures;
        measures.take_test(peer, outcome.start_us, rtt_us, bps);
    }
}

impl Measured {
    /// With what is known now, where it is worth a change.
    fn follow(
        mut self,
        measures: &Measures,
        known: &Paths,
        settings: &Auto,
        since_us: i64,
    ) -> Measured {
        for rule in &self.rules {
            let is_of_rule = |key: &PathKey| rule.is_for(key) && !is_excluded(settings, key.prefix);
            let is_prefix = |prefix: &IpNet| {
                holds(&rule.matches.destination, prefix) && !is_excluded(settings, *prefix)
            };
            let found = measures.find(known, &rule.asked, since_us, is_of_rule, is_prefix);
            let before = self.in_force.get(&rule.name).map(|before| before.found);
            let found = found.map(|found| found.or_known_of(before.as_ref()));
            if let Some(found) = found.filter(|found| found.is_worth(before.as_ref())) {
                self.in_force
                    .insert(rule.name.clone(), InForce { found, since_us });
            }
        }
        self
    }

    /// Rules that have something else than before: what they have, and had.
    fn changes<'m>(
        &'m self,
        before: &'m Measured,
    ) -> impl Iterator<Item = (String, InForce, Option<InForce>)> + 'm {
        self.in_force.iter().filter_map(|(name, now)| {
            let before = before.in_force.get(name).copied();
            let is_same = before.is_some_and(|before| before.found == now.found);
            (!is_same).then(|| (name.clone(), *now, before))
        })
    }

    fn is_wanted(&self, key: &PathKey, settings: &Auto) -> bool {
        self.rules.iter().any(|rule| rule.is_for(key)) && !is_excluded(settings, key.prefix)
    }

    /// As the policy takes it.
    pub(crate) fn values(&self) -> MeasuredPaths {
        let most_buffer_bytes = most_measured_buffer_bytes();
        let of = |found: &Found| MeasuredPath {
            most_buffer_bytes,
            ..of_found(found)
        };
        let values = self.in_force.iter();
        let values = values.map(|(name, now)| (name.clone(), of(&now.found)));
        values.collect()
    }
}

/// The path of a rule was measured: what follows from it is in force from now on.
pub(crate) fn rule_measured(rule: &str, now: &InForce, before: Option<&InForce>) -> Event {
    let values = |in_force: &InForce| {
        let path = of_found(&in_force.found);
        json!({ "rtt_us": path.rtt_us, "rate_bps": path.rate_bps, "by": path.by })
    };
    let found = &now.found;
    let seen_us = |reading: Option<Reading>| reading.map(|reading| rfc3339(reading.at_us));
    let body = json!({
        "rule": rule,
        "local": found.local,
        "prefix": found.prefix,
        "measured": values(now),
        "rtt_seen": seen_us(found.rtt),
        "rate_seen": seen_us(found.rate),
        "before": before.map(values),
    });
    let mut event = event_now("rule.measured", &body);
    event.peer = Some(found.prefix.network());
    event.rule = Some(rule.to_owned());
    event.value = found.rate.or(found.rtt).map(|reading| reading.value);
    event
}

fn of_found(found: &Found) -> MeasuredPath {
    MeasuredPath {
        rtt_us: found.rtt.map(|rtt| rtt.value.round() as u32),
        rate_bps: found.rate.map(|rate| rate.value.round() as u64),
        by: by(found),
        most_buffer_bytes: None,
    }
}

impl Asking {
    fn of(rule: &Rule) -> Asking {
        let path = &rule.path;
        Asking {
            name: rule.name.clone(),
            matches: rule.matches.clone(),
            asked: Asked {
                rtt: path.follows.rtt,
                rate: path.follows.rate,
                rtt_us: path.rtt_us.map(f64::from),
                bps: path.rate_bps.map(|bps| bps as f64),
            },
        }
    }

    fn is_for(&self, key: &PathKey) -> bool {
        let sources = &self.matches.source;
        let is_from = sources.is_empty() || sources.iter().any(|it| it.contains(key.local));
        is_from && holds(&self.matches.destination, &key.prefix)
    }
}

/// Whether some peers of a path are among a rule's destinations; without destinations all are.
fn holds(destinations: &[Prefix], path: &IpNet) -> bool {
    let overlaps = |one: &Prefix| one.contains(path.network()) || path.contains(&one.address());
    destinations.is_empty() || destinations.iter().any(overlaps)
}

/// On which path, and by what, for people.
fn by(found: &Found) -> String {
    let of = |reading: Option<Reading>| reading.map(|reading| name(reading.by));
    let by = match (of(found.rtt), of(found.rate)) {
        (Some(rtt), Some(rate)) if rtt == rate => format!("by {rtt}"),
        (Some(rtt), Some(rate)) => format!("by {rtt} (rtt) and {rate} (rate)"),
        (one, other) => format!("by {}", one.or(other).unwrap_or_default()),
    };
    format!("on {} {by}", found.prefix)
}

fn name(by: By) -> &'static str {
    match by {
        By::Flows => "flows",
        By::HeldFlows => "flows that something else held back",
        By::Test => "a test",
        By::BoundedTest => "a test, bounded by what flows saw",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::Autotuned;

    fn rule(matches: &str) -> Asking {
        let text = format!("[[rule]]\nname = 'a'\nrtt = 'measured'\n{matches}\n");
        let policy = fatpath_policy::parse(&text, None).unwrap();
        Asking::of(&policy.rules[0])
    }

    #[test]
    fn a_rule_is_for_the_paths_of_its_destinations_and_sources() {
        let key =
            |local: &str, peer: &str| PathKey::new(local.parse().unwrap(), peer.parse().unwrap());
        let is_for = |matches: &str| rule(matches).is_for(&key("198.51.100.1", "192.0.2.7"));
        assert!(is_for(""));
        assert!(is_for("destination = ['192.0.0.0/16']"));
        assert!(is_for("destination = ['192.0.2.9']"), "it is on the path");
        assert!(!is_for("destination = ['192.0.3.0/24']"));
        assert!(is_for("source = ['198.51.100.0/24']"));
        assert!(!is_for("source = ['198.51.100.2']"));
    }

    /// Round-trip time that a policy's only rule has of what tests of two paths measured, once it is live.
    fn live(state: &PathsState, auto: &str) -> Option<u32> {
        let rule = "[[rule]]\nname = 'a'\nrtt = 'measured'\n";
        let policy = fatpath_policy::parse(&format!("{auto}{rule}"), None).unwrap();
        let measured = state.measured_for(&policy);
        state.set_policy(policy.auto, Autotuned::default());
        let rtt_us = measured.values().get("a").and_then(|path| path.rtt_us);
        state.set_measured(measured);
        rtt_us
    }

    fn tested(state: &PathsState, peer: &str, rtt_ms: f64) {
        tested_with(state, peer, [("rtt", rtt_ms, "ms")]);
    }

    fn tested_with<const N: usize>(state: &PathsState, peer: &str, values: [(&str, f64, &str); N]) {
        let value =
            |(name, value, unit): (&str, f64, &str)| (name.to_owned(), (value, unit.to_owned()));
        let outcome = TestOutcome {
            test: "far".to_owned(),
            tool: "program".to_owned(),
            to: None,
            resources: Vec::new(),
            due_us: None,
            start_us: now_us(),
            duration_s: 1.0,
            values: values.into_iter().map(value).collect(),
            flows: Vec::new(),
            note: None,
        };
        state.take_test(peer.parse().unwrap(), &outcome);
    }

    #[test]
    fn a_rate_that_may_be_half_or_twice_as_much_is_not_heeded() {
        let rule = "[[rule]]\nname = 'a'\nrate = 'measured'\n";
        let policy = fatpath_policy::parse(rule, None).unwrap();
        for (doubt, heeded) in [(0.5, None), (0.1, Some(100_000_000))] {
            let state = PathsState::default();
            let values = [("rate", 1e8, "b/s"), ("rate_doubt", doubt, "1")];
            tested_with(&state, "192.0.2.7", values);
            let measured = state.measured_for(&policy).values();
            let rate_bps = measured.get("a").and_then(|path| path.rate_bps);
            assert_eq!(rate_bps, heeded, "{doubt}");
        }
    }

    #[test]
    fn an_excluded_path_is_forgotten() {
        let state = PathsState::default();
        tested(&state, "192.0.2.7", 80.0);
        tested(&state, "198.51.100.7", 20.0);
        assert_eq!(live(&state, ""), Some(80_000), "the longest");
        let excludes = "[auto]\nexclude = ['192.0.2.0/24']\n";
        assert_eq!(live(&state, excludes), Some(20_000));
        tested(&state, "192.0.2.9", 80.0);
        assert_eq!(live(&state, ""), Some(20_000), "it is not known any more");
        state.forget("198.51.100.0/24".parse().unwrap());
        assert_eq!(live(&state, ""), None);
    }

    #[test]
    fn where_a_value_comes_from_is_told() {
        let reading = |by| {
            Some(Reading {
                value: 1e6,
                at_us: 0,
                by,
            })
        };
        let prefix: IpNet = "192.0.2.0/24".parse().unwrap();
        let told = |rtt, rate| {
            by(&Found {
                prefix,
                local: None,
                rtt,
                rate,
            })
        };
        assert_eq!(
            told(reading(By::Flows), reading(By::Flows)),
            "on 192.0.2.0/24 by flows"
        );
        assert_eq!(told(None, reading(By::Test)), "on 192.0.2.0/24 by a test");
        assert_eq!(
            told(reading(By::Test), reading(By::HeldFlows)),
            "on 192.0.2.0/24 by a test (rtt) and flows that something else held back (rate)"
        );
    }
}
