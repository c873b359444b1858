// SPDX-License-Identifier: MIT OR Apache-2.0
//! When each test is due.
//!
//! The k-th run of a test is at `phase + (k + jitter) * every` since 1970; phase and jitter follow from a seed, the
//! test's name and k alone. So nothing is stored: a daemon that starts again with the same seed goes on with the
//! schedule, and what it missed stays missed. While a test fails, every second, fourth, then eighth run alone is made.

use crate::Test;

/// At most 2^3 times the interval lies between two runs of a test that fails.
const MOST_HALVINGS: u32 = 3;

/// When the tests of one plan are due.
#[derive(Clone, Debug)]
pub struct Schedule {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    /// Of the seed and the test's name.
    hash: u64,
    every_us: i64,
    /// At most so much earlier or later.
    jitter_us: i64,
    /// Failures since it last succeeded.
    failures: u32,
    due_us: i64,
}

impl Schedule {
    /// The tests in the order of the plan; none is due before `now_us`, µs since 1970.
    pub fn new(tests: &[Test], seed: u64, now_us: i64) -> Schedule {
        let entry = |test: &Test| {
            let every_us = i64::try_from(test.every_us.max(1)).unwrap_or(i64::MAX);
            let mut entry = Entry {
                hash: test
                    .name
                    .bytes()
                    .fold(mixed(seed), |hash, byte| mixed(hash ^ u64::from(byte))),
                every_us,
                jitter_us: (every_us as f64 * test.jitter) as i64,
                failures: 0,
                due_us: 0,
            };
            entry.due_us = entry.first_after(now_us);
            entry
        };
        Schedule {
            entries: tests.iter().map(entry).collect(),
        }
    }

    /// When the next test is due.
    pub fn next_due_us(&self) -> Option<i64> {
        self.entries.iter().map(|entry| entry.due_us).min()
    }

    /// When the test of this index is due.
    pub fn due_us(&self, index: usize) -> Option<i64> {
        self.entries.get(index).map(|entry| entry.due_us)
    }

    /// The tests that are due now, each once, however long ago it was due, with the time at which it was.
    pub fn take_due(&mut self, now_us: i64) -> Vec<(usize, i64)> {
        let mut due = Vec::new();
        for (index, entry) in self.entries.iter_mut().enumerate() {
            if entry.due_us <= now_us {
                due.push((index, entry.due_us));
                entry.due_us = entry.first_after(now_us);
            } else if entry.due_us - now_us > entry.longest_wait_us() {
                // The clock was set back.
                entry.due_us = entry.first_after(now_us);
            }
        }
        due
    }

    /// A run of the test has ended.
    pub fn ended(&mut self, index: usize, failed: bool, now_us: i64) {
        let Some(entry) = self.entries.get_mut(index) else {
            return;
        };
        let before = entry.halvings();
        entry.failures = if failed {
            entry.failures.saturating_add(1)
        } else {
            0
        };
        if entry.halvings() != before {
            entry.due_us = entry.first_after(now_us);
        }
    }

    /// The tests of `plan` that were in `before` too keep their count of failures.
    pub fn keep_failures(&mut self, before: &Schedule) {
        for entry in &mut self.entries {
            let same = before.entries.iter().find(|old| old.hash == entry.hash);
            entry.failures = same.map_or(0, |old| old.failures);
        }
    }
}

impl Entry {
    fn halvings(&self) -> u32 {
        self.failures.min(MOST_HALVINGS)
    }

    fn longest_wait_us(&self) -> i64 {
        (self.every_us << self.halvings()).saturating_add(2 * self.jitter_us)
    }

    /// The first run after `now_us`.
    fn first_after(&self, now_us: i64) -> i64 {
        let stride = 1_i64 << self.halvings();
        let phase_us = (mixed(self.hash) % self.every_us as u64) as i64;
        // Runs are `every` apart and jitter is half of that at most: two strides back is before `now`.
        let k = (now_us - phase_us).div_euclid(self.every_us);
        let first = (k.div_euclid(stride) - 1) * stride;
        let runs = (0..).map(|n| first + n * stride);
        let mut due = runs.map(|k| phase_us + k * self.every_us + self.jitter_at(k));
        due.find(|due_us| *due_us > now_us).unwrap_or(i64::MAX)
    }

