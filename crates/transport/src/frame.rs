// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is sealed in a datagram. Numbers are in network order.
//!
//! ```text
//! data : segment u64, then runs to the end: object u32, offset u64, length u16, bytes
//! probe: segment u64; so is a hello of a record
//! ack  : next u64, echo u64, window u64, capable u64, marked u64, delay u32, flags u8, count u8, then ranges, newest first:
//!        first u64, length u32
//! close: code u16
//! size : zeros
//! sized: number u64, of the datagram that arrived
//! ```
//!
//! Readers take whatever the peer sealed: they refuse what is not of this form to the byte, and never panic.

use fatpath_tcp::{Ack, Block, MAX_BLOCKS};

use super::close::CloseCode;
use super::queue::{MOST, Run};

/// Reads numbers from the front of a frame.
struct Reader<'f>(&'f [u8]);

impl<'f> Reader<'f> {
    fn bytes(&mut self, count: usize) -> Option<&'f [u8]> {
        let (front, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(front)
    }

    fn number<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        self.number().map(u8::from_be_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.number().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.number().map(u32::from_be_bytes)
    }

    /// Below [`MOST`].
    fn u64(&mut self) -> Option<u64> {
        self.number()
            .map(u64::from_be_bytes)
            .filter(|number| *number < MOST)
    }
}

/// Bytes of an object, to be written at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write<'f> {
    /// The object's number.
    pub object: u32,
    /// Where they begin in it.
    pub offset: u64,
    /// At least one.
    pub bytes: &'f [u8],
}

/// What a data frame has to be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Writes<'f>(&'f [u8]);

impl Writes<'_> {
    pub(crate) const NONE: Writes<'static> = Writes(&[]);
}

impl<'f> Iterator for Writes<'f> {
    type Item = Write<'f>;

    fn next(&mut self) -> Option<Write<'f>> {
        let mut reader = Reader(self.0);
        let (object, offset, length) = (reader.u32()?, reader.u64()?, reader.u16()?);
        let bytes = reader
            .bytes(length.into())
            .filter(|bytes| !bytes.is_empty())?;
        self.0 = reader.0;
        Some(Write {
            object,
            offset,
            bytes,
        })
    }
}

/// A data frame. One without runs holds its segment's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data<'f> {
    /// The segment's number, which it keeps when it is sent again.
    pub segment: u64,
    /// Bytes of its runs, their headers among them.
    pub run_bytes: u32,
    /// What is to be written.
    pub writes: Writes<'f>,
}

impl<'f> Data<'f> {
    /// Reads one; `None`: it is none.
    pub fn decode(frame: &'f [u8]) -> Option<Data<'f>> {
        let mut reader = Reader(frame);
        let segment = reader.u64()?;
        let writes = Writes(reader.0);
        let mut rest = writes;
        rest.by_ref().for_each(drop);
        rest.0.is_empty().then_some(Data {
            segment,
            run_bytes: writes.0.len() as u32,
            writes,
        })
    }
}

/// Appends a segment's number, with which data and probes begin, and which is all of a record's hello; or a datagram's.
pub fn push_segment(frame: &mut Vec<u8>, segment: u64) {
    frame.extend_from_slice(&segment.to_be_bytes());
}

/// Appends a run, and gives the room for its bytes.
pub fn push_run<'f>(frame: &'f mut Vec<u8>, run: &Run) -> &'f mut [u8] {
    frame.extend_from_slice(&run.object.to_be_bytes());
    frame.extend_from_slice(&run.offset.to_be_bytes());
    frame.extend_from_slice(&run.bytes.to_be_bytes());
    let begin = frame.len();
    frame.resize(begin + usize::from(run.bytes), 0);
    &mut frame[begin..]
}

/// Reads the one number of a frame: of a probe, or of a record's hello, the segment that would follow; of what says that a
/// size arrived, the datagram.
pub fn number(frame: &[u8]) -> Option<u64> {
    let mut reader = Reader(frame);
    reader.u64().filter(|_| reader.0.is_empty())
}

