// SPDX-License-Identifier: MIT OR Apache-2.0
//! A policer: a token bucket without a queue. What finds too few tokens is dropped, or marked and passed; nothing
//! waits.
//!
//! Tokens come at the rate, and the bucket holds a burst: the single-rate meter of RFC 2697 with one bucket, as
//! `tc … police` has it. It is full at first.

use std::fmt;

use fatpath_units::{show_bytes, show_rate};
use serde::{Deserialize, Serialize};

use crate::cells::at_once::{Effect, Outcome};
use crate::random::Stretch;
use crate::{CellSpec, DropCause, Ecn, Packet, Service, SpecError, Wire};

/// Tokens of a byte: as many as a rate of 1 bit/s makes in the time of 8 bits, in nanoseconds.
const TOKENS_OF_BYTE: u128 = 8_000_000_000;

/// A policer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolicerSpec {
    /// Bits per second, IP headers included, within [`Service::RANGE_BPS`].
    pub rate_bps: u64,
    /// How many bytes may pass at once; `None`: any number, and the policer does nothing.
    pub burst_bytes: Option<u64>,
    /// What becomes of the segments that exceed both.
    pub exceed: Exceed,
}

/// What a policer does with a segment that finds too few tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exceed {
    /// It is dropped.
    Drop,
    /// It is marked as having met congestion (RFC 3168); dropped if its sender does not know ECN.
    MarkEcn,
    /// It passes with this DSCP, 0 to 63 (RFC 2474).
    SetDscp(u8),
}

impl PolicerSpec {
    /// Polices nothing.
    pub const NONE: PolicerSpec = PolicerSpec {
        rate_bps: *Service::RANGE_BPS.end(),
        burst_bytes: None,
        exceed: Exceed::Drop,
    };
    /// The largest DSCP: it has six bits.
    pub const MOST_DSCP: u8 = 63;

    pub(crate) fn check(&self) -> Result<(), SpecError> {
        if !Service::RANGE_BPS.contains(&self.rate_bps) {
            return Err(SpecError::Rate(self.rate_bps));
        }
        match self.exceed {
            Exceed::SetDscp(dscp) if dscp > Self::MOST_DSCP => {
                Err(SpecError::Other(format!("DSCP of {dscp}: give 0 to 63")))
            }
            _ => Ok(()),
        }
    }

    fn most_tokens(&self) -> u128 {
        self.burst_bytes
            .map_or(u128::MAX, |bytes| u128::from(bytes) * TOKENS_OF_BYTE)
    }
}

impl fmt::Display for PolicerSpec {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Some(burst_bytes) = self.burst_bytes else {
            return f.write_str("no policer");
        };
        let exceed = match self.exceed {
            Exceed::Drop => "drops".to_owned(),
            Exceed::MarkEcn => "marks by ECN".to_owned(),
            Exceed::SetDscp(dscp) => format!("sets DSCP {dscp}"),
        };
        let (rate, burst) = (show_rate(self.rate_bps), show_bytes(burst_bytes));
        write!(f, "policer {rate}, burst {burst} ({exceed})")
    }
}

/// The effect of a [`PolicerSpec`].
#[derive(Debug)]
pub(crate) struct Policer {
    spec: PolicerSpec,
    tokens: u128,
    /// When they were counted.
    at_ns: u64,
}

impl Policer {
    pub(crate) fn new(spec: PolicerSpec) -> Policer {
        Policer {
            spec,
            tokens: spec.most_tokens(),
            at_ns: 0,
        }
    }

    fn fill(&mut self, now_ns: u64) {
        let elapsed_ns = now_ns.saturating_sub(self.at_ns);
        let new = u128::from(self.spec.rate_bps) * u128::from(elapsed_ns);
        self.tokens = self.tokens.saturating_add(new).min(self.spec.most_tokens());
        self.at_ns = now_ns;
    }

    /// The segments at the front that fare alike; chosen are those that exceed. They pay here.
    fn next(&mut self, wire: Wire) -> Stretch {
        let (segments, bytes) = alike(wire);
        let price = u128::from(bytes.max(1)) * TOKENS_OF_BYTE;
        let conform = (self.tokens / price).min(segments.into()) as u32;
        if self.spec.burst_bytes.is_some() {
            self.tokens -= u128::from(conform) * price;
        }
        match conform {
            0 => Stretch {
                chosen: true,
                segments,
            },
            segments => Stretch {
                chosen: false,
                segments,
            },
        }
    }
}

impl Exceed {
    fn meet<P: Packet>(self, now_ns: u64, mut packet: P, out: &mut Outcome<P>) {
        match (self, packet.ecn()) {
            (Exceed::Drop, _) | (Exceed::MarkEcn, Ecn::NotCapable) => {
                return out.drop(DropCause::Policed, packet);
            }
            (Exceed::MarkEcn, Ecn::Capable) => packet.mark(),
            (Exceed::MarkEcn, Ecn::Marked) => {}
            (Exceed::SetDscp(dscp), _) => packet.set_dscp(dscp),
        }
        out.counters.marked.add(packet.wire());
        out.pass(now_ns, packet);
    }
}

/// The segments at the front that are equally long: all, or all but a shorter last one.
fn alike(wire: Wire) -> (u32, u32) {
    match wire.last_bytes == wire.segment_bytes {
        true => (wire.segments, wire.last_bytes),
        false if wire.segments == 1 => (1, wire.last_bytes),
        false => (wire.segments - 1, wire.segment_bytes),
    }
}

impl<P: Packet> Effect<P> for Policer {
    fn meet(&mut self, now_ns: u64, packet: P, out: &mut Outcome<P>) {
        self.fill(now_ns);
        let exceed = self.spec.exceed;
        let next = |packet: &P| self.next(packet.wire());
        out.sift(now_ns, packet, next, |packet, out| {
            exceed.meet(now_ns, packet, out)
        });
    }

    /// What the bucket holds stays in it, as far as it fits.
    fn change(&mut self, spec: &CellSpec) -> bool {
        let CellSpec::Policer(spec) = spec else {
            return false;
        };
        let polices = |spec: &PolicerSpec| spec.burst_bytes.is_some();
        self.tokens = match polices(&self.spec) && polices(spec) {
            true => self.tokens.min(spec.most_tokens()),
            false => spec.most_tokens(),
        };
        self.spec = *spec;
        true
    }
}
