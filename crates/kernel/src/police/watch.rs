// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flows that do not slow down under loss although they are not marked, estimated from what a router
//! sees of them.
//!
//! An estimate, not a proof: retransmissions stand for losses, and BBR answers to few of them, as it is meant to.
//! The measure stands in `conformity.rs`.
//!
//! Start at [`Watch::look`].

use crate::abi;
use crate::error::KernelError;
use crate::pod::value_of;
use crate::police::conformity::Passed;
use crate::police::penalty::Penalties;
use crate::police::{Police, netlink};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use serde::Serialize;
use std::collections::HashMap;
use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::time::Duration;

/// A flow that came down to this share of its rate of the look before is slowing down.
const SLOWED: f64 = 0.7;
/// Flows read at once; more than may ever share a bucket of the map's.
const BATCH: u32 = 1024;
/// It is reported when it was so in so many looks in a row.
const LOOKS: u32 = 3;
/// It has a penalty when it was unresponsive in so many looks in a row.
const PENALTY_LOOKS: u32 = 5;

/// A flow that should be looked at.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Suspect {
    /// Who sends.
    pub source: SocketAddr,
    /// To whom.
    pub destination: SocketAddr,
    /// Data, repeated ones too.
    pub rate_bps: f64,
    /// Share of the data that was retransmitted.
    pub loss: f64,
    /// Round-trip time that the judgement took.
    pub rtt_us: u32,
    /// Whether it was measured: the flow's SYN was seen.
    pub rtt_is_measured: bool,
    /// The rate over what Reno would reach.
    pub times_reno: f64,
    /// Whether its penalty begins now.
    pub is_penalized: bool,
}

/// The flows of one police, from look to look.
pub struct Watch {
    flows: MapHandle,
    least_rtt_us: u32,
    segment_bytes: u32,
    seen: HashMap<Vec<u8>, Seen>,
    penalties: Option<Penalties>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    bytes: u64,
    repeated_bytes: u64,
    loss_events: u32,
    rate_bytes_per_s: f64,
    looks: u32,
    unresponsive_looks: u32,
}

impl Watch {
    /// Watches what the police sees. `least_rtt_us` is taken for flows whose begin was not seen.
    ///
    /// # Errors
    /// When the police does not watch, or was put by another build of fatpath.
    pub fn over(police: &Police, least_rtt_us: u32) -> Result<Watch, KernelError> {
        let flows = police.map("fp_watched")?;
        if flows.value_size() as usize != size_of::<abi::fp_watched>() {
            return Err(KernelError::io("watch")(io::Error::other(
                "the policer is of another build of fatpath: replace it, with `--mode`",
            )));
        }
        Ok(Watch {
            flows,
            least_rtt_us,
            segment_bytes: segment_bytes(police),
            seen: HashMap::new(),
            penalties: None,
        })
    }

    /// Drops for so long all of a flow that was unresponsive in five looks in a row.
    ///
    /// # Errors
    /// When the police has no penalties.
    pub fn penalizing(self, police: &Police, lasts: Duration) -> Result<Watch, KernelError> {
        Ok(Watch {
            penalties: Some(Penalties::of(police, lasts)?),
            ..self
        })
    }

    /// Looks at all flows, `interval_s` after the look before, and answers those to report.
    ///
    /// # Errors
    /// When the flows cannot be read.
    pub fn look(&mut self, interval_s: f64) -> Result<Vec<Suspect>, KernelError> {
        let mut suspects = Vec::new();
        let mut seen = HashMap::new();
        // From key to key the walk would begin anew whenever the key at hand has left, and under a flood of
        // new flows never end.
        let flows = self
            .flows
            .lookup_batch(BATCH, MapFlags::ANY, MapFlags::ANY)
            .map_err(KernelError::bpf("read the flows that are watched"))?;
        for (key, value) in flows {
            let now: Option<abi::fp_watched> = value_of(&value);
            let flow: Option<abi::fp_watched_flow> = value_of(&key);
            let (Some(now), Some(flow)) = (now, flow) else {
                continue;
            };
            let before = self.seen.get(&key).copied();
            let (after, suspect) = self.judge(&flow, &now, before, interval_s);
            if let Some(suspect) = suspect {
                let is_penalized = self.penalize(&flow, &after)?;
                suspects.push(Suspect {
                    is_penalized,
                    ..suspect
                });
            }
            seen.insert(key, after);
        }
        self.seen = seen;
        Ok(suspects)
    }

