// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of TCP sockets that `nix` does not name.
#![allow(unsafe_code)] // the macro's own call of the kernel, and a value of which it fills a part

use nix::sys::socket::sockopt::Get;
use nix::{getsockopt_impl, libc, setsockopt_impl, sockopt_impl};
use std::ffi::c_void;

sockopt_impl!(
    /// How a connection stands. What the kernel does not know yet is 0.
    Info,
    GetOnly,
    libc::IPPROTO_TCP,
    libc::TCP_INFO,
    libc::tcp_info,
    Partial
);
sockopt_impl!(
    /// Bytes a second that leave at most.
    MaxPacingRate,
    SetOnly,
    libc::SOL_SOCKET,
    libc::SO_MAX_PACING_RATE,
    u64
);

/// A `struct tcp_info`, of which the kernel fills as much as it knows: the struct grows at its end from version to version, and
/// `nix` ends the program where a value is shorter than its type.
pub(crate) struct Partial {
    len_bytes: libc::socklen_t,
    info: libc::tcp_info,
}

impl Get<libc::tcp_info> for Partial {
    fn uninit() -> Partial {
        Partial {
            len_bytes: size_of::<libc::tcp_info>() as libc::socklen_t,
            // SAFETY: a struct of integers, for which 0 is a value.
            info: unsafe { std::mem::zeroed() },
        }
    }

    fn ffi_ptr(&mut self) -> *mut c_void {
        (&raw mut self.info).cast()
    }

    fn ffi_len(&mut self) -> *mut libc::socklen_t {
        &mut self.len_bytes
    }

    unsafe fn assume_init(self) -> libc::tcp_info {
        self.info
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux 6.1 knows 232 bytes of it.
    #[test]
    fn an_older_kernel_fills_a_part() {
        let mut partial = Partial::uninit();
        // SAFETY: both point into `partial`, whose first byte is tcpi_state.
        unsafe {
            partial.ffi_ptr().cast::<u8>().write(1);
            *partial.ffi_len() = 232;
        }
        // SAFETY: it was zeroed.
        let info = unsafe { partial.assume_init() };
        assert_eq!((info.tcpi_state, info.tcpi_total_rto), (1, 0));
    }
}