    /// Within `±jitter_us`.
    fn jitter_at(&self, k: i64) -> i64 {
        let share = mixed(self.hash ^ mixed(k as u64)) as f64 / u64::MAX as f64;
        ((2.0 * share - 1.0) * self.jitter_us as f64) as i64
    }
}

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): a well-mixed function of its argument.
fn mixed(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tool;
    use proptest::prelude::*;

    fn test(name: &str, every_us: u64, jitter: f64) -> Test {
        Test {
            name: name.into(),
            to: Some("192.0.2.1".into()),
            every_us,
            duration_us: 1_000_000,
            jitter,
            resources: vec![],
            passive_first: true,
            tool: Tool::PathMtu,
        }
    }

    /// The times at which a test runs, when the schedule is asked at each due time.
    fn runs(schedule: &mut Schedule, count: usize) -> Vec<i64> {
        let one = |_| {
            let due_us = schedule.next_due_us().unwrap();
            assert_eq!(schedule.take_due(due_us), [(0, due_us)]);
            due_us
        };
        (0..count).map(one).collect()
    }

    proptest! {
        #[test]
        fn runs_keep_their_interval_but_for_jitter(
            seed: u64, every_us in 1_000_000_u64..600_000_000, jitter in 0.0..0.5, now_us in 0_i64..1 << 51,
        ) {
            let tests = [test("a", every_us, jitter)];
            let runs = runs(&mut Schedule::new(&tests, seed, now_us), 50);
            let (every, spread) = (every_us as f64, 2.0 * jitter * every_us as f64 + 2.0);
            prop_assert!(runs[0] > now_us && (runs[0] - now_us) as f64 <= every + spread);
            for pair in runs.windows(2) {
                let apart = (pair[1] - pair[0]) as f64;
                prop_assert!((apart - every).abs() <= spread, "{apart} of {every}");
            }
            let span = (runs[49] - runs[0]) as f64;
            prop_assert!((span - 49.0 * every).abs() <= spread, "jitter does not add up");
        }

        #[test]
        fn a_restart_goes_on_and_makes_up_for_nothing(
            seed: u64, every_us in 1_000_000_u64..600_000_000, jitter in 0.0..0.5, away_us in 0_i64..86_400_000_000,
        ) {
            let tests = [test("a", every_us, jitter), test("b", every_us, jitter)];
            let start_us = 1_795_392_000_000_000;
            let mut running = Schedule::new(&tests, seed, start_us);
            let back_us = start_us + away_us;
            // One that ran on is late with each test once at most, and then agrees with one that started again.
            prop_assert!(running.take_due(back_us).len() <= 2);
            let again = Schedule::new(&tests, seed, back_us);
            prop_assert_eq!(running.due_us(0), again.due_us(0));
            prop_assert_eq!(running.due_us(1), again.due_us(1));
        }
    }

    #[test]
    fn tests_of_one_interval_have_phases_of_their_own() {
        let names: Vec<String> = (0..100).map(|n| format!("test-{n}")).collect();
        let tests: Vec<Test> = names.iter().map(|n| test(n, 60_000_000, 0.0)).collect();
        let schedule = Schedule::new(&tests, 1, 0);
        let due: Vec<i64> = (0..100).filter_map(|n| schedule.due_us(n)).collect();
        for quarter in 0..4_i64 {
            let within = |due: &&i64| **due / 15_000_000 == quarter;
            let in_quarter = due.iter().filter(within).count();
            assert!((10..=40).contains(&in_quarter), "{in_quarter} of 100");
        }
    }

    #[test]
    fn a_test_that_fails_runs_less_often_until_it_succeeds() {
        let tests = [test("a", 60_000_000, 0.1)];
        let mut schedule = Schedule::new(&tests, 7, 0);
        for _ in 0..9 {
            let due_us = schedule.next_due_us().unwrap();
            schedule.take_due(due_us);
            schedule.ended(0, true, due_us);
        }
        let failing = runs(&mut schedule, 2);
        let apart = failing[1] - failing[0];
        assert!(
            (468_000_000..=492_000_000).contains(&apart),
            "8 min: {apart}"
        );
        schedule.ended(0, false, failing[1]);
        let wait = schedule.next_due_us().unwrap() - failing[1];
        assert!(wait <= 72_000_000, "{wait}");
    }

    #[test]
    fn a_clock_that_is_set_back_delays_no_test() {
        let tests = [test("a", 60_000_000, 0.1)];
        let mut schedule = Schedule::new(&tests, 7, 86_400_000_000);
        assert!(schedule.take_due(0).is_empty());
        assert!(schedule.next_due_us().unwrap() <= 72_000_000);
    }
}
