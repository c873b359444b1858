// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loss of exactly the listed data segments of a flow. Remembers every flow that it saw.

use std::collections::BTreeMap;

use crate::random::Stretch;
use crate::{Flow, Packet, SpecError};

#[derive(Debug)]
pub(super) struct Listed {
    flow: Option<u32>,
    packets: Vec<u64>,
    flows: BTreeMap<Flow, Seen>,
}

#[derive(Debug)]
struct Seen {
    /// Of the flow, from 1 in the order of first data segments.
    number: usize,
    /// Data segments so far.
    segments: u64,
}

pub(super) fn check(flow: Option<u32>, packets: &[u64]) -> Result<(), SpecError> {
    let refuse = |message: &str| Err(SpecError::Other(message.to_owned()));
    if flow == Some(0) {
        return refuse("loss in flow 0: give a number from 1 on, or none for every flow");
    }
    if packets.first() == Some(&0) {
        return refuse("loss of packet 0: give numbers from 1 on");
    }
    match packets.is_sorted_by(|one, next| one < next) {
        true => Ok(()),
        false => refuse("list of lost packets: give numbers that rise"),
    }
}

impl Listed {
    pub(super) fn new(flow: Option<u32>, packets: Vec<u64>) -> Listed {
        Listed {
            flow,
            packets,
            flows: BTreeMap::new(),
        }
    }

    pub(super) fn change(&mut self, flow: Option<u32>, packets: Vec<u64>) {
        (self.flow, self.packets) = (flow, packets);
    }

    pub(super) fn next<P: Packet>(&mut self, packet: &P) -> Stretch {
        let limit = packet.wire().segments;
        let spared = Stretch::before(u64::MAX, 0, limit);
        let Some(flow) = packet.flow().filter(|_| packet.has_data()) else {
            return spared;
        };
        let number = self.flows.len() + 1;
        let seen = self.flows.entry(flow).or_insert(Seen {
            number,
            segments: 0,
        });
        let meant = self.flow.is_none_or(|flow| flow as usize == seen.number);
        let stretch = match meant {
            true => next_listed(&self.packets, seen.segments, limit),
            false => spared,
        };
        seen.segments += u64::from(stretch.segments);
        stretch
    }
}

/// What becomes of the segments from `seen + 1` on.
fn next_listed(packets: &[u64], seen: u64, limit: u32) -> Stretch {
    let ahead = &packets[packets.partition_point(|number| *number <= seen)..];
    let spared = ahead.first().map_or(u64::MAX, |next| next - seen - 1);
    let in_a_row = ahead
        .iter()
        .zip(seen + 1..)
        .take(limit as usize)
        .take_while(|(listed, number)| **listed == *number);
    Stretch::before(spared, in_a_row.count() as u64, limit)
}
