// SPDX-License-Identifier: MIT OR Apache-2.0
//! Seeds: every direction of every link draws from a stream of its own, whatever seed it was given.
//!
//! Pure. Start with [`of_direction`].

/// Cells count up from their direction's seed, so it stays below this.
const SEED_BITS: u32 = 62;

/// The seed of a direction (0 or 1) of a link. It follows from the link's name and seed alone, so that
/// another link in the file changes nothing.
pub(super) fn of_direction(seed: u64, link: &str, direction: usize) -> u64 {
    mixed(hash_of_name(seed, link) ^ direction as u64) >> (u64::BITS - SEED_BITS)
}

/// Names that differ a little give numbers that differ in all bits.
pub fn hash_of_name(seed: u64, name: &str) -> u64 {
    let mix = |sum, byte| mixed(sum ^ u64::from(byte));
    name.bytes().fold(seed, mix)
}

/// Spreads neighbouring numbers over all 64 bits: SplitMix64 (Steele, Lea, Flood 2014, figure 15).
pub fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
