// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a scenario says of one direction of a link, and the chain built from it.
//!
//! Plain values, which serialise: the lab hands them to its keeper, and changes them while traffic
//! runs. A [`ChainSpec`] lists its cells in the order in which packets pass them.

use serde::{Deserialize, Serialize};

use crate::{Bottleneck, Cell, Chain, Delay, DropTail, Loss, Packet, RateClock};

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

/// Propagation delay, one way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DelaySpec {
    /// The constant part; 0 to [`ChainSpec::MAX_DELAY_NS`].
    pub delay_ns: u64,
    /// What varies from segment to segment.
    pub jitter: Option<JitterSpec>,
}

/// What a delay adds to its constant part, drawn anew for each segment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JitterSpec {
    /// How it is drawn. The sum is never below 0.
    pub distribution: Distribution,
    /// Whether a segment may overtake those sent before it; if not, it leaves with the one before.
    pub reorders: bool,
}

/// How a jitter is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Evenly from −half_width to +half_width.
    Uniform {
        /// Half the width.
        half_width_ns: u64,
    },
    /// Normal with mean 0.
    Normal {
        /// Standard deviation.
        std_dev_ns: u64,
    },
    /// Exponential: never negative, long tail.
    Exponential {
        /// Mean.
        mean_ns: u64,
    },
    /// Pareto (Lomax form, from 0): never negative, very long tail, as queues of real paths give.
    Pareto {
        /// Mean.
        mean_ns: u64,
        /// Shape α > 1; the smaller, the longer the tail.
        shape: f64,
    },
}

/// A bottleneck.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateSpec {
    /// How fast it serves.
    pub service: Service,
    /// What waits for it.
    pub queue: QueueSpec,
    /// What each segment costs the rate and the queue beyond its IP length, such as 38 for Ethernet
    /// with preamble and gap; at most [`ChainSpec::MAX_OVERHEAD_BYTES`].
    pub overhead_bytes: u32,
}

/// How fast a bottleneck serves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Service {
    /// At once; no queue builds.
    Unlimited,
    /// At one rate, within [`RateClock::RANGE_BPS`].
    Constant {
        /// Bits per second.
        rate_bps: u64,
    },
    /// At rates that change at given times.
    Steps {
        /// The steps, the first at 0, times rising; a rate of 0 is an outage.
        steps: Vec<RateStep>,
        /// When the steps begin anew, after the last one; `None`: the last rate stays.
        repeat_after_ns: Option<u64>,
    },
    /// By delivery opportunities, as mahimahi's traces list them: at each, 1504 bytes may leave, and
    /// what is not used is lost.
    Opportunities {
        /// Milliseconds since the beginning, not falling, the last at least 1; the list then repeats.
        at_ms: Vec<u64>,
    },
}

/// A rate from some time on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateStep {
    /// Since the chain was made.
    pub at_ns: u64,
    /// Bits per second; 0: nothing leaves.
    pub rate_bps: u64,
}

/// What waits for a bottleneck.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueSpec {
    /// Most bytes, those in service included; `None` for no limit.
    pub limit_bytes: Option<u64>,
    /// Most segments, those in service included; `None` for no limit.
    pub limit_packets: Option<u64>,
    /// What is dropped, and when.
    pub discipline: Discipline,
    /// ECN-capable segments that arrive at a depth above this are marked (the step of DCTCP, RFC 8257,
    /// section 3.1); `None`: none.
    pub mark_above_bytes: Option<u64>,
}

/// What a queue drops, and when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Discipline {
    /// What arrives and does not fit.
    #[default]
    DropTail,
    /// The oldest, to make room for what arrives.
    DropHead,
    /// By sojourn time, RFC 8289.
    Codel {
        /// Acceptable standing delay; 5 ms in the RFC.
        target_ns: u64,
        /// Time in which a good queue drains; 100 ms in the RFC.
        interval_ns: u64,
        /// Marks ECN-capable segments instead.
        ecn: bool,
    },
    /// By averaged depth, Floyd and Jacobson 1993.
    Red {
        /// Average below which nothing is dropped.
        min_bytes: u64,
        /// Average from which on everything is dropped.
        max_bytes: u64,
        /// Probability of a drop just below `max_bytes`.
        max_probability: f64,
        /// Weight of the newest depth in the average; 0.002 in the paper.
        weight: f64,
        /// Marks ECN-capable segments instead, below `max_bytes`.
        ecn: bool,
    },
}

/// Which segments get lost. Segments count from 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossSpec {
    /// Each with the same probability, whatever befell the others.
    Independent {
        /// 0 to 1.
        probability: f64,
    },
    /// In bursts: a chain of two states, which steps at every segment (Gilbert 1960, Elliott 1963).
    GilbertElliott {
        /// Probability of a step from good to bad.
        to_bad: f64,
        /// Probability of a step from bad to good.
        to_good: f64,
        /// Probability of loss in the good state; 0 in Gilbert's model.
        loss_in_good: f64,
        /// Probability of loss in the bad state; 1 in the simplest model.
        loss_in_bad: f64,
    },
    /// Exactly these data segments of a flow, as they come (sent again, they count again).
    Packets {
        /// Which flow, counted from 1 in the order of their first data segments; `None`: of every flow.
        flow: Option<u32>,
        /// Numbers of data segments, rising.
        packets: Vec<u64>,
    },
    /// Every so many segments, one.
    Periodic {
        /// The period, at least 1.
        every: u64,
        /// The first that is lost, 1 to `every`.
        first: u64,
    },
    /// With a probability, but only during these times.
    Windows {
        /// The windows, in order, not overlapping.
        windows: Vec<LossWindow>,
    },
}

/// A time in which segments get lost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LossWindow {
    /// Since the chain was made.
    pub from_ns: u64,
    /// Likewise; not in the window any more.
    pub until_ns: u64,
    /// 0 to 1.
    pub probability: f64,
}

/// Reordering by displacement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReorderSpec {
    /// Of each segment, that it is displaced; 0 to 1.
    pub probability: f64,
    /// How many later segments pass before it; at least 1.
    pub displacement_packets: u32,
    /// When fewer than that follow, it leaves after this time.
    pub hold_limit_ns: u64,
}

/// Duplication.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DuplicateSpec {
    /// Of each segment, that it comes twice in a row; 0 to 1.
    pub probability: f64,
}

/// Corruption.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CorruptSpec {
    /// Of each segment, that one of its transport bits is flipped; 0 to 1.
    pub probability: f64,
}

/// The least MTU of the path beyond this point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MtuSpec {
    /// Longest IP packet that passes, 68 to 65535. Longer ones are dropped, whether they may be
    /// fragmented or not, and their sender is told (RFC 1191, RFC 8201).
    pub mtu_bytes: u32,
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
