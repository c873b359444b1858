// SPDX-License-Identifier: MIT OR Apache-2.0
//! The newest event of each name and path, in memory: what NetLogger's cache answers without its store.

use crate::{Event, Kind};
use fatpath_path::path_of;
use ipnet::IpNet;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

/// Events that are kept at most: 2 KB each, the size of a flow's end, are 16 MiB.
const MOST_EVENTS: usize = 8_192;
const MOST_BYTES: usize = 16 << 20;

/// What an event takes beside its texts: itself, and its places in both orders.
const OWN_BYTES: usize = 400;

/// The newest event of each, at most so many: beyond that the one that was not renewed for the longest time goes.
#[derive(Debug)]
pub struct Latest {
    kept: BTreeMap<String, Kept>,
    /// Keys in the order of renewal.
    renewed: BTreeMap<u64, String>,
    next: u64,
    bytes: usize,
    most_events: usize,
    most_bytes: usize,
}

#[derive(Debug)]
struct Kept {
    latest: Arc<LatestEvent>,
    renewed: u64,
    bytes: usize,
}

/// The newest event of its name and path.
#[derive(Debug)]
pub struct LatestEvent {
    /// What it is.
    pub kind: Kind,
    /// Whose it is: a path, of a scheduled test its name, and nothing of what is the whole host's.
    pub of: String,
    /// The event.
    pub event: Arc<Event>,
}

/// Which events are asked for.
#[derive(Clone, Debug, Default)]
pub struct LatestQuery {
    /// Of these kinds; of all where there is none.
    pub kinds: Vec<Kind>,
    /// Whose path is a part of this prefix, or has it as a part.
    pub prefix: Option<IpNet>,
    /// Behind this place, which an earlier answer gave.
    pub after: Option<String>,
    /// At most so many.
    pub limit: usize,
}

impl Default for Latest {
    fn default() -> Latest {
        Latest::bounded(MOST_EVENTS, MOST_BYTES)
    }
}

impl Latest {
    fn bounded(most_events: usize, most_bytes: usize) -> Latest {
        Latest {
            kept: BTreeMap::new(),
            renewed: BTreeMap::new(),
            next: 0,
            bytes: 0,
            most_events,
            most_bytes,
        }
    }

    /// In place of the one before of the same name and path.
    pub fn take(&mut self, kind: Kind, event: &Arc<Event>) {
        let latest = LatestEvent {
            kind,
            of: subject(kind, event),
            event: Arc::clone(event),
        };
        let key = latest.key();
        self.remove(&key);
        let bytes = OWN_BYTES + 3 * key.len() + event.body.len();
        let renewed = self.next;
        self.next += 1;
        self.bytes += bytes;
        self.renewed.insert(renewed, key.clone());
        let latest = Arc::new(latest);
        let kept = Kept {
            latest,
            renewed,
            bytes,
        };
        self.kept.insert(key, kept);
        self.keep_bounds();
    }

    fn keep_bounds(&mut self) {
        while self.kept.len() > self.most_events || self.bytes > self.most_bytes {
            let Some((_, oldest)) = self.renewed.pop_first() else {
                return;
            };
            self.remove(&oldest);
        }
    }

    fn remove(&mut self, key: &str) {
        if let Some(kept) = self.kept.remove(key) {
            self.renewed.remove(&kept.renewed);
            self.bytes -= kept.bytes;
        }
    }

    /// Those that match, by path, and behind which place the next ones are, where there are more. What is taken between two
    /// pages moves no other event to a page where it is missed or seen twice.
    pub fn page(&self, query: &LatestQuery) -> (Vec<Arc<LatestEvent>>, Option<String>) {
        let begin = query.after.as_deref().map_or(Unbounded, Excluded);
        let behind = self.kept.range::<str, _>((begin, Unbounded));
        let mut matching = behind
            .map(|(_, kept)| &kept.latest)
            .filter(|latest| latest.matches(query));
        let page: Vec<_> = matching.by_ref().take(query.limit).cloned().collect();
        let last = page.last().filter(|_| matching.next().is_some());
        let next = last.map(|latest| latest.key());
        (page, next)
    }
}

impl LatestEvent {
    /// Kind and name have no spaces.
    fn key(&self) -> String {
        format!("{} {} {}", self.of, self.kind.name(), self.event.name)
    }

    fn matches(&self, query: &LatestQuery) -> bool {
        let is_of_prefix = |prefix: IpNet| {
            let peer = self.event.peer;
            peer.is_some_and(|peer| prefix.contains(&peer.to_canonical()))
                || self.of.parse().is_ok_and(|of: IpNet| of.contains(&prefix))
        };
        (query.kinds.is_empty() || query.kinds.contains(&self.kind))
            && query.prefix.is_none_or(is_of_prefix)
    }
}

