// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cells, one effect a file: what a scenario says of each, the interface that all have in common, and how a
//! cell is made of what a scenario says.
//!
//! A [`ChainSpec`] lists its cells in the order in which packets pass them. It is plain values, which serialise: the
//! lab hands them to the process that forwards, and changes them while traffic runs.

mod at_once;
mod bottleneck;
mod corrupt;
mod delay;
mod duplicate;
mod jitter;
mod loss;
mod mtu;
mod policer;
mod queue;
mod reorder;
mod service;

pub use bottleneck::RateSpec;
pub use corrupt::CorruptSpec;
pub use delay::DelaySpec;
pub use duplicate::DuplicateSpec;
pub use jitter::{Distribution, JitterSpec};
pub use loss::{LossSpec, LossWindow};
pub use mtu::MtuSpec;
pub use policer::{Exceed, PolicerSpec};
pub use queue::{Discipline, QueueSpec};
pub use reorder::ReorderSpec;
pub use service::{RateStep, Service};

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::random::Random;
use crate::{Count, Counters, Departure, Packet};
use at_once::AtOnce;
use bottleneck::Bottleneck;
use corrupt::Corrupt;
use delay::Delay;
use duplicate::Duplicate;
use loss::Loss;
use mtu::Mtu;
use policer::Policer;
use reorder::Reorder;

/// One effect of a link: packets are pushed in, and come out later, changed or not at all.
///
/// Time is the caller's: any monotonic clock in nanoseconds. `now_ns` never goes back between
/// calls. A cell may give several packets for one (split, duplicate), or none (drop, counted by
/// cause), and may hold any number.
pub trait Cell<P: Packet> {
    /// Takes a packet that arrives at `now_ns`. What left before then need not have been popped yet.
    fn push(&mut self, now_ns: u64, packet: P);

    /// When the next packet leaves; `None` while nothing is held, or nothing that will ever leave.
    fn next_due_ns(&self) -> Option<u64>;

    /// The next packet that left at or before `now_ns`, with the moment it did.
    fn pop(&mut self, now_ns: u64) -> Option<Departure<P>>;

    /// What went in, came out and was dropped since the cell was made.
    fn counters(&self) -> Counters;

    /// What the cell holds now, counted from the packets themselves (walks all of them).
    fn held(&self) -> Count;

    /// Takes on the parameters of `spec` from `now_ns` on, keeping what it holds; false if `spec` is
    /// another effect than this cell's.
    fn change(&mut self, now_ns: u64, spec: &CellSpec) -> bool;

    /// The highest depth of its queues, in bytes, since this was asked last; 0 without a queue.
    fn take_peak_bytes(&mut self, _now_ns: u64) -> u64 {
        0
    }

    /// The next packet that goes back to a sender, such as an ICMP message. It has left already, and
    /// no counter knows it.
    fn pop_reply(&mut self) -> Option<P> {
        None
    }
}

/// One direction of a link. The default does nothing to packets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChainSpec {
    /// The cells, in the order in which packets pass them.
    pub cells: Vec<CellSpec>,
    /// Of all that is random here: equal seeds treat equal traffic alike. Each cell draws from a
    /// stream of its own. Read when a cell is made; one that takes on other parameters goes on with
    /// its stream.
    pub seed: u64,
}

/// One effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CellSpec {
    /// Propagation.
    Delay(DelaySpec),
    /// A bottleneck with its queue.
    Rate(RateSpec),
    /// Segments get lost.
    Loss(LossSpec),
    /// Segments come later than those sent after them.
    Reorder(ReorderSpec),
    /// Segments come twice.
    Duplicate(DuplicateSpec),
    /// Segments come damaged.
    Corrupt(CorruptSpec),
    /// Large packets do not pass, and their sender is told.
    Mtu(MtuSpec),
    /// What exceeds a rate and a burst is dropped or marked, without a queue.
    Policer(PolicerSpec),
}

