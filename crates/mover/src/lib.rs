// SPDX-License-Identifier: MIT OR Apache-2.0
//! Moves files over the transport: `fatpath send` and `fatpath recv`.
//!
//! The end that a person starts (the caller) starts the other (the called) by ssh. The session of ssh is the control
//! channel: it carries the keys' random bytes, what there is to move, what the other end wants of it, and what became of
//! each file. The bytes of files go over UDP, or over TCP where UDP is blocked, and nothing else does.
//!
//! Where there is no ssh, `fatpath recv --listen` takes connections on which both ends prove a key that the other one trusts
//! (`by_key.rs`, `listen/`), and starts a process of its own for each, which is called as ssh would call it.
//!
//! ```text
//!  sender                                             receiver
//!  walk ── Entries ───────────────► names ► target: what is there already?
//!  queue ◄────────────── Wanted ───┘
//!  source ══ carrier: UDP or TCP ═► arrivals ► parts: written, noted in the journal
//!  hash ── Checksums ─────────────► finish: hash, sync, rename
//!  report ◄─────────────── Stored ─┘
//! ```
//!
//! Neither end trusts the other with more than the transfer: names stay below the folder, memory is bounded, and what does
//! not parse ends the session. Start reading at `protocol.rs`, then `send/mod.rs` and `receive/mod.rs`; docs/mover.md has what
//! is promised.

mod arguments;
mod arrivals;
mod by_key;
mod carrier;
pub mod cli;
mod control;
mod knobs;
mod limits;
mod listen;
pub mod protocol;
mod receive;
mod remote;
mod report;
mod send;
mod session;
mod way;

pub use cli::{RecvArguments, SendArguments};
pub use fatpath_flow::rude::Ask;

/// What reads bytes of others, for the fuzz target `control`.
pub mod fuzzed {
    pub use fatpath_tree::journal::{Header, Recovered, recover};
}
