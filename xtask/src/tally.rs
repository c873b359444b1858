// SPDX-License-Identifier: MIT OR Apache-2.0
//! What tests said, in a guest or on this host, counted.

use std::collections::BTreeSet;

/// What a test says of a part of it for which the kernel is too old or was built without something. The rest of the
/// test has run: that is no skip, which a guest may not have.
const LEFT_OUT: &str = "left out:";

/// One of the tests of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    /// The program's name.
    pub program: String,
    /// Its own.
    pub name: String,
}

/// Counts of one run.
#[derive(Debug, Default)]
pub struct Tally {
    passed: u32,
    failed: u32,
    skipped: u32,
    /// Parts of tests for which the kernel is too old or was built without something.
    left_out: u32,
    /// Test programs that ended otherwise than well.
    broken: u32,
    program: String,
    in_failures: bool,
    failed_tests: Vec<Test>,
    /// Of them, those of the programs before this one.
    failed_before: usize,
}

impl Tally {
    /// Takes one line of the job's output.
    pub fn add(&mut self, line: &str) {
        if let Some(result) = line.strip_prefix("test result:") {
            self.passed += count(result, " passed");
            self.failed += count(result, " failed");
            self.in_failures = false;
        } else if line.starts_with("skipped:") {
            self.skipped += 1;
        } else if line.starts_with(LEFT_OUT) {
            self.left_out += 1;
        } else if let Some(program) = line.strip_prefix("== test ") {
            self.program = program.to_owned();
            self.failed_before = self.failed_tests.len();
        } else if let Some(status) = line.strip_prefix("== status ") {
            self.broken += u32::from(status != "0");
        } else {
            self.add_failure(line);
        }
    }

    /// What failed said comes first, under the same title as the list of its names.
    fn add_failure(&mut self, line: &str) {
        let name = line.strip_prefix("    ").unwrap_or_default();
        let is_name = |c: char| c == '_' || c == ':' || c.is_ascii_alphanumeric();
        if line == "failures:" {
            self.in_failures = true;
            self.failed_tests.truncate(self.failed_before);
        } else if self.in_failures && !name.is_empty() && name.chars().all(is_name) {
            let (program, name) = (self.program.clone(), name.to_owned());
            self.failed_tests.push(Test { program, name });
        }
    }

    /// Whether the line just taken is a test's result, what it skipped, or of what a failed one said.
    pub fn is_news(&self, line: &str) -> bool {
        let is_said = ["test ", "skipped:", LEFT_OUT];
        self.in_failures || is_said.iter().any(|said| line.starts_with(said))
    }

    /// The tests that failed.
    pub fn failed(&self) -> &[Test] {
        &self.failed_tests
    }

    /// How many passed.
    pub fn passed(&self) -> usize {
        self.passed as usize
    }

    /// Everything passed and something ran. The guest has all that a test may ask for: none may skip.
    pub fn is_good(&self) -> bool {
        self.failed == 0 && self.is_good_but_for_failed()
    }

    /// Nothing is wrong but what a second time may set right: tests failed, which are known by their names.
    pub fn is_good_but_for_failed(&self) -> bool {
        self.passed > 0 && self.skipped == 0 && self.every_failure_is_named()
    }

    /// Each test that failed is known by its name, and no program ended badly for another reason.
    pub fn every_failure_is_named(&self) -> bool {
        let programs = self.failed_tests.iter().map(|test| &*test.program);
        let programs: BTreeSet<&str> = programs.collect();
        self.failed as usize == self.failed_tests.len() && self.broken as usize == programs.len()
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let passed = self.passed.saturating_sub(self.skipped);
        let (failed, skipped) = (self.failed, self.skipped);
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")?;
        match self.left_out {
            0 => Ok(()),
            1 => write!(f, ", 1 part left out"),
            parts => write!(f, ", {parts} parts left out"),
        }
    }
}

/// The number before `what` in "ok. 12 passed; 0 failed; …".
fn count(result: &str, what: &str) -> u32 {
    let before = result.split(what).next().unwrap_or_default();
    let digits = before.rsplit([' ', ';', '.']).next().unwrap_or_default();
    digits.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(lines: &[&str]) -> Tally {
        let mut tally = Tally::default();
        lines.iter().for_each(|line| tally.add(line));
        tally
    }

    #[test]
    fn counts_passes_failures_and_skips() {
        let lines = [
            "== test tuning",
            "test a ... ok",
            "skipped: no ss",
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 3.1s",
            "== status 0",
            "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out",
            "== status 101",
        ];
        assert_eq!(tally(&lines).to_string(), "14 passed, 2 failed, 1 skipped");
        assert!(!tally(&lines).is_good());
        assert!(!tally(&lines[..5]).is_good(), "one was skipped");
        assert!(tally(&lines[3..5]).is_good());
    }

    #[test]
    fn a_part_that_the_kernel_does_not_have_is_counted_and_no_skip() {
        let lines = [
            "left out: a kernel before 6.15 has no socket option (6, 45)",
            "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out",
            "== status 0",
        ];
        let tally = tally(&lines);
        assert!(tally.is_good() && tally.is_news(lines[0]));
        let said = "12 passed, 0 failed, 0 skipped, 1 part left out";
        assert_eq!(tally.to_string(), said);
    }

    #[test]
    fn what_failed_is_told_whole_and_what_passed_by_its_name() {
        let mut tally = Tally::default();
        let lines = [
            "test a ... ok",
            "---- a stdout ----",
            "failures:",
            "---- b stdout ----",
            "panicked",
            "test result: FAILED. 1 passed; 1 failed;",
            "said",
        ];
        let mut is_told = |line: &&str| {
            tally.add(line);
            tally.is_news(line)
        };
        let told: Vec<&str> = lines.into_iter().filter(&mut is_told).collect();
        assert_eq!(told, [lines[0], lines[2], lines[3], lines[4], lines[5]]);
    }

    #[test]
    fn what_failed_is_known_by_its_name() {
        let lines = [
            "== test police",
            "failures:",
            "---- limits::a stdout ----",
            "    left",
            "failures:",
            "    limits::a",
            "    b",
            "test result: FAILED. 3 passed; 2 failed; 0 ignored",
            "== status 101",
        ];
        let said = tally(&lines);
        let program = || "police".to_owned();
        let failed = ["limits::a", "b"].map(|name| Test {
            program: program(),
            name: name.to_owned(),
        });
        assert_eq!(said.failed(), failed);
        assert!(said.is_good_but_for_failed() && !said.is_good());
        let and = |more: &str| tally(&[&lines[..], &[more]].concat());
        assert!(!and("== status 137").is_good_but_for_failed());
        assert!(!and("skipped: no ss").is_good_but_for_failed());
        let unnamed = [&lines[..5], &lines[6..]].concat();
        assert!(!tally(&unnamed).is_good_but_for_failed());
    }

    #[test]
    fn a_program_killed_before_its_result_is_a_failure() {
        assert!(!tally(&["test result: ok. 1 passed; 0 failed", "== status 137"]).is_good());
        assert!(!tally(&["== status 0"]).is_good());
    }
}
