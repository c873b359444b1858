// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which of its flows a trace records, and which of their samples: at most so many flows at once, in the order in which
//! they come. No I/O.

use fatpath_api::{Sample, SampleKind};
use std::collections::{HashMap, HashSet};

/// A flow that showed nothing for so long gives up its place: its end may have been lost. Walks over all
/// sockets show each flow that lives more often, up to some 250,000 sockets.
const SILENT_NS: u64 = 15 * 60 * 1_000_000_000;

/// Silent flows are looked for so often at most.
const LOOK_NS: u64 = 1_000_000_000;

/// Flows without a place that are remembered, so that each is counted once. When there are more at once, all are
/// forgotten, and those that show themselves again are counted again.
const MOST_REMEMBERED: usize = 65_536;

/// The flows of a trace.
#[derive(Debug)]
pub(crate) struct Places {
    most: usize,
    interval_ns: u64,
    traced: HashMap<u64, Traced>,
    without: HashSet<u64>,
    left_out: u64,
    looked_ns: Option<u64>,
}

/// A flow that has a place; times are those of its samples.
#[derive(Debug)]
struct Traced {
    seen_ns: u64,
    /// None before the first.
    recorded_ns: Option<u64>,
}

impl Places {
    pub(crate) fn new(max_flows: u32, interval_us: u32) -> Places {
        Places {
            most: max_flows as usize,
            interval_ns: u64::from(interval_us) * 1000,
            traced: HashMap::new(),
            without: HashSet::new(),
            left_out: 0,
            looked_ns: None,
        }
    }

    /// Flows that have a place.
    pub(crate) fn traced(&self) -> usize {
        self.traced.len()
    }

    /// Flows that found none when they were first seen.
    pub(crate) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Takes the next sample of a flow that the trace is for; whether it is to be recorded.
    pub(crate) fn take(&mut self, sample: &Sample) -> bool {
        let (cookie, now_ns) = (sample.flow.cookie, sample.now_ns);
        let is_end = sample.kind == SampleKind::End;
        if !self.traced.contains_key(&cookie) && !self.give_place(cookie, now_ns) {
            self.leave_out(cookie, is_end);
            return false;
        }
        let interval_ns = self.interval_ns;
        let is_recorded = self
            .traced
            .get_mut(&cookie)
            .is_some_and(|traced| traced.take(sample, interval_ns));
        if is_end {
            self.traced.remove(&cookie);
        }
        is_recorded
    }

    fn give_place(&mut self, cookie: u64, now_ns: u64) -> bool {
        if self.traced.len() >= self.most {
            self.clear_silent(now_ns);
        }
        if self.traced.len() >= self.most {
            return false;
        }
        self.without.remove(&cookie);
        let traced = Traced {
            seen_ns: now_ns,
            recorded_ns: None,
        };
        self.traced.insert(cookie, traced);
        true
    }

    /// A flow ended, whatever it matched at last.
    pub(crate) fn forget(&mut self, cookie: u64) {
        self.traced.remove(&cookie);
        self.without.remove(&cookie);
    }

    /// Flows whose end was lost give up their places.
    pub(crate) fn clear_silent(&mut self, now_ns: u64) {
        let looked = self.looked_ns.map(|looked| now_ns.saturating_sub(looked));
        if looked.is_none_or(|ago| ago >= LOOK_NS) {
            self.looked_ns = Some(now_ns);
            self.traced
                .retain(|_, traced| now_ns.saturating_sub(traced.seen_ns) < SILENT_NS);
        }
    }

    fn leave_out(&mut self, cookie: u64, is_end: bool) {
        if self.without.len() >= MOST_REMEMBERED {
            self.without.clear();
        }
        if self.without.insert(cookie) {
            self.left_out += 1;
        }
        if is_end {
            self.without.remove(&cookie);
        }
    }
}

impl Traced {
    /// An event is recorded whenever it comes.
    fn take(&mut self, sample: &Sample, interval_ns: u64) -> bool {
        let now_ns = sample.now_ns;
        self.seen_ns = self.seen_ns.max(now_ns);
        let is_event = !matches!(sample.kind, SampleKind::Interval | SampleKind::Walk);
        let is_due = self
            .recorded_ns
            .is_none_or(|recorded| now_ns.saturating_sub(recorded) >= interval_ns);
        if is_due || is_event {
            self.recorded_ns = Some(now_ns);
        }
        is_due || is_event
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fatpath_estats::testing::{SECOND, sample};

    fn at(cookie: u64, ms: u64) -> Sample {
        sample(cookie, SampleKind::Interval, ms * SECOND / 1000)
    }

    fn end(cookie: u64, ms: u64) -> Sample {
        sample(cookie, SampleKind::End, ms * SECOND / 1000)
    }

    #[test]
    fn so_many_flows_are_recorded_and_each_other_counts_once() {
        let mut places = Places::new(3, 0);
        for round in 0..10 {
            for cookie in 0..5000 {
                assert_eq!(places.take(&at(cookie, round)), cookie < 3);
            }
        }
        assert_eq!((places.traced(), places.left_out()), (3, 4997));
        assert!(!places.take(&end(4999, 11)) && places.take(&end(1, 11)));
        assert_eq!(places.traced(), 2);
        assert!(places.take(&at(4000, 12)), "a place is free");
        assert!(!places.take(&at(4001, 12)));
        assert_eq!((places.traced(), places.left_out()), (3, 4997));
        assert!(!places.take(&at(5000, 12)));
        assert_eq!(places.left_out(), 4998);
    }

    #[test]
    fn a_flow_that_ends_without_a_match_leaves_its_place() {
        let mut places = Places::new(1, 0);
        assert!(places.take(&at(1, 0)) && !places.take(&at(2, 1)));
        places.forget(1);
        assert_eq!(places.traced(), 0);
        assert!(places.take(&at(2, 2)));
    }

    #[test]
    fn memory_is_bounded_whatever_comes() {
        let mut places = Places::new(1, 0);
        let flows = 3 * MOST_REMEMBERED as u64;
        for cookie in 0..flows {
            places.take(&at(cookie, 0));
        }
        assert!(places.without.len() <= MOST_REMEMBERED && places.traced.len() == 1);
        assert_eq!(places.left_out(), flows - 1);
    }

    #[test]
    fn samples_are_an_interval_apart_but_events_are_not() {
        let mut places = Places::new(1, 100_000);
        let recorded: Vec<u64> = (0..500)
            .step_by(30)
            .filter(|ms| places.take(&at(1, *ms)))
            .collect();
        assert_eq!(recorded, [0, 120, 240, 360, 480]);
        let event = sample(1, SampleKind::Congestion, 500 * SECOND / 1000);
        assert!(places.take(&event));
        assert!(!places.take(&at(1, 590)) && places.take(&at(1, 600)));
        assert!(places.take(&end(1, 601)));
    }

    #[test]
    fn a_silent_flow_keeps_its_place_until_another_wants_it() {
        let mut places = Places::new(1, 0);
        let silent_ms = SILENT_NS / 1_000_000;
        assert!(places.take(&at(1, 0)));
        assert!(!places.take(&at(2, silent_ms - 1)));
        assert!(places.take(&at(1, silent_ms)));
        assert!(!places.take(&at(2, silent_ms + 1000)));
        assert!(places.take(&at(2, 2 * silent_ms)));
        assert!(!places.take(&at(1, 2 * silent_ms + 1)));
    }
}
