// SPDX-License-Identifier: MIT OR Apache-2.0
//! Unsigned LEB128, and taking bytes off the front of a slice.

pub(crate) fn push(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Takes a number off the front; `None` when it is cut or beyond 64 bits.
pub(crate) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let [byte] = take_array(bytes)?;
        let part = u64::from(byte & 0x7f);
        if part << shift >> shift != part {
            return None;
        }
        value |= part << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Takes `N` bytes off the front.
pub(crate) fn take_array<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (front, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*front)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_pushed_is_taken(values in prop::collection::vec(any::<u64>(), 0..9), shift in 0..64) {
            let values: Vec<u64> = values.into_iter().map(|value| value >> shift).collect();
            let mut bytes = vec![];
            values.iter().for_each(|value| push(&mut bytes, *value));
            let mut rest = &bytes[..];
            for value in values {
                prop_assert_eq!(take(&mut rest), Some(value));
            }
            prop_assert!(rest.is_empty());
        }
    }

    #[test]
    fn what_is_cut_or_too_long_is_refused() {
        for bytes in [&[][..], &[0x80], &[0xff; 10], &[0x80; 11]] {
            assert_eq!(take(&mut &bytes[..]), None, "{bytes:?}");
        }
    }
}
