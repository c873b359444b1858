// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a scenario says of one direction of a link, and the chain built from it.

use crate::{Bottleneck, Cell, Chain, Delay, DropTail, Loss, Packet, RateClock};

/// One direction of a link. The default does nothing to packets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChainSpec {
    /// Propagation delay, one way.
    pub delay_ns: u64,
    /// Bottleneck rate in bits per second, 1 kb/s to 1 Tb/s; `None` for no limit.
    pub rate_bps: Option<u64>,
    /// Limit of the drop-tail queue before the bottleneck; `None` for no limit. Without a rate no
    /// queue ever builds.
    pub queue_bytes: Option<u64>,
    /// Probability, 0 to 1, that a segment is lost, independently of all others.
    pub loss: f64,
    /// What each segment costs the rate and the queue beyond its IP length, such as 38 for Ethernet.
    pub overhead_bytes: u32,
    /// Of the loss: equal seeds lose equal segments.
    pub seed: u64,
}

/// A [`ChainSpec`] that no chain can be built from.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum SpecError {
    /// The rate is out of [`RateClock::RANGE_BPS`].
    #[error("rate of {0} bit/s: give 1 kb/s to 1 Tb/s, or no rate for an unlimited link")]
    Rate(u64),
    /// The loss is no probability.
    #[error("loss of {0}: give a share from 0 to 1")]
    Loss(f64),
    /// The delay is beyond [`ChainSpec::MAX_DELAY_NS`].
    #[error("delay of {0} ns: give at most one hour")]
    Delay(u64),
    /// The overhead is beyond [`ChainSpec::MAX_OVERHEAD_BYTES`].
    #[error("overhead of {0} bytes a packet: give at most 65536")]
    Overhead(u32),
}

impl ChainSpec {
    /// The longest delay: one hour. More is a mistaken unit, and would fill the memory.
    pub const MAX_DELAY_NS: u64 = 3_600_000_000_000;
    /// The largest overhead a segment.
    pub const MAX_OVERHEAD_BYTES: u32 = 65_536;

    /// Says what is out of range.
    pub fn check(&self) -> Result<(), SpecError> {
        match self.rate_bps {
            Some(rate_bps) if !RateClock::RANGE_BPS.contains(&rate_bps) => {
                Err(SpecError::Rate(rate_bps))
            }
            _ if !(0.0..=1.0).contains(&self.loss) => Err(SpecError::Loss(self.loss)),
            _ if self.delay_ns > Self::MAX_DELAY_NS => Err(SpecError::Delay(self.delay_ns)),
            _ if self.overhead_bytes > Self::MAX_OVERHEAD_BYTES => {
                Err(SpecError::Overhead(self.overhead_bytes))
            }
            _ => Ok(()),
        }
    }

    /// The chain: bottleneck with its queue, then loss on the wire, then propagation. What would do
    /// nothing is left out.
    pub fn build<P: Packet + 'static>(&self) -> Result<Chain<P>, SpecError> {
        self.check()?;
        let cells = [self.bottleneck(), self.lossy_wire(), self.propagation()];
        Ok(Chain::new(cells.into_iter().flatten().collect()))
    }

    fn bottleneck<P: Packet + 'static>(&self) -> Option<Box<dyn Cell<P>>> {
        let clock = RateClock::new(self.rate_bps?);
        let queue = DropTail::new(self.queue_bytes.unwrap_or(u64::MAX), self.overhead_bytes);
        Some(Box::new(Bottleneck::new(clock, self.overhead_bytes, queue)))
    }

    fn lossy_wire<P: Packet + 'static>(&self) -> Option<Box<dyn Cell<P>>> {
        (self.loss > 0.0).then(|| Box::new(Loss::new(self.loss, self.seed)) as Box<dyn Cell<P>>)
    }

    fn propagation<P: Packet + 'static>(&self) -> Option<Box<dyn Cell<P>>> {
        (self.delay_ns > 0).then(|| Box::new(Delay::new(self.delay_ns)) as Box<dyn Cell<P>>)
    }
}
