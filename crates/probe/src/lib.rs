// SPDX-License-Identifier: MIT OR Apache-2.0
//! Active probing between hosts that run fatpath: packet trains of `fatpath-train` over real UDP sockets.
//!
//! [`send`] paces a train and says when each batch left; [`Receiver`] collects its packets with the kernel's
//! timestamps. What the two records mean is decided in `fatpath-train`. Start at [`packet::Header`], the content of a
//! datagram.

pub mod packet;
mod receive;
mod send;

pub use receive::{Patience, Receiver};
pub use send::{send, set_udp_segment};
