// SPDX-License-Identifier: MIT OR Apache-2.0
//! What TCP knows of a flow, by the names of RFC 4898, and what follows from it.
//!
//! A [`Sample`](fatpath_api::Sample) is everything that the kernel half says of one flow at one moment. A
//! [`FlowTable`] takes samples and answers with [`FlowView`](fatpath_api::FlowView)s: differences and rates, the administrator's own [`derived`] events, and
//! the [`diagnosis`]. The crate is pure: samples and the time are arguments. It reads no socket and changes
//! none. Start reading at [`table`].

pub mod derived;
pub mod diagnosis;
mod events;
mod evidence;
mod latest;
mod least_rtt;
pub mod listing;
mod path_window;
mod record;
mod rule;
mod span;
pub mod table;
pub mod tally;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod totals;
mod under_law;
pub mod variables;
mod window;

pub use derived::{BadFormula, Derived};
pub use rule::Rule;
pub use table::{Bounds, Changed, Changes, FlowTable};
pub use tally::{Tally, TallyBounds};
