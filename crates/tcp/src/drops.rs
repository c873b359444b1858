// SPDX-License-Identifier: MIT OR Apache-2.0
//! Segments that are lost on purpose, as the test harness of seed 004 did ("drop packet 20").

/// Numbers in rising order; each stands for one transmission.
#[derive(Debug)]
pub struct DropList {
    left: Vec<u64>,
}

impl DropList {
    /// Of these segments, in any order.
    pub fn new(numbers: &[u64]) -> DropList {
        let mut left = numbers.to_vec();
        left.sort_unstable();
        DropList { left }
    }

    /// Whether this transmission of segment `number` is to be lost.
    pub fn take(&mut self, number: u64) -> bool {
        let found = self.left.binary_search(&number);
        found.map(|place| self.left.remove(place)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_there_twice_is_lost_twice() {
        let mut drops = DropList::new(&[7, 3, 7]);
        let lost = [3, 3, 7, 7, 7, 1].map(|number| drops.take(number));
        assert_eq!(lost, [true, false, true, true, false, false]);
    }
}
