// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many samples a second the policy's share of a processor pays for. No I/O.
//!
//! A sample costs what the kernel's programs take to make it, which they time now and then, and what the daemon takes
//! to read it. Start at [`Budget::follow`].

use fatpath_kernel::TimedSamples;
use fatpath_policy::HostSettings;

/// What a sample is taken to cost before any was timed, ns: `estats.active_core_share` of docs/performance.md.
const SAMPLE_NS: u64 = 7_500;

/// A cost outside these is that of a machine that did something else, ns.
const LEAST_SAMPLE_NS: u64 = 500;
const MOST_SAMPLE_NS: u64 = 100_000;

/// Fewer samples tell nothing of what one costs.
const LEAST_SAMPLES: u64 = 200;
const LEAST_TIMED: u64 = 10;

/// Samples so far, and what they took.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spent {
    pub samples: u64,
    /// Processor time of the thread that reads them, ns.
    pub reader_ns: u64,
    /// In the kernel.
    pub timed: TimedSamples,
}

/// The budget of samples.
#[derive(Debug)]
pub(super) struct Budget {
    host: HostSettings,
    sample_ns: u64,
    spent: Spent,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget {
            host: HostSettings::default(),
            sample_ns: SAMPLE_NS,
            spent: Spent::default(),
        }
    }
}

impl Budget {
    pub(super) fn set_policy(&mut self, host: &HostSettings) {
        self.host = host.clone();
    }

    pub(super) fn samples_per_s(&self) -> u32 {
        self.host.sample_budget(self.sample_ns)
    }

    /// Answers whether enough samples came to know their cost anew.
    pub(super) fn follow(&mut self, now: Spent) -> bool {
        let samples = now.samples.saturating_sub(self.spent.samples);
        let timed = now.timed.samples.saturating_sub(self.spent.timed.samples);
        if samples < LEAST_SAMPLES || timed < LEAST_TIMED {
            return false;
        }
        let made_ns = now.timed.ns.saturating_sub(self.spent.timed.ns) / timed;
        let read_ns = now.reader_ns.saturating_sub(self.spent.reader_ns) / samples;
        let sample_ns = (made_ns + read_ns).clamp(LEAST_SAMPLE_NS, MOST_SAMPLE_NS);
        // Smoothed as TCP smooths a round-trip time (RFC 6298, section 2: alpha = 1/8).
        self.sample_ns = (7 * self.sample_ns + sample_ns) / 8;
        self.spent = now;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fatpath_policy::parse;

    fn budget(host: &str) -> Budget {
        let mut budget = Budget::default();
        let policy = parse(&format!("[host]\n{host}\n"), None).unwrap();
        budget.set_policy(&policy.host);
        budget
    }

    /// After `n` times 1,000 samples that cost so much each.
    fn spent(n: u64, made_ns: u64, read_ns: u64) -> Spent {
        let samples = 1000 * n;
        let timed = TimedSamples {
            samples: samples / 16,
            ns: samples / 16 * made_ns,
        };
        Spent {
            samples,
            reader_ns: samples * read_ns,
            timed,
        }
    }

    #[test]
    fn a_share_pays_for_the_more_samples_the_cheaper_they_are() {
        let mut budget = budget("");
        assert_eq!(budget.samples_per_s(), 2666);
        (1..=50).for_each(|n| assert!(budget.follow(spent(n, 1000, 3000))));
        assert!((4900..=5100).contains(&budget.samples_per_s()));
        assert!(!budget.follow(spent(50, 1000, 3000)), "nothing new");
    }

    #[test]
    fn the_number_bounds_what_the_share_would_pay_for() {
        let bounded = budget("samples_per_s = 100");
        assert_eq!(bounded.samples_per_s(), 100);
        assert_eq!(budget("sample_cpu_share = 0.5").samples_per_s(), 66_666);
    }
}
