// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packet trains: which ones to send over a path, and what their dispersion says of its bottleneck.
//!
//! A train is a row of packets of one length at one rate. Where it meets a FIFO bottleneck of rate C beside cross
//! traffic of rate X, and the two together exceed C, it leaves at a lower rate: the ratio of input to output rate is
//! (input + X) / C (the fluid model of TOPP: Melander, Björkman, Gunningberg 2000; Liu, Ravindran, Loguinov 2005 for
//! its limits). Trains at several rates give points on that line; its slope is 1/C, and C − X is the available rate.
//! A full drop-tail queue drops what both offer in proportion, so the line holds for the bytes that arrive, whether the
//! rest waits or is lost.
//!
//! Pure: no clock, no socket. Start at [`Search`], which names the trains one by one; [`Response::of`] reads one train's
//! records, and [`Estimate::of`] fits the line through all responses. [`SingleEndedSearch`] is a search by answers alone.

mod estimate;
mod records;
mod response;
mod search;
mod single_ended;

pub use estimate::{Estimate, Queue, Value};
pub use records::{Arrival, Departure, MAX_BATCH_PACKETS, Train};
pub use response::{Response, Unusable};
pub use search::{LEAST_PACKETS, Limits, Search};
pub use single_ended::{SingleEndedEstimate, SingleEndedSearch};
