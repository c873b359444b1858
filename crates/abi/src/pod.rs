// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values of the ABI, which are plain bytes to libbpf, and the texts within them.

use compact_str::CompactString;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A type whose every bit pattern is a value and that has no padding: the derives of abi.rs prove it.
pub trait Pod: FromBytes + IntoBytes + Immutable + KnownLayout + Default {}

impl<T: FromBytes + IntoBytes + Immutable + KnownLayout + Default> Pod for T {}

/// The value at the front of `bytes`; `None` when they are too few.
pub fn value_of<T: Pod>(bytes: &[u8]) -> Option<T> {
    T::read_from_prefix(bytes).ok().map(|(value, _)| value)
}

/// The text before the first NUL.
pub fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(before_nul(bytes)).into_owned()
}

/// The same of a name that is too short to need memory of its own.
pub fn name_of(bytes: &[u8]) -> CompactString {
    let bytes = before_nul(bytes);
    match std::str::from_utf8(bytes) {
        Ok(text) => CompactString::from(text),
        Err(_) => CompactString::from_utf8_lossy(bytes),
    }
}

fn before_nul(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    &bytes[..end]
}

/// `text` in a field of `N` bytes, cut so that a NUL follows.
pub fn field_of<const N: usize>(text: &str) -> [u8; N] {
    let mut field = [0; N];
    let length = text.len().min(N - 1);
    field[..length].copy_from_slice(&text.as_bytes()[..length]);
    field
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fp_name;

    #[test]
    fn a_text_comes_back_from_its_field_and_is_cut_where_none_is_left() {
        let field: [u8; 8] = field_of("cubic");
        assert_eq!(
            (text_of(&field), name_of(&field)),
            ("cubic".into(), "cubic".into())
        );
        let field: [u8; 4] = field_of("cubic");
        assert_eq!(&field, b"cub\0");
        assert_eq!(name_of(b"no NUL"), "no NUL");
        assert_eq!(name_of(b"\xff"), "\u{fffd}");
    }

    #[test]
    fn a_value_is_read_from_the_front_of_enough_bytes() {
        let name = fp_name {
            text: field_of("bulk"),
        };
        let mut bytes = name.as_bytes().to_vec();
        bytes.push(7);
        assert_eq!(value_of(&bytes), Some(name));
        assert_eq!(value_of::<fp_name>(&bytes[..8]), None);
    }
}
