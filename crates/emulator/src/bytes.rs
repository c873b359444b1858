// SPDX-License-Identifier: MIT OR Apache-2.0
//! 16-bit fields of headers. The caller has checked that they lie within the bytes.

/// A field in network byte order.
pub(crate) fn be_u16(bytes: &[u8], offset: usize) -> u16 {
    u16::from_be_bytes([bytes[offset], bytes[offset + 1]])
}

/// Sets a field in network byte order.
pub(crate) fn set_be_u16(bytes: &mut [u8], offset: usize, value: u16) {
    bytes[offset..offset + 2].copy_from_slice(&value.to_be_bytes());
}

/// A field in host byte order.
pub(crate) fn host_u16(bytes: &[u8], offset: usize) -> u16 {
    u16::from_ne_bytes([bytes[offset], bytes[offset + 1]])
}
