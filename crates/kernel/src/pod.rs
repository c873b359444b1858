// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values of the ABI as bytes and back. The only place that reinterprets memory.
#![allow(unsafe_code)] // map values are plain bytes to libbpf, structs to us

use crate::abi;
use compact_str::CompactString;

/// A type whose every bit pattern is a value and that has no padding.
///
/// # Safety
/// Implement only for `#[repr(C)]` structs of integers and arrays of them whose layout
/// leaves no byte unnamed (abi.h names its padding).
pub(crate) unsafe trait Pod: Copy + Default {}

macro_rules! pods {
    ($($type:ty),*) => { $(
        // SAFETY: from abi.h: fixed-width integers, padding named.
        unsafe impl Pod for $type {}
    )* };
}

pods!(
    u32,
    u64,
    abi::fp_rule,
    abi::fp_name,
    abi::fp_build,
    abi::fp_rule_set,
    abi::fp_control,
    abi::fp_share,
    abi::fp_share_event,
    abi::fp_rude_user,
    abi::fp_flow_record,
    abi::fp_walk,
    abi::fp_address_key,
    abi::fp_instruments,
    abi::fp_sample,
    abi::fp_interface,
    abi::fp_mark,
    abi::fp_marked,
    abi::fp_police,
    abi::fp_rude_flow,
    abi::fp_rude_gate,
    abi::fp_tally,
    abi::fp_watched,
    abi::fp_watched_flow
);

/// The bytes of a value.
pub(crate) fn bytes_of<T: Pod>(value: &T) -> &[u8] {
    // SAFETY: Pod has no padding, so all size_of bytes are initialised.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// The value at the front of `bytes`; `None` when they are too few.
pub(crate) fn value_of<T: Pod>(bytes: &[u8]) -> Option<T> {
    if bytes.len() < size_of::<T>() {
        return None;
    }
    // SAFETY: enough bytes, any bit pattern is a value, the read is unaligned.
    Some(unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) })
}

/// The value at the front of `bytes`, where it lies; `None` when they are too few, or not aligned for it.
pub(crate) fn value_in<T: Pod>(bytes: &[u8]) -> Option<&T> {
    let front = bytes.as_ptr().cast::<T>();
    if bytes.len() < size_of::<T>() || !front.is_aligned() {
        return None;
    }
    // SAFETY: enough bytes, aligned, any bit pattern is a value; they are borrowed as long as it.
    Some(unsafe { &*front })
}

/// The bytes of values, to be written.
pub(crate) fn bytes_of_mut<T: Pod>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: Pod has no padding, so all bytes are initialised, and any that are written make values.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
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
