// SPDX-License-Identifier: MIT OR Apache-2.0
//! What theory expects of TCP on a path: rates, windows, times, buffers.
//!
//! Each model is one small file with its source, its range and the greatest error that `make bench
//! NAME=model.sim_error` allows it against the simulator. Floating point, pure: no clock, no randomness, no I/O. It
//! refuses nothing outside of a model's range, but says so ([`Model::outside`]). It estimates nothing of a path and
//! decides nothing: whoever asks knows round-trip time, loss and rate.
//!
//! Start at [`Path`], what is asked about, then [`throughput::of_law`]; [`MODELS`] lists what there is.

pub mod aimd;
pub mod bbr;
pub mod buffers;
pub mod cardwell;
mod catalogue;
pub mod cubic;
pub mod highspeed;
mod inverse;
pub mod limits;
pub mod mathis;
mod path;
pub mod pftk;
mod range;
pub mod recovery;
pub mod scalable;
pub mod slow_start;
pub mod streams;
pub mod tfrc;
pub mod throughput;
pub mod transfer;

pub use catalogue::MODELS;
pub use inverse::loss_of_window;
pub use path::Path;
pub use range::{Bound, Losses, Model, Outside, Quantity};
