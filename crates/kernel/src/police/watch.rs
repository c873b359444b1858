// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flows that do not slow down under loss although they are not marked, estimated from what a router
//! sees of them.
//!
//! The measure is that of Floyd and Fall ("Promoting the Use of End-to-End Congestion Control", 1999,
//! 3.2): what a flow that behaves like Reno would reach at the loss and the round-trip time seen, by
//! Mathis et al. (1997): 1.22 × MSS / (RTT × √p). An estimate, not a proof: retransmissions stand for
//! losses, and BBR answers to few of them, as it is meant to.
//!
//! Start at [`Watch::look`].

use crate::abi;
use crate::error::KernelError;
use crate::pod::value_of;
use crate::police::{Police, netlink};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use serde::Serialize;
use std::collections::HashMap;
use std::net::{Ipv6Addr, SocketAddr};

/// √(3/2), of Mathis et al. for a receiver that acknowledges each segment.
const RENO: f64 = 1.22;
/// Above so many times Reno's rate a flow is reported: CUBIC exceeds Reno too, by less on most paths.
const TIMES_RENO: f64 = 4.0;
/// Fewer repeated segments in a look than this say nothing about a rate of loss.
const LEAST_REPEATED: f64 = 3.0;
/// A flow that came down to this share of its rate of the look before is slowing down.
const SLOWED: f64 = 0.7;
/// Flows read at once; more than may ever share a bucket of the map's.
const BATCH: u32 = 1024;
/// It is reported when it was so in so many looks in a row.
const LOOKS: u32 = 3;

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
}

/// The flows of one police, from look to look.
pub struct Watch {
    flows: MapHandle,
    least_rtt_us: u32,
    segment_bytes: u32,
    seen: HashMap<Vec<u8>, Seen>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    bytes: u64,
    repeated_bytes: u64,
    rate_bytes_per_s: f64,
    looks: u32,
}

impl Watch {
    /// Watches what the police sees. `least_rtt_us` is taken for flows whose begin was not seen.
    ///
    /// # Errors
    /// When the police does not watch.
    pub fn over(police: &Police, least_rtt_us: u32) -> Result<Watch, KernelError> {
        Ok(Watch {
            flows: police.map("fp_watched")?,
            least_rtt_us,
            segment_bytes: segment_bytes(police),
            seen: HashMap::new(),
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
            suspects.extend(suspect);
            seen.insert(key, after);
        }
        self.seen = seen;
        Ok(suspects)
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
            ..Seen::default()
        };
        let Some(before) = before else {
            return (after, None);
        };
        let rtt_us = if now.rtt_us > 0 {
            now.rtt_us
        } else {
            self.least_rtt_us
        };
        let passed = Passed {
            bytes: now.bytes.saturating_sub(before.bytes) as f64,
            repeated_bytes: now.repeated_bytes.saturating_sub(before.repeated_bytes) as f64,
            interval_s,
            rtt_s: f64::from(rtt_us.max(1)) / 1e6,
            // GRO makes one of several.
            segment_bytes: f64::from(now.segment_bytes.min(self.segment_bytes).max(1)),
        };
        after.rate_bytes_per_s = passed.bytes / interval_s;
        let has_slowed = after.rate_bytes_per_s < before.rate_bytes_per_s * SLOWED;
        let times_reno = passed
            .times_reno()
            .filter(|times| *times >= TIMES_RENO && !has_slowed);
        after.looks = times_reno.map_or(0, |_| before.looks + 1);
        let suspect = times_reno
            .filter(|_| after.looks >= LOOKS)
            .map(|times_reno| Suspect {
                source: address(flow.source, flow.source_port),
                destination: address(flow.destination, flow.destination_port),
                rate_bps: after.rate_bytes_per_s * 8.0,
                loss: passed.loss(),
                rtt_us,
                rtt_is_measured: now.rtt_us > 0,
                times_reno,
            });
        (after, suspect)
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

/// What passed of a flow between two looks.
struct Passed {
    bytes: f64,
    repeated_bytes: f64,
    interval_s: f64,
    rtt_s: f64,
    segment_bytes: f64,
}

impl Passed {
    fn loss(&self) -> f64 {
        self.repeated_bytes / self.bytes
    }

    /// `None`: too little was repeated to tell.
    fn times_reno(&self) -> Option<f64> {
        if self.repeated_bytes < LEAST_REPEATED * self.segment_bytes {
            return None;
        }
        let reno = RENO * self.segment_bytes / (self.rtt_s * self.loss().sqrt());
        Some(self.bytes / self.interval_s / reno)
    }
}

fn address(address: [u8; 16], port: u16) -> SocketAddr {
    (Ipv6Addr::from(address).to_canonical(), u16::from_be(port)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(interval_s: f64, rate_bps: f64, loss: f64, rtt_s: f64) -> Passed {
        let bytes = rate_bps / 8.0 * interval_s;
        Passed {
            bytes,
            repeated_bytes: bytes * loss,
            interval_s,
            rtt_s,
            segment_bytes: 1448.0,
        }
    }

    #[test]
    fn reno_is_once_reno_whatever_loss_and_distance() {
        for (loss, rtt_s) in [(0.001_f64, 0.1), (0.01, 0.02), (0.05, 0.001)] {
            let reno_bps = RENO * 1448.0 * 8.0 / (rtt_s * loss.sqrt());
            let times = passed(1000.0, reno_bps, loss, rtt_s).times_reno().unwrap();
            assert!((times - 1.0).abs() < 1e-9, "{times}");
        }
    }

    #[test]
    fn half_a_gigabit_at_one_percent_and_a_tenth_of_a_second_is_not_reno() {
        assert!(passed(1.0, 5e8, 0.01, 0.1).times_reno().unwrap() > 100.0);
    }

    #[test]
    fn without_loss_nothing_is_told_of_a_flow() {
        assert_eq!(passed(1.0, 1e10, 0.0, 0.1).times_reno(), None);
        assert_eq!(passed(1.0, 1e5, 0.1, 0.1).times_reno(), None, "one segment");
    }
}
