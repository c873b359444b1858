// SPDX-License-Identifier: MIT OR Apache-2.0
//! Differences between two clocks' times of the same bytes: few are kept of many, so that what they mean can be said when
//! the clocks' difference is known.

/// 16 bytes each.
const MOST_KEPT: usize = 65_536;

#[derive(Clone, Debug)]
pub(crate) struct Delays {
    middle_ns: i64,
    pub count: u64,
    /// Least and greatest, in the first and in the second half of the connection.
    halves: [Option<(i64, i64)>; 2],
    kept: Vec<i64>,
    /// One of so many is kept.
    every: u64,
}

impl Delays {
    /// `middle_ns`: the middle of the connection, by the first clock.
    pub fn new(middle_ns: i64) -> Delays {
        Delays {
            middle_ns,
            count: 0,
            halves: [None; 2],
            kept: Vec::new(),
            every: 1,
        }
    }

    /// What the second clock said, less what the first did.
    pub fn add(&mut self, times_ns: [i64; 2]) {
        let difference_ns = times_ns[1].saturating_sub(times_ns[0]);
        let half = &mut self.halves[usize::from(times_ns[0] >= self.middle_ns)];
        let (least, most) = half.unwrap_or((difference_ns, difference_ns));
        *half = Some((least.min(difference_ns), most.max(difference_ns)));
        if self.count.is_multiple_of(self.every) {
            self.kept.push(difference_ns);
        }
        self.count += 1;
        if self.kept.len() > MOST_KEPT {
            let mut keep = false;
            self.kept.retain(|_| {
                keep = !keep;
                keep
            });
            self.every *= 2;
        }
    }

    /// Least, and greatest, of one half.
    pub fn range(&self, half: usize) -> Option<(i64, i64)> {
        self.halves[half]
    }

    /// Of both.
    pub fn whole_range(&self) -> Option<(i64, i64)> {
        let ranges = self.halves.iter().flatten();
        ranges.copied().reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// In order.
    pub fn sorted(&self) -> Vec<i64> {
        let mut sorted = self.kept.clone();
        sorted.sort_unstable();
        sorted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_of_many_are_kept_and_the_least_is_exact() {
        let mut delays = Delays::new(500_000);
        (0..1_000_000).for_each(|i| delays.add([i, i + 1000 + i % 100]));
        assert!(delays.sorted().len() <= MOST_KEPT);
        assert_eq!(delays.whole_range(), Some((1000, 1099)));
        let sorted = delays.sorted();
        let median = sorted[sorted.len() / 2];
        assert!((1040..1060).contains(&median), "{median}");
    }
}
