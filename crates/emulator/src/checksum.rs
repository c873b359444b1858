// SPDX-License-Identifier: MIT OR Apache-2.0
//! The Internet checksum (RFC 1071) and its correction when a field changes (RFC 1624). Pure; knows
//! no headers.
//!
//! All sums are ones' complement sums of big-endian 16-bit words, not yet inverted.

/// The sum of `bytes`; an odd last one counts as if a zero followed.
pub(crate) fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(4);
    let mut tail = [0; 4];
    tail[..words.remainder().len()].copy_from_slice(words.remainder());
    // The order of bytes does not matter until the end (RFC 1071, section 2.B), and no packet has
    // the 2^32 words that would overflow 64 bits.
    let wide: u64 = words
        .map(|word| u64::from(u32::from_ne_bytes([word[0], word[1], word[2], word[3]])))
        .sum();
    fold(wide + u64::from(u32::from_ne_bytes(tail))).to_be()
}

/// The sum of two sums.
pub(crate) fn plus(one: u16, other: u16) -> u16 {
    fold(u64::from(one) + u64::from(other))
}

/// A sum in which the term `old` is replaced by `new` (RFC 1624, equation 3).
pub(crate) fn replacing(sum: u16, old: u16, new: u16) -> u16 {
    fold(u64::from(sum) + u64::from(!old) + u64::from(new))
}

/// What a checksum field holds over data of this sum. Never 0, which means "none" in UDP and is
/// the same number as 0xffff elsewhere.
pub(crate) fn field(sum: u16) -> u16 {
    match !sum {
        0 => 0xffff,
        inverted => inverted,
    }
}

/// Whether data that includes its checksum field is right, by its sum.
pub(crate) fn is_right(sum: u16) -> bool {
    sum == 0xffff
}

fn fold(mut wide: u64) -> u16 {
    while wide > 0xffff {
        wide = (wide & 0xffff) + (wide >> 16);
    }
    wide as u16
}

#[cfg(test)]
mod tests {
    use etherparse::checksum::Sum16BitWords;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_sum_is_that_of_etherparse(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let theirs = !Sum16BitWords::new().add_slice(&bytes).ones_complement().to_be();
            prop_assert_eq!(sum(&bytes) % 0xffff, theirs % 0xffff);
        }

        #[test]
        fn replacing_a_word_is_summing_anew(
            mut words in prop::collection::vec(any::<[u8; 2]>(), 1..20),
            index in any::<prop::sample::Index>(),
            new in any::<[u8; 2]>(),
        ) {
            let index = index.index(words.len());
            let before = sum(&words.concat());
            let old = std::mem::replace(&mut words[index], new);
            let corrected = replacing(before, u16::from_be_bytes(old), u16::from_be_bytes(new));
            prop_assert_eq!(corrected % 0xffff, sum(&words.concat()) % 0xffff);
        }
    }

    #[test]
    fn data_with_its_checksum_is_right() {
        let mut data = [1, 2, 3, 4, 0, 0];
        let field = field(sum(&data)).to_be_bytes();
        data[4..].copy_from_slice(&field);
        assert!(is_right(sum(&data)));
        data[0] ^= 4;
        assert!(!is_right(sum(&data)));
    }
}
