// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that is needed soon.
#![allow(unsafe_code)] // the instruction has no safe face

/// Has a value fetched, without waiting for it; nothing on processors for which Rust has no such call.
pub(crate) fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    for line in 0..size_of::<T>().div_ceil(LINE_BYTES) {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let at = std::ptr::from_ref(value).cast::<i8>();
        // SAFETY: a hint, which reads and changes nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.wrapping_add(line * LINE_BYTES)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

/// Of a processor's cache.
#[cfg(target_arch = "x86_64")]
const LINE_BYTES: usize = 64;
