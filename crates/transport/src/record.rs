// SPDX-License-Identifier: MIT OR Apache-2.0
//! The datagrams of `packet.rs` as records of a stream that keeps order, such as a TCP connection: each with its length
//! before it, 2 bytes in network order. They are sealed by the same keys and have the same frames.
//!
//! Numbers follow one another, and the data's segment is the record's number: a record that was left out, repeated or
//! moved is refused as one that was changed is, and then the stream is of no use any more. The end that receives says a
//! hello now and then. It names the next record that this end waits for: the sender knows what has arrived, which is all
//! that it need not send by another stream if this one ends, and that its key was seen and may be renewed.

use std::collections::VecDeque;

use crate::close::CloseCode;
use crate::frame::{self, Data, Writes};
use crate::keys::{Cipher, FlowSecret};
use crate::lowest::Lowest;
use crate::packet::{HEADER_BYTES, Header, Kind, TAG_BYTES};
use crate::queue::{Extent, Queue, Run};
use crate::seal::{KeyExhausted, Opener, Refused, Sealer};

/// Bytes of a record's length.
const LENGTH_BYTES: usize = 2;
/// A hello, whose frame is a number.
pub const HELLO_BYTES: usize = LENGTH_BYTES + HEADER_BYTES + size_of::<u64>() + TAG_BYTES;
/// No record is longer, its length among it.
pub const MOST_RECORD_BYTES: usize = LENGTH_BYTES + u16::MAX as usize;
/// Bytes of a record of data for runs with their headers: it stays in the processor's cache while it is read, sealed and
/// copied.
const RUN_BYTES: u32 = (32 << 10) + Run::HEADER_BYTES;
/// Runs that may not have arrived, at most, and those of one record more: of full records twice the largest window of TCP (1 GiB,
/// RFC 7323, section 2.3). An end that says hello and never names a later record takes no more memory here.
const MOST_UNTOLD_RUNS: usize = 1 << 16;

/// Seals the records of one direction, and keeps which data they had until these have arrived.
#[derive(Debug)]
pub struct RecordSealer {
    sealer: Sealer,
    /// Records of data that may not have arrived.
    sent: VecDeque<(u64, Box<[Run]>)>,
    /// Of those.
    untold_runs: usize,
    /// The lowest byte of those.
    lowest: Lowest,
}

/// Opens the records of one direction.
#[derive(Debug)]
pub struct RecordOpener {
    opener: Opener,
    /// The number of the next.
    next: u64,
}

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'r> {
    /// What is to be written.
    Data(Writes<'r>),
    /// The end lives, has the key, and waits for the record of this number: those before have arrived.
    Hello(u64),
    /// The end of the connection.
    Close(CloseCode),
}

impl FlowSecret {
    /// The sending end's: what seals data, what opens hellos.
    pub fn records_of_sender(self, cipher: Cipher) -> (RecordSealer, RecordOpener) {
        let (sealer, opener) = self.of_sender(cipher);
        (RecordSealer::new(sealer), RecordOpener { opener, next: 0 })
    }

    /// The receiving end's: what seals hellos, what opens data.
    pub fn records_of_receiver(self, cipher: Cipher) -> (RecordSealer, RecordOpener) {
        let (sealer, opener) = self.of_receiver(cipher);
        (RecordSealer::new(sealer), RecordOpener { opener, next: 0 })
    }
}

impl RecordSealer {
    fn new(sealer: Sealer) -> RecordSealer {
        RecordSealer {
            sealer,
            sent: VecDeque::new(),
            untold_runs: 0,
            lowest: Lowest::default(),
        }
    }

    /// Appends a record of what `queue` begins with, whose bytes `read` gives. Says whether there was anything; while the other
    /// end has to say first what has arrived, there is nothing.
    ///
    /// # Errors
    /// The key has reached its limit.
    pub fn data(
        &mut self,
        queue: &mut Queue,
        records: &mut Vec<u8>,
        mut read: impl FnMut(&Run, &mut [u8]),
    ) -> Result<bool, KeyExhausted> {
        if self.untold_runs >= MOST_UNTOLD_RUNS {
            return Ok(false);
        }
        let runs = queue.cut(RUN_BYTES);
        if runs.is_empty() {
            return Ok(false);
        }
        let segment = self.sealer.next_number();
        self.seal(Kind::Data, records, |frame| {
            frame::push_segment(frame, segment);
            for run in &runs {
                read(run, frame::push_run(frame, run));
            }
        })?;
        let lowest = runs.iter().map(|run| (run.object, run.offset)).min();
        self.lowest.push(segment, lowest);
        self.untold_runs += runs.len();
        self.sent.push_back((segment, runs));
        Ok(true)
    }

