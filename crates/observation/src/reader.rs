// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a file back. Safe on any bytes: memory follows what is there, not what the file claims.

use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};

use fatpath_link::{Count, Flow};

use crate::varint::{take, take_array};
use crate::{FlowRecord, Header, MAGIC, MAX_FLOWS, Record, recorder};

/// No writer makes the header or a block longer: one record with all flows new is half of it.
const MAX_BLOCK_BYTES: u32 = 16 << 20;

/// Why a file, or the rest of it, cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system says so.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It does not begin as one.
    #[error("not an observation file of this version of fatpath")]
    NotOne,
    /// It ends in the middle, as after a crash or on a full disk. All before is whole.
    #[error("the file is cut short: what was written last is missing")]
    Cut,
    /// It contradicts itself.
    #[error("the file is damaged: {0}")]
    Damaged(&'static str),
}

/// The records of a file, in its order. Ends after the first error.
#[derive(Debug)]
pub struct Records<R> {
    file: R,
    per_flow: bool,
    next_intervals: Vec<u64>,
    flows: Vec<Flow>,
    block: Vec<u8>,
    /// Where in `block` the next entry begins.
    at: usize,
    ended: bool,
}

/// Reads the header of a file, and gives its records one by one. `file` is best buffered.
///
/// # Errors
/// What [`ReadError`] says, about the header; about the rest, the records' own.
pub fn read<R: Read>(mut file: R) -> Result<(Header, Records<R>), ReadError> {
    let mut magic = [0; MAGIC.len()];
    match file.read_exact(&mut magic) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            return Err(ReadError::NotOne);
        }
        read => read?,
    }
    if magic != *MAGIC {
        return Err(ReadError::NotOne);
    }
    let mut json = vec![];
    if !read_block(&mut file, &mut json)? {
        return Err(ReadError::Cut);
    }
    let header: Header =
        serde_json::from_slice(&json).map_err(|_| ReadError::Damaged("its header"))?;
    if header.interval_ns == 0 {
        return Err(ReadError::Damaged("an interval of 0 ns"));
    }
    let records = Records {
        file,
        per_flow: header.per_flow,
        next_intervals: vec![0; header.directions.len()],
        flows: vec![],
        block: json,
        at: usize::MAX,
        ended: false,
    };
    Ok((header, records))
}

/// Reads a length and that many bytes into `block`; false at the end of the file.
fn read_block(file: &mut impl Read, block: &mut Vec<u8>) -> Result<bool, ReadError> {
    block.clear();
    file.by_ref().take(4).read_to_end(block)?;
    if block.is_empty() {
        return Ok(false);
    }
    let length = block.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    let length = length.ok_or(ReadError::Cut)?;
    if length > MAX_BLOCK_BYTES {
        return Err(ReadError::Damaged("a block that is too long"));
    }
    block.clear();
    file.by_ref().take(length.into()).read_to_end(block)?;
    match block.len() == length as usize {
        true => Ok(true),
        false => Err(ReadError::Cut),
    }
}

impl<R: Read> Iterator for Records<R> {
    type Item = Result<Record, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.next_record().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

impl<R: Read> Records<R> {
    fn next_record(&mut self) -> Result<Option<Record>, ReadError> {
        loop {
            if self.at >= self.block.len() {
                if !read_block(&mut self.file, &mut self.block)? {
                    return Ok(None);
                }
                self.at = 0;
                continue;
            }
            // Out of `self` while the entry is read, which changes the rest of `self`.
            let block = std::mem::take(&mut self.block);
            let mut rest = &block[self.at..];
            let entry = self.entry(&mut rest);
            self.at = block.len() - rest.len();
            self.block = block;
            if let Some(record) = entry? {
                return Ok(Some(record));
            }
        }
    }

    /// Takes one entry off the front; a flow is entered, and gives no record.
    fn entry(&mut self, bytes: &mut &[u8]) -> Result<Option<Record>, ReadError> {
        let cut = ReadError::Damaged("an entry that does not end");
        match take_array(bytes) {
            Some([recorder::FLOW]) if self.flows.len() < MAX_FLOWS => {
                self.flows.push(take_flow(bytes).ok_or(cut)?);
                Ok(None)
            }
            Some([recorder::FLOW]) => Err(ReadError::Damaged("too many flows")),
            Some([recorder::RECORD]) => self.take_record(bytes).map(Some),
            _ => Err(ReadError::Damaged("an entry of no known kind")),
        }
    }

    fn take_record(&mut self, bytes: &mut &[u8]) -> Result<Record, ReadError> {
        let cut = || ReadError::Damaged("a record that does not end");
        let direction = take(bytes).ok_or_else(cut)?;
        let next_interval = usize::try_from(direction)
            .ok()
            .and_then(|index| self.next_intervals.get_mut(index))
            .ok_or(ReadError::Damaged("a direction that is not in the header"))?;
        let left_out = take(bytes).ok_or_else(cut)?;
        let interval = next_interval
            .checked_add(left_out)
            .filter(|interval| *interval < u64::MAX)
            .ok_or(ReadError::Damaged("an interval out of range"))?;
        *next_interval = interval + 1;
        let mut record = Record {
            direction: direction as usize,
            interval,
            ..Record::default()
        };
        take_totals(bytes, &mut record).ok_or_else(cut)?;
        if self.per_flow {
            let count = take(bytes).ok_or_else(cut)?;
            if count > self.flows.len() as u64 {
                return Err(ReadError::Damaged("a record of more flows than there are"));
            }
            for _ in 0..count {
                record.flows.push(self.take_flow_record(bytes)?);
            }
        }
        Ok(record)
    }

    fn take_flow_record(&self, bytes: &mut &[u8]) -> Result<FlowRecord, ReadError> {
        let cut = || ReadError::Damaged("a record that does not end");
        let number = take(bytes).ok_or_else(cut)?;
        let flow = usize::try_from(number)
            .ok()
            .and_then(|number| self.flows.get(number))
            .ok_or(ReadError::Damaged("a flow without a name"))?;
        Ok(FlowRecord {
            flow: *flow,
            arrived: take_count(bytes).ok_or_else(cut)?,
            left: take_count(bytes).ok_or_else(cut)?,
        })
    }
}

fn take_totals(bytes: &mut &[u8], record: &mut Record) -> Option<()> {
    let present = take(bytes)?;
    if present & 1 != 0 {
        record.peak_queue_bytes = take(bytes)?;
    }
    for (index, count) in record.counts_mut().into_iter().enumerate() {
        if present >> (index + 1) & 1 != 0 {
            *count = take_count(bytes)?;
        }
    }
    Some(())
}

fn take_count(bytes: &mut &[u8]) -> Option<Count> {
    Some(Count {
        packets: take(bytes)?,
        bytes: take(bytes)?,
    })
}

fn take_flow(bytes: &mut &[u8]) -> Option<Flow> {
    let [family, protocol] = take_array(bytes)?;
    Some(Flow {
        source: take_address(family, bytes)?,
        destination: take_address(family, bytes)?,
        protocol,
    })
}

fn take_address(family: u8, bytes: &mut &[u8]) -> Option<SocketAddr> {
    let ip = match family {
        4 => IpAddr::from(take_array::<4>(bytes)?),
        6 => IpAddr::from(take_array::<16>(bytes)?),
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_le_bytes(take_array(bytes)?)))
}
