// SPDX-License-Identifier: MIT OR Apache-2.0
//! The MTU of a path: longer packets go on in fragments where they may be fragmented, and are dropped otherwise, and their
//! sender is told.

use std::fmt;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::cells::at_once::{Effect, Outcome};
use crate::packet::{each_segment, split};
use crate::{CellSpec, DropCause, Packet, SpecError, Wire};

/// The least MTU of the path beyond this point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MtuSpec {
    /// Longest IP packet that passes, within [`MtuSpec::RANGE_BYTES`]. Longer ones go on in fragments (RFC 791), or, where
    /// they may not be fragmented, are dropped, and their sender is told (RFC 1191, RFC 8201): once for a super-packet, though
    /// many of its segments are too long.
    pub mtu_bytes: u32,
}

impl MtuSpec {
    /// From the least that every IPv4 link carries (RFC 791) to the longest packet there is.
    pub const RANGE_BYTES: RangeInclusive<u32> = 68..=65_535;

    pub(crate) fn check(&self) -> Result<(), SpecError> {
        let MtuSpec { mtu_bytes } = self;
        match Self::RANGE_BYTES.contains(mtu_bytes) {
            true => Ok(()),
            false => Err(SpecError::Other(format!(
                "path MTU of {mtu_bytes} bytes: give 68 to 65535"
            ))),
        }
    }
}

impl fmt::Display for MtuSpec {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "path mtu {} B", self.mtu_bytes)
    }
}

/// The effect of an [`MtuSpec`].
#[derive(Debug)]
pub(crate) struct Mtu {
    mtu_bytes: u32,
}

impl Mtu {
    pub(crate) fn new(spec: MtuSpec) -> Mtu {
        Mtu {
            mtu_bytes: spec.mtu_bytes,
        }
    }

    /// How many segments from the front on are too long: all, all but the last, or none.
    fn too_long(&self, wire: Wire) -> u32 {
        let last = u32::from(wire.last_bytes > self.mtu_bytes);
        match wire.segments > 1 && wire.segment_bytes > self.mtu_bytes {
            true => wire.segments - 1 + last,
            false => last,
        }
    }
}

impl<P: Packet> Effect<P> for Mtu {
    fn meet(&mut self, now_ns: u64, packet: P, out: &mut Outcome<P>) {
        let too_long = self.too_long(packet.wire());
        if too_long == 0 {
            return out.pass(now_ns, packet);
        }
        let (long, rest) = split(packet, too_long);
        if long.may_be_fragmented() {
            each_segment(long, |segment| {
                out.pass_fragments(now_ns, segment, self.mtu_bytes)
            });
        } else {
            out.reply(long.too_big(self.mtu_bytes));
            out.drop(DropCause::TooBig, long);
        }
        if let Some(last) = rest {
            out.pass(now_ns, last);
        }
    }

    fn change(&mut self, spec: &CellSpec) -> bool {
        let CellSpec::Mtu(spec) = spec else {
            return false;
        };
        self.mtu_bytes = spec.mtu_bytes;
        true
    }
}