    /// Appends a hello: this end waits for the other one's record of number `next` ([`RecordOpener::next`]).
    ///
    /// # Errors
    /// The key has reached its limit.
    pub fn hello(&mut self, next: u64, records: &mut Vec<u8>) -> Result<(), KeyExhausted> {
        self.seal(Kind::Hello, records, |frame| {
            frame::push_segment(frame, next);
        })
    }

    /// Appends a close.
    ///
    /// # Errors
    /// The key has reached its limit.
    pub fn close(&mut self, code: CloseCode, records: &mut Vec<u8>) -> Result<(), KeyExhausted> {
        self.seal(Kind::Close, records, |frame| frame::push_close(frame, code))
    }

    /// The other end has sealed by its key of this phase ([`RecordOpener::phase`]).
    pub fn heard(&mut self, phase: u8) {
        self.sealer.heard(phase);
    }

    /// The other end said hello: records before `next` have arrived.
    ///
    /// # Errors
    /// That one has not left.
    pub fn arrived(&mut self, next: u64) -> Result<(), Refused> {
        if next > self.sealer.next_number() {
            return Err(Refused::Nonsense);
        }
        while let Some((first, runs)) = self.sent.front()
            && *first < next
        {
            self.untold_runs -= runs.len();
            self.sent.pop_front();
        }
        self.lowest.forget_below(next);
        Ok(())
    }

    /// The lowest byte that may not have arrived.
    pub fn lowest(&self) -> Option<(u32, u64)> {
        self.lowest.get()
    }

    /// The first record of data that may not have arrived.
    pub fn oldest(&self) -> Option<u64> {
        self.sent.front().map(|(number, _)| *number)
    }

    /// What may not have arrived.
    pub fn into_rest(self) -> impl Iterator<Item = Extent> {
        let runs = self.sent.into_iter().flat_map(|(_, runs)| runs);
        runs.map(|run| Extent::from(&run))
    }

    fn seal(
        &mut self,
        kind: Kind,
        records: &mut Vec<u8>,
        fill: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), KeyExhausted> {
        let length_at = records.len();
        let begin = length_at + LENGTH_BYTES;
        records.resize(begin + HEADER_BYTES, 0);
        fill(records);
        self.sealer.seal(kind, records, begin)?;
        let length = u16::try_from(records.len() - begin).expect("runs are cut to what fits");
        records[length_at..begin].copy_from_slice(&length.to_be_bytes());
        Ok(())
    }
}

impl RecordOpener {
    /// A record says that it is of this connection; nobody has verified that.
    pub fn is_named_by(&self, record: &[u8]) -> bool {
        let header = record.get(LENGTH_BYTES..).and_then(Header::decode);
        header.is_some_and(|header| self.opener.is_named_by(&header))
    }

    /// Bytes of the record that `bytes` begin with; `None`: it has not arrived whole.
    ///
    /// # Errors
    /// It is none.
    pub fn whole(bytes: &[u8]) -> Result<Option<usize>, Refused> {
        let Some(length) = bytes.first_chunk().copied().map(u16::from_be_bytes) else {
            return Ok(None);
        };
        if usize::from(length) < HEADER_BYTES + TAG_BYTES {
            return Err(Refused::Unknown);
        }
        let record = LENGTH_BYTES + usize::from(length);
        Ok((record <= bytes.len()).then_some(record))
    }