/// Reads a close.
pub fn close(frame: &[u8]) -> Option<CloseCode> {
    let mut reader = Reader(frame);
    reader.u16().map(CloseCode).filter(|_| reader.0.is_empty())
}

/// Appends a close.
pub fn push_close(frame: &mut Vec<u8>, code: CloseCode) {
    frame.extend_from_slice(&code.0.to_be_bytes());
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFrame {
    /// All segments below this number have arrived.
    pub next: u64,
    /// Number of the datagram whose sending is echoed, by the rules of RFC 7323 for timestamps.
    pub echo: u64,
    /// Room beyond `next` that the receiver offers, bytes.
    pub window_bytes: u64,
    /// Datagrams that arrived as ECT(0).
    pub capable_pkts: u64,
    /// Datagrams that arrived as CE.
    pub marked_pkts: u64,
    /// From the arrival of the echoed datagram to this acknowledgement, microseconds.
    pub delay_us: u32,
    /// The first range tells of a duplicate (RFC 2883).
    pub tells_duplicate: bool,
    /// How many of `blocks` count.
    pub block_count: u8,
    /// Segments that arrived beyond `next`, the newest first.
    pub blocks: [Block; MAX_BLOCKS],
}

impl AckFrame {
    /// Of the acknowledgement that TCP would send, whose `echo_ns` is a datagram's number; `ecn_pkts`: datagrams that arrived
    /// as ECT(0), as CE.
    pub fn of(ack: &Ack, delay_us: u32, ecn_pkts: (u64, u64)) -> AckFrame {
        AckFrame {
            next: ack.next,
            echo: ack.echo_ns,
            window_bytes: ack.window_bytes,
            capable_pkts: ecn_pkts.0,
            marked_pkts: ecn_pkts.1,
            delay_us,
            tells_duplicate: ack.tells_duplicate,
            block_count: ack.block_count,
            blocks: ack.blocks,
        }
    }

    /// As TCP's, of a datagram that was sent at `echo_ns`; `ece`: it echoes a mark.
    pub fn as_tcp(&self, echo_ns: u64, ece: bool) -> Ack {
        Ack {
            next: self.next,
            sent_ns: 0,
            echo_ns,
            window_bytes: self.window_bytes,
            ece,
            tells_duplicate: self.tells_duplicate,
            block_count: self.block_count,
            blocks: self.blocks,
        }
    }

    /// One past the highest segment that it tells of.
    pub fn end(&self) -> u64 {
        let blocks = self.blocks[..self.block_count.into()].iter();
        blocks.fold(self.next, |end, block| end.max(block.until))
    }

    /// Appends it.
    pub fn push(&self, frame: &mut Vec<u8>) {
        let ecn_pkts = [self.capable_pkts, self.marked_pkts];
        for number in [self.next, self.echo, self.window_bytes]
            .into_iter()
            .chain(ecn_pkts)
        {
            frame.extend_from_slice(&number.to_be_bytes());
        }
        frame.extend_from_slice(&self.delay_us.to_be_bytes());
        frame.extend_from_slice(&[self.tells_duplicate.into(), self.block_count]);
        for block in &self.blocks[..self.block_count.into()] {
            let length = u32::try_from(block.until - block.from).unwrap_or(u32::MAX);
            frame.extend_from_slice(&block.from.to_be_bytes());
            frame.extend_from_slice(&length.to_be_bytes());
        }
    }

    /// Reads one; `None`: it is none.
    pub fn decode(frame: &[u8]) -> Option<AckFrame> {
        let mut reader = Reader(frame);
        let (next, echo, window_bytes) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let (capable_pkts, marked_pkts) = (reader.u64()?, reader.u64()?);
        let (delay_us, flags, block_count) = (reader.u32()?, reader.u8()?, reader.u8()?);
        let mut blocks = [Block::default(); MAX_BLOCKS];
        for block in blocks.get_mut(..block_count.into())? {
            let (from, length) = (reader.u64()?, reader.u32().filter(|length| *length > 0)?);
            let until = from + u64::from(length);
            *block = Block { from, until };
        }
        let is_whole = reader.0.is_empty() && flags <= 1 && flags <= block_count;
        is_whole.then_some(AckFrame {
            next,
            echo,
            window_bytes,
            capable_pkts,
            marked_pkts,
            delay_us,
            tells_duplicate: flags == 1,
            block_count,
            blocks,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run() -> impl Strategy<Value = (Run, u8)> {
        (any::<u32>(), 0..MOST, 1u16..300, any::<u8>()).prop_map(|(object, offset, bytes, fill)| {
            let run = Run {
                object,
                offset,
                bytes,
            };
            (run, fill)
        })
    }

    fn ack() -> impl Strategy<Value = AckFrame> {
        let blocks = prop::collection::vec((0..MOST, 1..=u32::MAX), 0..=MAX_BLOCKS);
        let head = (0..MOST, 0..MOST, 0..MOST, any::<u32>(), any::<bool>());
        let ecn_pkts = (0..MOST, 0..MOST);
        (head, ecn_pkts, blocks).prop_map(|(head, (capable_pkts, marked_pkts), held)| {
            let (next, echo, window_bytes, delay_us, duplicate) = head;
            let mut blocks = [Block::default(); MAX_BLOCKS];
            for (block, (from, length)) in blocks.iter_mut().zip(&held) {
                (block.from, block.until) = (*from, from + u64::from(*length));
            }
            AckFrame {
                next,
                echo,
                window_bytes,
                capable_pkts,
                marked_pkts,
                delay_us,
                tells_duplicate: duplicate && !held.is_empty(),
                block_count: held.len() as u8,
                blocks,
            }
        })
    }

    proptest! {
        #[test]
        fn data_are_read_as_they_were_written(
            segment in 0..MOST,
            runs in prop::collection::vec(run(), 1..8),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut frame = Vec::new();
            push_segment(&mut frame, segment);
            for (run, fill) in &runs {
                push_run(&mut frame, run).fill(*fill);
            }
            let data = Data::decode(&frame).unwrap();
            prop_assert_eq!((data.segment, data.run_bytes as usize), (segment, frame.len() - 8));
            let read: Vec<_> = data.writes.collect();
            prop_assert_eq!(read.len(), runs.len());
            for (write, (run, fill)) in read.iter().zip(&runs) {
                prop_assert_eq!((write.object, write.offset), (run.object, run.offset));
                prop_assert_eq!(write.bytes, &vec![*fill; run.bytes.into()][..]);
            }
            // Cut anywhere but between runs, it is none.
            let cut = cut.index(frame.len());
            let lengths = runs.iter().map(|(run, _)| 14 + usize::from(run.bytes));
            let ends: Vec<_> = lengths.scan(8, |end, length| { *end += length; Some(*end) }).collect();
            prop_assert_eq!(Data::decode(&frame[..cut]).is_some(), cut == 8 || ends.contains(&cut));
        }

        #[test]
        fn acks_are_read_as_they_were_written(ack in ack(), cut in any::<prop::sample::Index>()) {
            let mut frame = Vec::new();
            ack.push(&mut frame);
            prop_assert_eq!(AckFrame::decode(&frame), Some(ack));
            prop_assert_eq!(AckFrame::decode(&frame[..cut.index(frame.len())]), None);
            frame.push(0);
            prop_assert_eq!(AckFrame::decode(&frame), None);
        }

        /// Whatever a peer seals: no panic, and what is read is written the same again.
        #[test]
        fn any_bytes_are_read_or_refused(frame in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = (number(&frame), close(&frame));
            if let Some(data) = Data::decode(&frame) {
                let mut again = Vec::new();
                push_segment(&mut again, data.segment);
                for Write { object, offset, bytes } in data.writes {
                    let run = Run { object, offset, bytes: bytes.len() as u16 };
                    push_run(&mut again, &run).copy_from_slice(bytes);
                }
                prop_assert_eq!(&again, &frame);
            }
            if let Some(ack) = AckFrame::decode(&frame) {
                let mut again = Vec::new();
                ack.push(&mut again);
                prop_assert_eq!(&again, &frame);
            }
        }
    }
}
