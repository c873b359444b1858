// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of TCP sockets that `nix` does not name.
#![allow(unsafe_code)] // the macro's own call of the kernel

use nix::{getsockopt_impl, libc, setsockopt_impl, sockopt_impl};

sockopt_impl!(
    /// How a connection stands.
    Info,
    GetOnly,
    libc::IPPROTO_TCP,
    libc::TCP_INFO,
    libc::tcp_info
);
sockopt_impl!(
    /// Bytes a second that leave at most.
    MaxPacingRate,
    SetOnly,
    libc::SOL_SOCKET,
    libc::SO_MAX_PACING_RATE,
    u64
);
