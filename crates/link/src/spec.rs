// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a scenario says of one direction of a link, and the chain built from it.
//!
//! Plain values, which serialise: the lab hands them to its keeper, and changes them while traffic
//! runs. A [`ChainSpec`] lists its cells in the order in which packets pass them.

use serde::{Deserialize, Serialize};

use crate::{
    Bottleneck, Cell, Chain, CorruptSpec, Delay, DelaySpec, Discipline, DropTail, DuplicateSpec,
    Loss, LossSpec, MtuSpec, Packet, QueueSpec, RateClock, RateSpec, ReorderSpec, Service,
};

/// One direction of a link. The default does nothing to packets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChainSpec {
    /// The cells, in the order in which packets pass them.
    pub cells: Vec<CellSpec>,
    /// Of all that is random here: equal seeds treat equal traffic alike. Each cell draws from a
    /// stream of its own.
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
}

/// A [`ChainSpec`] that no chain can be built from.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum SpecError {
    /// The rate is out of [`RateClock::RANGE_BPS`].
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

    /// The chain. A chain of no cells passes everything at once.
    pub fn build<P: Packet + 'static>(&self) -> Result<Chain<P>, SpecError> {
        self.check()?;
        let seeds = self.seed..;
        let cells = self.cells.iter().zip(seeds);
        Ok(Chain::new(
            cells.map(|(cell, seed)| cell.build(seed)).collect(),
        ))
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
            CellSpec::Delay(delay) if delay.delay_ns > ChainSpec::MAX_DELAY_NS => {
                Err(SpecError::Delay(delay.delay_ns))
            }
            CellSpec::Rate(rate) => rate.check(),
            CellSpec::Loss(LossSpec::Independent { probability })
                if !(0.0..=1.0).contains(probability) =>
            {
                Err(SpecError::Probability {
                    what: "loss",
                    value: *probability,
                })
            }
            _ => Ok(()),
        }
    }

    fn build<P: Packet + 'static>(&self, seed: u64) -> Box<dyn Cell<P>> {
        match self {
            CellSpec::Delay(delay) => Box::new(Delay::new(delay.delay_ns)),
            CellSpec::Rate(RateSpec {
                service: Service::Constant { rate_bps },
                queue,
                overhead_bytes,
            }) => Box::new(Bottleneck::new(
                RateClock::new(*rate_bps),
                *overhead_bytes,
                DropTail::new(queue.limit_bytes.unwrap_or(u64::MAX), *overhead_bytes),
            )),
            CellSpec::Loss(LossSpec::Independent { probability }) => {
                Box::new(Loss::new(*probability, seed))
            }
            other => unimplemented!("{other:?}"),
        }
    }
}

impl RateSpec {
    fn check(&self) -> Result<(), SpecError> {
        match self.service {
            Service::Constant { rate_bps } if !RateClock::RANGE_BPS.contains(&rate_bps) => {
                Err(SpecError::Rate(rate_bps))
            }
            _ if self.overhead_bytes > ChainSpec::MAX_OVERHEAD_BYTES => {
                Err(SpecError::Overhead(self.overhead_bytes))
            }
            _ => Ok(()),
        }
    }
}
