// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a guest's tests said, counted as tests/run.sh counts the host's.

/// Counts of one run.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tally {
    passed: u32,
    failed: u32,
    skipped: u32,
    /// Test programs that ended otherwise than well.
    broken: u32,
}

impl Tally {
    /// Takes one line of the job's output.
    pub fn add(&mut self, line: &str) {
        if let Some(result) = line.strip_prefix("test result:") {
            self.passed += count(result, " passed");
            self.failed += count(result, " failed");
        } else if line.starts_with("skipped:") {
            self.skipped += 1;
        } else if let Some(status) = line.strip_prefix("== status ") {
            self.broken += u32::from(status != "0");
        }
    }

    /// Everything passed and something ran. The guest has all that a test may ask for: none may skip.
    pub fn is_good(&self) -> bool {
        self.passed > 0 && self.failed + self.skipped + self.broken == 0
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let passed = self.passed.saturating_sub(self.skipped);
        let Tally {
            failed, skipped, ..
        } = self;
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
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
    fn a_program_killed_before_its_result_is_a_failure() {
        assert!(!tally(&["test result: ok. 1 passed; 0 failed", "== status 137"]).is_good());
        assert!(!tally(&["== status 0"]).is_good());
    }
}
