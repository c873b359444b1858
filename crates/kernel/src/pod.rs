// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values of the ABI, which are plain bytes to libbpf, and the texts within them.

use compact_str::CompactString;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A type whose every bit pattern is a value and that has no padding: the derives of abi.rs prove it.
pub(crate) trait Pod: FromBytes + IntoBytes + Immutable + KnownLayout + Default {}

impl<T: FromBytes + IntoBytes + Immutable + KnownLayout + Default> Pod for T {}

/// The value at the front of `bytes`; `None` when they are too few.
pub(crate) fn value_of<T: Pod>(bytes: &[u8]) -> Option<T> {
    T::read_from_prefix(bytes).ok().map(|(value, _)| value)
}

/// The text before the first NUL.
pub(crate) fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(before_nul(bytes)).into_owned()
}

/// The same of a name that is too short to need memory of its own.
pub(crate) fn name_of(bytes: &[u8]) -> CompactString {
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
pub(crate) fn field_of<const N: usize>(text: &str) -> [u8; N] {
    let mut field = [0; N];
    let length = text.len().min(N - 1);
    field[..length].copy_from_slice(&text.as_bytes()[..length]);
    field
}