    fn penalize(&self, flow: &abi::fp_watched_flow, after: &Seen) -> Result<bool, KernelError> {
        match &self.penalties {
            Some(penalties) if after.unresponsive_looks >= PENALTY_LOOKS => penalties.impose(flow),
            _ => Ok(false),
        }
    }

    fn judge(
        &self,
        flow: &abi::fp_watched_flow,
        now: &abi::fp_watched,
        before: Option<Seen>,
        interval_s: f64,
    ) -> (Seen, Option<Suspect>) {
        let mut after = Seen {
            bytes: now.bytes,
            repeated_bytes: now.repeated_bytes,
            loss_events: now.loss_events,
            ..Seen::default()
        };
        let Some(before) = before else {
            return (after, None);
        };
        let passed = self.passed(now, &before, interval_s);
        after.rate_bytes_per_s = passed.bytes_per_s();
        let has_slowed = after.rate_bytes_per_s < before.rate_bytes_per_s * SLOWED;
        // Of a flow whose round-trip time is assumed too little is known to drop it.
        if !has_slowed && now.rtt_us > 0 && passed.is_unresponsive() {
            after.unresponsive_looks = before.unresponsive_looks + 1;
        }
        let times_reno = passed.times_reno().filter(|_| !has_slowed);
        after.looks = times_reno.map_or(0, |_| before.looks + 1);
        let suspect = times_reno
            .filter(|_| after.looks >= LOOKS)
            .map(|times_reno| Suspect {
                source: address(flow.source, flow.source_port),
                destination: address(flow.destination, flow.destination_port),
                rate_bps: after.rate_bytes_per_s * 8.0,
                loss: passed.loss(),
                rtt_us: self.rtt_us(now),
                rtt_is_measured: now.rtt_us > 0,
                times_reno,
                is_penalized: false,
            });
        (after, suspect)
    }

    fn rtt_us(&self, now: &abi::fp_watched) -> u32 {
        match now.rtt_us {
            0 => self.least_rtt_us,
            measured_us => measured_us,
        }
    }

    fn passed(&self, now: &abi::fp_watched, before: &Seen, interval_s: f64) -> Passed {
        let seconds = |us: u32| f64::from(us.max(1)) / 1e6;
        Passed {
            bytes: now.bytes.saturating_sub(before.bytes) as f64,
            repeated_bytes: now.repeated_bytes.saturating_sub(before.repeated_bytes) as f64,
            loss_events: f64::from(now.loss_events.saturating_sub(before.loss_events)),
            interval_s,
            rtt_s: seconds(self.rtt_us(now)),
            least_rtt_s: seconds(self.least_rtt_us),
            // GRO makes one of several.
            segment_bytes: f64::from(now.segment_bytes.min(self.segment_bytes).max(1)),
        }
    }
}

/// The largest TCP segment's data that the interface takes: IPv4, timestamps.
fn segment_bytes(police: &Police) -> u32 {
    const HEADERS_BYTES: u32 = 52;
    let there = netlink().and_then(|netlink| {
        let listed = netlink.interfaces();
        listed.map_err(KernelError::io("list the interfaces"))
    });
    let mut there = there.unwrap_or_default().into_iter();
    let it = there.find(|interface| interface.index == police.ifindex);
    it.map_or(1448, |it| it.mtu_bytes.saturating_sub(HEADERS_BYTES))
}

fn address(address: [u8; 16], port: u16) -> SocketAddr {
    (Ipv6Addr::from(address).to_canonical(), u16::from_be(port)).into()
}