/// A [`ChainSpec`] that no chain can be built from.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum SpecError {
    /// The rate is out of [`Service::RANGE_BPS`].
    #[error("rate of {0} bit/s: give 1 kb/s to 1 Tb/s, or no rate for an unlimited link")]
    Rate(u64),
    /// Something is no probability.
    #[error("{what} of {value}: give a share from 0 to 1")]
    Probability {
        /// What is meant to be one.
        what: &'static str,
        /// What was given.
        value: f64,
    },
    /// The delay is beyond [`ChainSpec::MAX_DELAY_NS`].
    #[error("delay of {0} ns: give at most one hour")]
    Delay(u64),
    /// The overhead is beyond [`ChainSpec::MAX_OVERHEAD_BYTES`].
    #[error("overhead of {0} bytes a packet: give at most 65536")]
    Overhead(u32),
    /// Anything else: what it is, and what is allowed.
    #[error("{0}")]
    Other(String),
}

impl SpecError {
    pub(crate) fn unless_probability(what: &'static str, value: f64) -> Result<(), SpecError> {
        match (0.0..=1.0).contains(&value) {
            true => Ok(()),
            false => Err(SpecError::Probability { what, value }),
        }
    }

    pub(crate) fn unless_delay(delay_ns: u64) -> Result<(), SpecError> {
        match delay_ns <= ChainSpec::MAX_DELAY_NS {
            true => Ok(()),
            false => Err(SpecError::Delay(delay_ns)),
        }
    }
}

impl ChainSpec {
    /// The longest delay: one hour. More is a mistaken unit, and would fill the memory.
    pub const MAX_DELAY_NS: u64 = 3_600_000_000_000;
    /// The largest overhead a segment.
    pub const MAX_OVERHEAD_BYTES: u32 = 65_536;

    /// Cells with a seed of 1.
    pub fn of(cells: impl Into<Vec<CellSpec>>) -> ChainSpec {
        ChainSpec {
            cells: cells.into(),
            seed: 1,
        }
    }

    /// Says what is out of range.
    pub fn check(&self) -> Result<(), SpecError> {
        self.cells.iter().try_for_each(CellSpec::check)
    }

    /// Whether its seed matters.
    pub fn is_random(&self) -> bool {
        self.cells.iter().any(CellSpec::is_random)
    }
}

impl CellSpec {
    /// A constant propagation delay, in order.
    pub const fn delay(delay_ns: u64) -> CellSpec {
        CellSpec::Delay(DelaySpec {
            delay_ns,
            jitter: None,
        })
    }

    /// A constant rate behind a drop-tail queue of so many bytes; `None` for no limit.
    pub const fn rate(rate_bps: u64, limit_bytes: Option<u64>) -> CellSpec {
        CellSpec::Rate(RateSpec {
            service: Service::Constant { rate_bps },
            queue: QueueSpec {
                limit_bytes,
                limit_packets: None,
                discipline: Discipline::DropTail,
                mark_above_bytes: None,
            },
            overhead_bytes: 0,
        })
    }

    /// Independent loss.
    pub const fn loss(probability: f64) -> CellSpec {
        CellSpec::Loss(LossSpec::Independent { probability })
    }

    fn check(&self) -> Result<(), SpecError> {
        match self {
            CellSpec::Delay(delay) => delay.check(),
            CellSpec::Rate(rate) => rate.check(),
            CellSpec::Loss(loss) => loss.check(),
            CellSpec::Reorder(reorder) => reorder.check(),
            CellSpec::Duplicate(duplicate) => duplicate.check(),
            CellSpec::Corrupt(corrupt) => corrupt.check(),
            CellSpec::Mtu(mtu) => mtu.check(),
            CellSpec::Policer(policer) => policer.check(),
        }
    }

