// SPDX-License-Identifier: MIT OR Apache-2.0
//! Randomness from a seed: streams of their own for each cell and each source of traffic, and the draws
//! that they share.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A stream of random numbers, the same whenever it is made from the same seed.
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The stream of the cell or source `index` under `seed`. Neighbouring seeds and indexes have nothing in
    /// common, and no pair of them meets another by counting on.
    pub fn stream(seed: u64, index: u64) -> Random {
        let mixed = splitmix64(splitmix64(seed).wrapping_add(index));
        Random(Xoshiro256PlusPlus::seed_from_u64(mixed))
    }

    /// Another stream, which this one's next number decides.
    pub(crate) fn fork(&mut self) -> Random {
        Random(Xoshiro256PlusPlus::seed_from_u64(self.bits()))
    }

    /// 64 even bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in (0, 1].
    pub fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 * 2f64.powi(-53)
    }

    /// How many trials of `probability` fail before the first that succeeds; `u64::MAX` if none can.
    ///
    /// Geometric, by inversion: floor(ln U / ln(1 − p)).
    pub(crate) fn failures(&mut self, probability: f64) -> u64 {
        if probability <= 0.0 {
            return u64::MAX;
        }
        // The cast saturates; for p = 1 the quotient is −0, which becomes 0.
        (self.unit().ln() / (-probability).ln_1p()) as u64
    }
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014, figure 16), a bijection.
fn splitmix64(value: u64) -> u64 {
    let mut mixed = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Segments in a row that fare alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// Whether they are chosen: lost, duplicated, whatever the cell does.
    pub(crate) chosen: bool,
    /// How many, at least 1.
    pub(crate) segments: u32,
}

impl Stretch {
    /// Of `limit` segments, those before the next chosen one, which `spared` others precede; or, with
    /// none before it, `run` chosen ones.
    #[inline]
    pub(crate) fn before(spared: u64, run: u64, limit: u32) -> Stretch {
        let (chosen, segments) = match spared {
            0 => (true, run),
            spared => (false, spared),
        };
        Stretch {
            chosen,
            segments: segments.min(u64::from(limit)) as u32,
        }
    }
}

/// Chooses each segment with the same probability, whatever befell the others.
///
/// The runs of those spared are geometric, so one draw a choice does what one draw a segment would: a
/// super-packet of which nothing is chosen costs one comparison.
#[derive(Clone, Debug)]
pub(crate) struct Picker {
    probability: f64,
    /// Segments before the next chosen one.
    spared: u64,
}

impl Picker {
    /// Chooses with `probability`, 0 to 1.
    pub(crate) fn new(probability: f64, random: &mut Random) -> Picker {
        Picker {
            probability,
            spared: random.failures(probability),
        }
    }

    /// Goes on with another probability.
    pub(crate) fn change(&mut self, probability: f64, random: &mut Random) {
        if probability != self.probability {
            *self = Picker::new(probability, random);
        }
    }

    /// What becomes of the next segments, `limit` at most.
    #[inline]
    pub(crate) fn next(&mut self, limit: u32, random: &mut Random) -> Stretch {
        if self.spared > 0 {
            let stretch = Stretch::before(self.spared, 0, limit);
            self.spared -= u64::from(stretch.segments);
            return stretch;
        }
        let mut run = 0;
        while self.spared == 0 && run < limit {
            run += 1;
            self.spared = random.failures(self.probability);
        }
        Stretch {
            chosen: true,
            segments: run,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_cells_of_neighbouring_links_draw_the_same() {
        let seeds = (0..30).chain([u64::MAX - 1, u64::MAX]);
        let pairs = seeds.flat_map(|seed| (0..30).map(move |index| (seed, index)));
        let mut first: Vec<_> = pairs
            .map(|(seed, index)| Random::stream(seed, index).bits())
            .collect();
        first.sort_unstable();
        assert!(first.is_sorted_by(|one, next| one < next));
    }
}