/// Two tests of one path may differ in what they do.
fn subject(kind: Kind, event: &Event) -> String {
    #[derive(Deserialize)]
    struct OfTest {
        test: String,
    }
    let test = || serde_json::from_str(&event.body).map(|OfTest { test }| test);
    if kind == Kind::Test
        && let Ok(test) = test()
    {
        return test;
    }
    let path = event.peer.map(|peer| path_of(peer).to_string());
    path.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, peer: Option<&str>, value: f64) -> Arc<Event> {
        Arc::new(Event {
            time_us: 1,
            name: name.into(),
            peer: peer.map(|peer| peer.parse().unwrap()),
            rule: None,
            value: Some(value),
            weight: 1,
            body: "{}".into(),
        })
    }

    /// Paths or names, with values.
    fn all(latest: &Latest, query: LatestQuery) -> Vec<(String, f64)> {
        let limit = 1_000;
        let (page, next) = latest.page(&LatestQuery { limit, ..query });
        assert!(next.is_none());
        let of = page.iter();
        of.map(|one| (one.of.clone(), one.event.value.unwrap()))
            .collect()
    }

    fn of(expected: &[(&str, f64)]) -> Vec<(String, f64)> {
        let of = expected.iter();
        of.map(|(of, value)| ((*of).to_owned(), *value)).collect()
    }

    #[test]
    fn the_newest_of_each_name_and_path_is_kept() {
        let mut latest = Latest::default();
        let ends = [
            ("192.0.2.1", 1.0),
            ("198.51.100.1", 2.0),
            ("::ffff:192.0.2.9", 3.0),
        ];
        for (peer, value) in ends {
            latest.take(Kind::Flow, &event("flow.end", Some(peer), value));
        }
        latest.take(Kind::Event, &event("finding", Some("192.0.2.1"), 4.0));
        latest.take(Kind::Sample, &event("host.load", None, 5.0));
        let flows = [("192.0.2.0/24", 3.0), ("198.51.100.0/24", 2.0)];
        let kinds = vec![Kind::Flow];
        let of_flows = LatestQuery {
            kinds,
            ..LatestQuery::default()
        };
        assert_eq!(all(&latest, of_flows), of(&flows));
        let everything = [("", 5.0), ("192.0.2.0/24", 4.0), flows[0], flows[1]];
        assert_eq!(all(&latest, LatestQuery::default()), of(&everything));
    }

    #[test]
    fn a_prefix_has_the_paths_in_it_and_an_address_the_path_around_it() {
        let mut latest = Latest::default();
        for (peer, value) in [("192.0.2.1", 1.0), ("192.0.3.1", 2.0), ("2001:db8::1", 3.0)] {
            latest.take(Kind::Flow, &event("flow.end", Some(peer), value));
        }
        let of_prefix = |prefix: &str| {
            let query = LatestQuery {
                prefix: Some(prefix.parse().unwrap()),
                ..LatestQuery::default()
            };
            let found = all(&latest, query).into_iter();
            found.map(|(_, value)| value).collect::<Vec<_>>()
        };
        assert_eq!(of_prefix("192.0.2.0/23"), [1.0, 2.0]);
        assert_eq!(of_prefix("192.0.3.200/32"), [2.0]);
        assert_eq!(of_prefix("2001:db8::/32"), [3.0]);
        assert!(of_prefix("198.51.100.0/24").is_empty());
    }

    #[test]
    fn tests_of_one_path_are_apart() {
        let mut latest = Latest::default();
        for (test, value) in [("slow", 1.0), ("fast", 2.0), ("slow", 3.0)] {
            let mut run = Event::clone(&event("test.iperf3", Some("192.0.2.1"), value));
            run.body = format!(r#"{{"test":"{test}"}}"#);
            latest.take(Kind::Test, &Arc::new(run));
        }
        let tests = of(&[("fast", 2.0), ("slow", 3.0)]);
        assert_eq!(all(&latest, LatestQuery::default()), tests);
    }

    #[test]
    fn beyond_the_bounds_what_was_not_renewed_goes() {
        let peer = |n: usize| format!("10.0.{n}.1");
        let flow = |n| event("flow.end", Some(&peer(n)), n as f64);
        let mut few = Latest::bounded(3, MOST_BYTES);
        for n in [0, 1, 2, 0, 3] {
            few.take(Kind::Flow, &flow(n));
        }
        let left = of(&[
            ("10.0.0.0/24", 0.0),
            ("10.0.2.0/24", 2.0),
            ("10.0.3.0/24", 3.0),
        ]);
        assert_eq!(all(&few, LatestQuery::default()), left);
        let mut small = Latest::bounded(100, 3 * OWN_BYTES);
        (0..9).for_each(|n| small.take(Kind::Flow, &flow(n)));
        let left = of(&[("10.0.7.0/24", 7.0), ("10.0.8.0/24", 8.0)]);
        assert_eq!(all(&small, LatestQuery::default()), left);
        let mut large = Event::clone(&flow(9));
        large.body = " ".repeat(3 * OWN_BYTES);
        small.take(Kind::Flow, &Arc::new(large));
        assert!(small.kept.is_empty() && small.renewed.is_empty() && small.bytes == 0);
    }

    #[test]
    fn pages_have_each_once_also_while_events_come() {
        let mut latest = Latest::default();
        let flow = |n: usize| event("flow.end", Some(&format!("10.0.{n}.1")), n as f64);
        (100..110).for_each(|n| latest.take(Kind::Flow, &flow(n)));
        for limit in 1..12 {
            let (mut seen, mut after) = (Vec::new(), None);
            loop {
                let kinds = vec![Kind::Flow];
                let query = LatestQuery {
                    kinds,
                    after,
                    limit,
                    prefix: None,
                };
                let (page, next) = latest.page(&query);
                assert!(page.len() <= limit && (next.is_none() || page.len() == limit));
                seen.extend(page.iter().map(|one| one.event.value.unwrap() as usize));
                assert!(seen.len() <= 10, "limit {limit}: {seen:?}");
                // Some on either side are renewed.
                for n in [100, 109] {
                    latest.take(Kind::Flow, &flow(n));
                }
                after = next;
                if after.is_none() {
                    break;
                }
            }
            assert_eq!(seen, Vec::from_iter(100..110), "limit {limit}");
        }
    }
}
