// SPDX-License-Identifier: MIT OR Apache-2.0
//! Active probing: packet trains of `fatpath-train` over real sockets, of UDP between hosts that run fatpath, and of what any host
//! answers (`answered`).
//!
//! [`send`] paces a train and says when each batch left; [`Receiver`] collects its packets with the kernel's
//! timestamps. What the two records mean is decided in `fatpath-train`. Start at [`packet::Header`], the content of a
//! datagram: each proves by a secret of both ends that it is of their test, and nothing else gets into a record.

pub mod answered;
pub mod packet;
mod receive;
mod secret;
mod send;

pub use receive::{Patience, Receiver, Record};
pub use secret::{Secret, TAG_BYTES};
pub use send::{send, set_udp_segment};