    /// Opens a whole record in place.
    ///
    /// # Errors
    /// It is not the next that the other end sealed: the stream is of no use any more.
    pub fn open<'r>(&mut self, record: &'r mut [u8]) -> Result<Record<'r>, Refused> {
        let datagram = record.get_mut(LENGTH_BYTES..).ok_or(Refused::Unknown)?;
        let opened = self.opener.open(datagram)?;
        if opened.header.number != self.next {
            return Err(Refused::Nonsense);
        }
        let number = std::mem::replace(&mut self.next, opened.header.number + 1);
        let frame: &'r [u8] = opened.frame;
        let read = match opened.header.kind {
            Kind::Data => Data::decode(frame)
                .filter(|data| data.segment == number)
                .map(|data| Record::Data(data.writes)),
            Kind::Hello => frame::number(frame).map(Record::Hello),
            Kind::Close => frame::close(frame).map(Record::Close),
            Kind::Probe | Kind::Ack | Kind::Size | Kind::Sized => None,
        };
        read.ok_or(Refused::Nonsense)
    }

    /// The number of the next record.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The newest phase that a record was sealed in.
    pub fn phase(&self) -> u8 {
        self.opener.phase()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests {
    use super::*;
    use crate::{Extent, Secret};
    use proptest::prelude::*;

    const CIPHER: Cipher = Cipher::Aes128Gcm;

    fn pair() -> (RecordSealer, RecordOpener) {
        let flow = || Secret::agree(&[1; 32], &[2; 32]).next_flow().unwrap();
        (
            flow().records_of_sender(CIPHER).0,
            flow().records_of_receiver(CIPHER).1,
        )
    }

    fn byte(object: u32, offset: u64) -> u8 {
        (u64::from(object) * 31 + offset) as u8
    }

    fn read(run: &Run, into: &mut [u8]) {
        let places = run.offset..;
        into.iter_mut()
            .zip(places)
            .for_each(|(byte_of, at)| *byte_of = byte(run.object, at));
    }

    /// The records of what is to be sent, each by itself.
    fn sealed(sealer: &mut RecordSealer, lengths: &[u64]) -> Vec<Vec<u8>> {
        let mut queue = Queue::default();
        for (object, bytes) in lengths.iter().enumerate() {
            let (object, bytes) = (object as u32, *bytes);
            queue.push(Extent {
                object,
                offset: 7,
                bytes,
            });
        }
        let next = || {
            let mut record = vec![];
            let is_one = sealer.data(&mut queue, &mut record, read).unwrap();
            is_one.then_some(record)
        };
        std::iter::from_fn(next).collect()
    }

    proptest! {
        /// However the stream is cut on its way, each byte arrives once.
        #[test]
        fn what_is_sealed_is_read(
            lengths in prop::collection::vec(0u64..100_000, 0..8),
            cut in 1usize..70_000,
        ) {
            let (mut sealer, mut opener) = pair();
            let mut stream = sealed(&mut sealer, &lengths).concat();
            sealer.hello(5, &mut stream).unwrap();
            sealer.close(CloseCode(3), &mut stream).unwrap();
            let (mut arrived, mut next) = (vec![], vec![7; lengths.len()]);
            let mut others = vec![];
            for piece in stream.chunks(cut) {
                arrived.extend_from_slice(piece);
                while let Some(length) = RecordOpener::whole(&arrived).unwrap() {
                    prop_assert!(length <= MOST_RECORD_BYTES);
                    match opener.open(&mut arrived[..length]).unwrap() {
                        Record::Data(writes) => for write in writes {
                            let at = &mut next[write.object as usize];
                            prop_assert_eq!(write.offset, *at);
                            let is_it = write.bytes.iter().zip(*at..).all(|(is, at)| *is == byte(write.object, at));
                            prop_assert!(is_it);
                            *at += write.bytes.len() as u64;
                        },
                        Record::Hello(next) => others.push(Err(next)),
                        Record::Close(code) => others.push(Ok(code)),
                    }
                    arrived.drain(..length);
                }
            }
            prop_assert_eq!(next, lengths.iter().map(|bytes| bytes + 7).collect::<Vec<_>>());
            prop_assert_eq!(others, [Err(5), Ok(CloseCode(3))]);
            prop_assert!(arrived.is_empty());
        }

        /// What no hello has told of is kept to be sent by another stream, and nothing else is.
        #[test]
        fn what_has_not_arrived_is_kept(
            lengths in prop::collection::vec(0u64..100_000, 0..8),
            told in any::<prop::sample::Index>(),
        ) {
            let (mut sealer, mut opener) = pair();
            let mut records = sealed(&mut sealer, &lengths);
            let told = told.index(records.len() + 1);
            for record in &mut records[..told] {
                opener.open(record).unwrap();
            }
            prop_assert_eq!(sealer.arrived(records.len() as u64 + 1), Err(Refused::Nonsense));
            sealer.arrived(opener.next()).unwrap();
            let mut wanted = Queue::default();
            for record in &mut records[told..] {
                let Record::Data(writes) = opener.open(record).unwrap() else { unreachable!() };
                writes.for_each(|write| wanted.push(Extent {
                    object: write.object,
                    offset: write.offset,
                    bytes: write.bytes.len() as u64,
                }));
            }
            prop_assert_eq!(sealer.lowest(), wanted.lowest());
            let mut rest = Queue::default();
            sealer.into_rest().for_each(|extent| rest.push(extent));
            prop_assert!(rest.into_extents().eq(wanted.into_extents()));
        }

        /// One bit anywhere, its length excepted, which makes another record or none.
        #[test]
        fn what_was_changed_is_refused(bit in any::<prop::sample::Index>(), length in 1u64..200) {
            let (mut sealer, mut opener) = pair();
            let mut record = sealed(&mut sealer, &[length]).remove(0);
            let bit = 8 * LENGTH_BYTES + bit.index(8 * (record.len() - LENGTH_BYTES));
            record[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(opener.open(&mut record).is_err());
        }

        /// Whatever comes, it is waited for or refused.
        #[test]
        fn any_bytes_are_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let (_, mut opener) = pair();
            prop_assert!(!opener.is_named_by(&bytes));
            if let Ok(Some(length)) = RecordOpener::whole(&bytes) {
                prop_assert!(opener.open(&mut bytes[..length]).is_err());
            }
        }
    }

    #[test]
    fn what_was_left_out_or_moved_is_refused() {
        let (mut sealer, _) = pair();
        let mut records = sealed(&mut sealer, &[100_000]);
        assert_eq!(records.len(), 4);
        let open = |opener: &mut RecordOpener, record: &[u8]| {
            opener.open(&mut record.to_vec()).map(|_| ())
        };
        let (_, mut opener) = pair();
        assert_eq!(open(&mut opener, &records[0]), Ok(()));
        assert_eq!(open(&mut opener, &records[0]), Err(Refused::Replayed));
        assert_eq!(open(&mut opener, &records[2]), Err(Refused::Nonsense));
        let (_, mut opener) = pair();
        records.swap(0, 1);
        assert_eq!(open(&mut opener, &records[0]), Err(Refused::Nonsense));
    }

    /// Of files of a byte, each a run: what is kept of them is bounded, and what has arrived makes room.
    #[test]
    fn an_end_that_never_says_what_has_arrived_gets_no_more() {
        let (mut sealer, _) = pair();
        let lengths = vec![1; 2 * MOST_UNTOLD_RUNS];
        let mut queue = Queue::default();
        for (object, bytes) in lengths.iter().enumerate() {
            let object = object as u32;
            let (offset, bytes) = (7, *bytes);
            queue.push(Extent {
                object,
                offset,
                bytes,
            });
        }
        let mut fill = |sealer: &mut RecordSealer| {
            let mut records = 0;
            while sealer.data(&mut queue, &mut vec![], read).unwrap() {
                records += 1;
            }
            records
        };
        let records = fill(&mut sealer);
        let runs: usize = sealer.sent.iter().map(|(_, runs)| runs.len()).sum();
        let one = RUN_BYTES as usize / Run::HEADER_BYTES as usize;
        assert!((MOST_UNTOLD_RUNS..MOST_UNTOLD_RUNS + one).contains(&runs));
        assert_eq!((runs, sealer.oldest()), (sealer.untold_runs, Some(0)));
        sealer.arrived(0).unwrap();
        assert_eq!(fill(&mut sealer), 0, "nothing has arrived");
        sealer.arrived(records).unwrap();
        assert_eq!((sealer.untold_runs, sealer.oldest()), (0, None));
        assert!(fill(&mut sealer) > 0);
    }

    #[test]
    fn a_hello_with_a_rest_is_refused() {
        let (mut sealer, mut opener) = pair();
        let mut hello = vec![];
        sealer
            .seal(Kind::Hello, &mut hello, |frame| frame.extend([7; 9]))
            .unwrap();
        assert_eq!(opener.open(&mut hello), Err(Refused::Nonsense));
    }

    /// A key goes on when the other end has shown that it saw it.
    #[test]
    fn keys_are_renewed_as_hellos_come() {
        let flow = || Secret::agree(&[1; 32], &[2; 32]).next_flow().unwrap();
        let (mut data, mut hellos) = flow().records_of_sender(CIPHER);
        let (mut answers, mut opener) = flow().records_of_receiver(CIPHER);
        data.sealer.limit(3, 100);
        let mut phases = vec![];
        for _ in 0..5 {
            for mut record in sealed(&mut data, &[150_000]) {
                phases.push(record[LENGTH_BYTES + 1]);
                opener.open(&mut record).unwrap();
            }
            let mut hello = vec![];
            answers.heard(opener.phase());
            answers.hello(opener.next(), &mut hello).unwrap();
            assert_eq!(hello.len(), HELLO_BYTES);
            assert_eq!(hellos.open(&mut hello), Ok(Record::Hello(opener.next())));
            data.heard(hellos.phase());
        }
        phases.dedup();
        assert_eq!(phases, [0, 1, 2, 3, 4, 5]);
    }
}
