// SPDX-License-Identifier: MIT OR Apache-2.0
//! Columns of numbers as few bytes: differences, in a variable number of bytes each (LEB128, zigzag), deflated. `page.js`
//! reads them in the same order.

use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::io::Write;

/// JavaScript's numbers are exact up to here.
const MOST: i64 = 1 << 53;

/// Points of a bucket of the level below.
pub(super) const BUCKET: usize = 4;
/// Buckets or points of a series that are drawn at once: a few for each pixel of the width.
pub(super) const MOST_DRAWN: usize = 4000;
/// A level with fewer points has none above it.
const LEAST_POINTS: usize = 2048;

/// Writes columns.
#[derive(Default)]
pub(super) struct Packer {
    bytes: Vec<u8>,
}

impl Packer {
    /// A column of times or values.
    pub fn column(&mut self, values: impl Iterator<Item = i64>) {
        let mut before = 0;
        for value in values {
            let value = value.clamp(-MOST, MOST);
            self.number(value - before);
            before = value;
        }
    }

    fn number(&mut self, value: i64) {
        let mut zigzag = ((value << 1) ^ (value >> 63)) as u64;
        while zigzag >= 0x80 {
            self.bytes.push(zigzag as u8 | 0x80);
            zigzag >>= 7;
        }
        self.bytes.push(zigzag as u8);
    }

    /// All columns, deflated (RFC 1951).
    pub fn finish(self) -> std::io::Result<Vec<u8>> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&self.bytes)?;
        encoder.finish()
    }
}

/// Least and greatest of each four of the level below, again and again: what is drawn where pixels are fewer than points.
pub(super) fn levels(ranges: &[(i64, i64)]) -> Vec<Vec<(i64, i64)>> {
    let mut levels: Vec<Vec<(i64, i64)>> = Vec::new();
    loop {
        let below = levels.last().map_or(ranges, Vec::as_slice);
        if below.len() < LEAST_POINTS {
            return levels;
        }
        let joined = below.chunks(BUCKET).map(|bucket| {
            let low = bucket.iter().map(|(low, _)| *low).min();
            let high = bucket.iter().map(|(_, high)| *high).max();
            (low.unwrap_or_default(), high.unwrap_or_default())
        });
        let joined = joined.collect();
        levels.push(joined);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_keep_what_stands_out() {
        let mut ranges = vec![(5, 6); 1_000_000];
        ranges[654_321] = (1, 90);
        let levels = levels(&ranges);
        assert_eq!(levels.len(), 5);
        for (n, level) in levels.iter().enumerate() {
            assert_eq!(
                level.len(),
                1_000_000_usize.div_ceil(BUCKET.pow(n as u32 + 1))
            );
            assert_eq!(level[654_321 / BUCKET.pow(n as u32 + 1)], (1, 90));
        }
    }

    #[test]
    fn numbers_take_as_few_bytes_as_they_need() {
        let mut packer = Packer::default();
        packer.column([1, 2, 0, 200, i64::MAX].into_iter());
        assert_eq!(packer.bytes[..5], [2, 2, 3, 0x90, 3]);
        assert!(packer.bytes.len() < 14);
    }
}
