// SPDX-License-Identifier: MIT OR Apache-2.0
//! What happened on a host, kept and queried: ends of flows, events, tests, estimates of paths, decisions.
//!
//! An [`Event`] is first appended to the [`Spool`], a folder of checksummed segments. [`Spool::sync`] makes everything
//! appended so far durable: from then on a crash neither loses nor doubles it. [`move_oldest`] moves events on into a
//! [`Store`](store::Store), which answers queries; [`Latest`] has the newest of each path in memory. The crate starts no thread, and reads no clock: `now` is an argument.
//! Start at [`Spool`] and [`mod@store`]; the form of a segment is in [`mod@segment`].

mod event;
pub mod import;
mod latest;
mod mover;
mod sealed;
pub mod segment;
mod spool;
pub mod store;
mod time;

pub use event::{Event, Kind, Origin, UnknownKind};
pub use latest::{Latest, LatestEvent, LatestQuery};
pub use mover::{MoveError, move_oldest};
pub use sealed::{Claimed, SealedSegments};
pub use spool::{Bounds, Spool, SpoolError, SpoolStatus};
pub use time::rfc3339;