    /// Whether it draws what becomes of a packet: a probability of 0 or 1 leaves nothing to draw.
    fn is_random(&self) -> bool {
        match self {
            CellSpec::Delay(delay) => delay.jitter.is_some(),
            CellSpec::Rate(rate) => matches!(rate.queue.discipline, Discipline::Red { .. }),
            CellSpec::Loss(loss) => loss.is_random(),
            CellSpec::Reorder(reorder) => is_drawn(reorder.probability),
            CellSpec::Duplicate(duplicate) => is_drawn(duplicate.probability),
            // Which bit is flipped is drawn too.
            CellSpec::Corrupt(corrupt) => corrupt.probability > 0.0,
            CellSpec::Mtu(_) | CellSpec::Policer(_) => false,
        }
    }

    /// A cell of a checked spec.
    pub(crate) fn build<P: Packet + 'static>(&self, random: Random) -> Box<dyn Cell<P>> {
        match self.clone() {
            CellSpec::Delay(delay) => Box::new(Delay::new(delay, random)),
            CellSpec::Rate(rate) => Box::new(Bottleneck::new(rate, random)),
            CellSpec::Loss(loss) => Box::new(AtOnce::new(Loss::new(loss, random))),
            CellSpec::Reorder(reorder) => Box::new(Reorder::new(reorder, random)),
            CellSpec::Duplicate(spec) => Box::new(AtOnce::new(Duplicate::new(spec, random))),
            CellSpec::Corrupt(spec) => Box::new(AtOnce::new(Corrupt::new(spec, random))),
            CellSpec::Mtu(mtu) => Box::new(AtOnce::new(Mtu::new(mtu))),
            CellSpec::Policer(spec) => Box::new(AtOnce::new(Policer::new(spec))),
        }
    }

    /// The same effect with parameters that do nothing.
    pub(crate) fn neutral(&self) -> CellSpec {
        match self {
            CellSpec::Delay(_) => CellSpec::delay(0),
            CellSpec::Rate(_) => CellSpec::Rate(RateSpec {
                service: Service::Unlimited,
                queue: QueueSpec::default(),
                overhead_bytes: 0,
            }),
            CellSpec::Loss(_) => CellSpec::loss(0.0),
            CellSpec::Reorder(reorder) => CellSpec::Reorder(ReorderSpec {
                probability: 0.0,
                ..*reorder
            }),
            CellSpec::Duplicate(_) => CellSpec::Duplicate(DuplicateSpec { probability: 0.0 }),
            CellSpec::Corrupt(_) => CellSpec::Corrupt(CorruptSpec { probability: 0.0 }),
            CellSpec::Mtu(_) => CellSpec::Mtu(MtuSpec {
                mtu_bytes: *MtuSpec::RANGE_BYTES.end(),
            }),
            CellSpec::Policer(_) => CellSpec::Policer(PolicerSpec::NONE),
        }
    }

    /// The least time from a packet's arrival at this cell until anything of it shows outside the chain,
    /// if it takes `behind_ns` at least behind the cell.
    pub(crate) fn least_ns(&self, behind_ns: u64) -> u64 {
        match self {
            CellSpec::Delay(delay) if delay.jitter.is_none() => delay.delay_ns + behind_ns,
            // Its reply is there at once.
            CellSpec::Mtu(_) => 0,
            _ => behind_ns,
        }
    }

    pub(crate) fn is_same_effect(&self, other: &CellSpec) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// In words, for people; the JSON says all.
impl fmt::Display for CellSpec {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            CellSpec::Delay(delay) => delay.fmt(f),
            CellSpec::Rate(rate) => rate.fmt(f),
            CellSpec::Loss(loss) => loss.fmt(f),
            CellSpec::Reorder(reorder) => reorder.fmt(f),
            CellSpec::Duplicate(duplicate) => duplicate.fmt(f),
            CellSpec::Corrupt(corrupt) => corrupt.fmt(f),
            CellSpec::Mtu(mtu) => mtu.fmt(f),
            CellSpec::Policer(policer) => policer.fmt(f),
        }
    }
}

/// A share as people read it.
pub(crate) fn percent(share: f64) -> String {
    let percent = (share * 1e11).round() / 1e9;
    format!("{percent} %")
}

/// Whether an event of this probability may happen and may not.
pub(crate) fn is_drawn(probability: f64) -> bool {
    probability > 0.0 && probability < 1.0
}
