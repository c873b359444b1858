// SPDX-License-Identifier: MIT OR Apache-2.0
//! What passes one direction in the interval that is running.

use std::collections::BTreeMap;

use fatpath_link::{Count, Counters, DropCause, Flow, Packet};

use crate::{FlowRecord, Header, Record};

/// Counts the running interval of one direction.
///
/// The caller brings the direction to each [`end_ns`](Tally::end_ns) before anything happens there
/// or later, and calls [`end`](Tally::end).
#[derive(Debug)]
pub struct Tally {
    direction: usize,
    interval_ns: u64,
    interval: u64,
    /// The counters at the beginning of the interval.
    before: Counters,
    flows: Option<BTreeMap<Flow, Passed>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Passed {
    arrived: Count,
    left: Count,
}

impl Tally {
    /// Of the direction with that index in `header`, whose counters are all 0 now, in interval 0.
    pub fn new(direction: usize, header: &Header) -> Tally {
        Tally {
            direction,
            interval_ns: header.interval_ns,
            interval: 0,
            before: Counters::default(),
            flows: header.per_flow.then(BTreeMap::new),
        }
    }

    /// The first moment after the running interval.
    pub fn end_ns(&self) -> u64 {
        (self.interval + 1).saturating_mul(self.interval_ns)
    }

    /// Notes the flow of a packet that enters.
    pub fn arrived(&mut self, packet: &impl Packet) {
        if let Some(passed) = self.flow_of(packet) {
            passed.arrived.add(packet.wire());
        }
    }

    /// Notes the flow of a packet that leaves.
    pub fn left(&mut self, packet: &impl Packet) {
        if let Some(passed) = self.flow_of(packet) {
            passed.left.add(packet.wire());
        }
    }

    fn flow_of(&mut self, packet: &impl Packet) -> Option<&mut Passed> {
        let flows = self.flows.as_mut()?;
        Some(flows.entry(packet.flow()?).or_default())
    }

    /// Ends the running interval, with the direction's counters and the highest depth of its queues
    /// in it; the next one begins. `None` when there is nothing to record.
    pub fn end(&mut self, counters: &Counters, peak_queue_bytes: u64) -> Option<Record> {
        let since = |of: &dyn Fn(&Counters) -> Count| {
            let (now, before) = (of(counters), of(&self.before));
            Count {
                packets: now.packets - before.packets,
                bytes: now.bytes - before.bytes,
            }
        };
        let record = Record {
            direction: self.direction,
            interval: self.interval,
            arrived: since(&|counters| counters.arrived),
            left: since(&|counters| counters.left),
            peak_queue_bytes,
            dropped: DropCause::ALL.map(|cause| since(&|counters| counters.dropped(cause))),
            marked: since(&|counters| counters.marked),
            duplicated: since(&|counters| counters.duplicated),
            corrupted: since(&|counters| counters.corrupted),
            fragmented: since(&|counters| counters.fragmented),
            flows: self.take_flows(),
        };
        self.before = *counters;
        self.interval += 1;
        Some(record).filter(|record| !record.is_empty())
    }

    fn take_flows(&mut self) -> Vec<FlowRecord> {
        let flows = self.flows.as_mut().map(std::mem::take).unwrap_or_default();
        let record = |(flow, passed): (Flow, Passed)| FlowRecord {
            flow,
            arrived: passed.arrived,
            left: passed.left,
        };
        flows.into_iter().map(record).collect()
    }

    /// Jumps to the interval of `at_ns`, when it is later than the running one, in which nothing
    /// has happened and until which nothing will.
    pub fn skip_to(&mut self, at_ns: u64) {
        self.interval = self.interval.max(at_ns / self.interval_ns);
    }
}

#[cfg(test)]
mod tests {
    use fatpath_link::Wire;

    use super::*;

    fn header() -> Header {
        Header {
            interval_ns: 1000,
            begun_unix_ns: 0,
            directions: vec![],
            per_flow: false,
        }
    }

    #[test]
    fn records_hold_what_changed_and_their_sum_is_the_counters() {
        let mut tally = Tally::new(7, &header());
        let mut counters = Counters::default();
        assert_eq!(tally.end_ns(), 1000);
        assert_eq!(tally.end(&counters, 0), None);
        tally.skip_to(5999);
        assert_eq!(tally.end_ns(), 6000);
        tally.skip_to(100);
        assert_eq!(tally.end_ns(), 6000, "never back");

        counters.arrived.add(Wire::single(100));
        counters.drop(DropCause::Loss, Wire::single(100));
        let record = tally.end(&counters, 3).unwrap();
        assert_eq!((record.direction, record.interval), (7, 5));
        assert_eq!(record.peak_queue_bytes, 3);
        assert_eq!(
            (record.arrived, record.left),
            (counters.arrived, counters.left)
        );
        assert_eq!(record.dropped(DropCause::Loss).bytes, 100);
        assert_eq!(tally.end(&counters, 0), None);
        assert_eq!(tally.end(&counters, 1).unwrap().arrived, Count::default());
    }
}
