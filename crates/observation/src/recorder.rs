// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records as compact bytes.
//!
//! An entry is its kind, [`FLOW`] or [`RECORD`], and then
//!
//! - of a flow, which gets the next number from 0: the family (4 or 6) and the protocol, a byte
//!   each, then source and destination, each an address in network order and a port, 2 bytes
//!   little-endian;
//! - of a record: the direction; how many intervals of it were left out since its last record; a
//!   bit for the peak depth and for each count in the order of `Record::counts` (lowest bit
//!   first), set when it is not 0; those, a count as packets and bytes; then, in a file that tells
//!   flows apart, how many flows, and of each its number and the two counts.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use fatpath_link::{Count, Flow};

use crate::{Header, MAGIC, MAX_FLOWS, Record, varint};

/// Kind of the entry that gives a flow its number.
pub(crate) const FLOW: u8 = 0;
/// Kind of the entry of a record.
pub(crate) const RECORD: u8 = 1;

/// Blocks are handed out from this length on.
const BLOCK_BYTES: usize = 16 << 10;

/// Length of the length before each block.
const LENGTH_BYTES: usize = 4;

/// Makes the bytes of a file.
#[derive(Debug)]
pub struct Recorder {
    per_flow: bool,
    /// Of each direction, the interval after that of its last record.
    next_intervals: Vec<u64>,
    flows: HashMap<Flow, u32>,
    /// The block in the making, with room for its length in front.
    block: Vec<u8>,
}

impl Recorder {
    /// A recorder for a new file, and the first bytes of the file.
    pub fn new(header: &Header) -> (Recorder, Vec<u8>) {
        let json = serde_json::to_vec(header).expect("strings and numbers are JSON");
        let len_bytes = (json.len() as u32).to_le_bytes();
        let recorder = Recorder {
            per_flow: header.per_flow,
            next_intervals: vec![0; header.directions.len()],
            flows: HashMap::new(),
            block: vec![0; LENGTH_BYTES],
        };
        (recorder, [&MAGIC[..], &len_bytes, &json].concat())
    }

    /// Appends a record. Those of one direction come in order of time.
    pub fn record(&mut self, record: &Record) {
        let flows = self.numbered_flows(record);
        let next_interval = &mut self.next_intervals[record.direction];
        let left_out = record.interval - *next_interval;
        *next_interval = record.interval + 1;
        self.block.push(RECORD);
        self.push(record.direction as u64);
        self.push(left_out);
        self.push_totals(record);
        if self.per_flow {
            self.push(flows.len() as u64);
            for (number, arrived, left) in flows {
                self.push(number.into());
                self.push_count(&arrived);
                self.push_count(&left);
            }
        }
    }

    /// A block to append to the file, once enough has come together.
    pub fn take_full_block(&mut self) -> Option<Vec<u8>> {
        match self.block.len() {
            0..BLOCK_BYTES => None,
            _ => self.take_block(),
        }
    }

    /// What has come together, to append to the file; `None` when that is nothing.
    pub fn take_block(&mut self) -> Option<Vec<u8>> {
        let len_bytes = self.block.len() - LENGTH_BYTES;
        if len_bytes == 0 {
            return None;
        }
        let mut next = Vec::with_capacity(BLOCK_BYTES + 256);
        next.resize(LENGTH_BYTES, 0);
        let mut block = std::mem::replace(&mut self.block, next);
        block[..LENGTH_BYTES].copy_from_slice(&(len_bytes as u32).to_le_bytes());
        Some(block)
    }

    /// The numbers of the record's flows; new ones are entered first.
    fn numbered_flows(&mut self, record: &Record) -> Vec<(u32, Count, Count)> {
        let mut numbered = Vec::with_capacity(record.flows.len());
        for passed in &record.flows {
            if let Some(number) = self.number(passed.flow) {
                numbered.push((number, passed.arrived, passed.left));
            }
        }
        numbered
    }

    fn number(&mut self, flow: Flow) -> Option<u32> {
        let next = self.flows.len();
        match self.flows.get(&flow) {
            Some(number) => Some(*number),
            None if next >= MAX_FLOWS => None,
            None => {
                self.push_flow(&flow);
                self.flows.insert(flow, next as u32);
                Some(next as u32)
            }
        }
    }

    fn push_flow(&mut self, flow: &Flow) {
        let family = if flow.source.is_ipv4() { 4 } else { 6 };
        self.block.extend([FLOW, family, flow.protocol]);
        self.push_address(flow.source);
        self.push_address(flow.destination);
    }

    fn push_address(&mut self, address: SocketAddr) {
        match address.ip() {
            IpAddr::V4(ip) => self.block.extend(ip.octets()),
            IpAddr::V6(ip) => self.block.extend(ip.octets()),
        }
        self.block.extend(address.port().to_le_bytes());
    }

    fn push_totals(&mut self, record: &Record) {
        let counts = record.counts();
        let mut present = u64::from(record.peak_queue_bytes > 0);
        for (index, count) in counts.iter().enumerate() {
            present |= u64::from(**count != Count::default()) << (index + 1);
        }
        self.push(present);
        if record.peak_queue_bytes > 0 {
            self.push(record.peak_queue_bytes);
        }
        for count in counts {
            if *count != Count::default() {
                self.push_count(count);
            }
        }
    }

    fn push_count(&mut self, count: &Count) {
        self.push(count.packets);
        self.push(count.bytes);
    }

    fn push(&mut self, value: u64) {
        varint::push(&mut self.block, value);
    }
}
