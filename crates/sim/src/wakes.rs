// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which of a fixed number of things is due first: a tournament of their times. A change costs one
//! comparison a level, and of equal times the lowest index wins.

/// The moment of what does not come.
pub(crate) const NEVER: u64 = u64::MAX;

/// A time for each index.
#[derive(Clone, Debug)]
pub(crate) struct Wakes {
    /// The root at 1; below it, the children of `i` at `2 i` and `2 i + 1`; the leaves are the second half.
    first_ns: Vec<u64>,
}

impl Wakes {
    pub(crate) fn new(count: usize) -> Wakes {
        Wakes {
            first_ns: vec![NEVER; 2 * count.next_power_of_two().max(2)],
        }
    }

    /// When the first is due; the greatest time if none is.
    pub(crate) fn first_ns(&self) -> u64 {
        self.first_ns[1]
    }

    /// The one that is due first.
    pub(crate) fn first(&self) -> usize {
        let leaves = self.first_ns.len() / 2;
        let mut node = 1;
        while node < leaves {
            node *= 2;
            node += usize::from(self.first_ns[node] != self.first_ns[node / 2]);
        }
        node - leaves
    }

    /// Sets when `index` is due.
    pub(crate) fn set(&mut self, index: usize, at_ns: Option<u64>) {
        let mut node = self.first_ns.len() / 2 + index;
        self.first_ns[node] = at_ns.unwrap_or(NEVER);
        while node > 1 {
            node /= 2;
            let first = self.first_ns[2 * node].min(self.first_ns[2 * node + 1]);
            if self.first_ns[node] == first {
                return;
            }
            self.first_ns[node] = first;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_the_first_of_the_least(
            count in 1..20usize,
            sets in proptest::collection::vec((0..20usize, proptest::option::of(0..10u64)), 1..60),
        ) {
            let (mut wakes, mut plain) = (Wakes::new(count), vec![NEVER; count]);
            for (index, at_ns) in sets {
                wakes.set(index % count, at_ns);
                plain[index % count] = at_ns.unwrap_or(NEVER);
                let least = *plain.iter().min().unwrap();
                prop_assert_eq!(wakes.first_ns(), least);
                prop_assert_eq!(Some(wakes.first()), plain.iter().position(|at| *at == least));
            }
        }
    }
}
