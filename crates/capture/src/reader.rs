// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames of a capture file, one after the other, from anything that reads: pcap and pcapng, told apart by their
//! first bytes. What it holds is bounded by the largest record that it accepts.

use crate::about::About;
use crate::pcapng::Section;
use pcap_parser::{PcapHeader, parse_pcap_header};
use std::io::{ErrorKind, Read};

/// Larger than any packet that Linux hands to a capture (`MAXIMUM_SNAPLEN` of tcpdump is 256 KiB), with room for the
/// comments of a pcapng block.
const MAX_RECORD_BYTES: usize = 4 << 20;

/// Small enough to stay in a second-level cache, so that the bytes of a payload are copied but never fetched again.
const BUFFER_BYTES: usize = 256 << 10;

const PCAP_HEADER_BYTES: usize = 24;
const PCAPNG_MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// Of the "modified" form, which has 8 bytes more before each packet.
const PCAP_MODIFIED_MAGIC: u32 = 0xa1b2_cd34;

/// Why a file cannot be read on.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Of the file itself.
    #[error("cannot read the capture")]
    Io(#[from] std::io::Error),
    /// Neither pcap nor pcapng.
    #[error(
        "this is neither pcap nor pcapng: give a file that tcpdump, dumpcap or Wireshark wrote"
    )]
    UnknownFormat,
    /// What is written there cannot be a record.
    #[error("damaged at byte {offset}: {what}; what comes after it cannot be found")]
    Damaged {
        /// Where the record begins, counted from the beginning of the (decompressed) file.
        offset: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// The last record is not whole, as of a capture that was interrupted.
    #[error("the file ends within a record, at byte {offset}")]
    CutShort {
        /// Where that record begins.
        offset: u64,
    },
}

/// One captured frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'b> {
    /// When it was captured, since 1970. 0 where the file tells no time.
    pub time_ns: i64,
    /// `LINKTYPE_…` of <https://www.tcpdump.org/linktypes.html>.
    pub link_type: i32,
    /// How long it was on the wire.
    pub wire_bytes: u32,
    /// As much of it as was captured.
    pub data: &'b [u8],
}

enum Format {
    Pcap(Pcap),
    Pcapng(Section),
}

/// What the header of a pcap file says of its records.
#[derive(Clone, Copy)]
struct Pcap {
    is_big_endian: bool,
    /// Before the frame.
    header_bytes: usize,
    ns_per_fraction: i64,
    link_type: i32,
}

/// Reads frames.
pub struct Reader<R> {
    input: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Of `start`.
    offset: u64,
    format: Format,
    about: About,
}

impl<R: Read> Reader<R> {
    /// Reads the file's header.
    ///
    /// # Errors
    /// When the input is no capture, or fails.
    pub fn new(input: R) -> Result<Reader<R>, ReadError> {
        let mut reader = Reader {
            input,
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            offset: 0,
            format: Format::Pcapng(Section::default()),
            about: About::default(),
        };
        if !reader.fill(4)? {
            return Err(ReadError::UnknownFormat);
        }
        if !reader.ahead().starts_with(&PCAPNG_MAGIC) {
            reader.format = Format::Pcap(reader.pcap_header()?);
        }
        Ok(reader)
    }

    fn pcap_header(&mut self) -> Result<Pcap, ReadError> {
        if !self.fill(PCAP_HEADER_BYTES)? {
            return Err(ReadError::UnknownFormat);
        }
        let parsed = parse_pcap_header(self.ahead()).map(|(_, header)| header);
        let header = parsed.map_err(|_| ReadError::UnknownFormat)?;
        self.skip(PCAP_HEADER_BYTES);
        Ok(Pcap::of(&header))
    }

    /// The next frame; none at the end of the file.
    ///
    /// # Errors
    /// When the file is damaged here or fails. Everything before was read.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, ReadError> {
        match &self.format {
            Format::Pcap(_) => self.next_pcap(),
            Format::Pcapng(_) => self.next_pcapng(),
        }
    }

    /// What the file said beside its packets so far.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// How far it has read, in bytes of the (decompressed) file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    fn next_pcap(&mut self) -> Result<Option<Frame<'_>>, ReadError> {
        let Format::Pcap(pcap) = self.format else {
            return Ok(None);
        };
        if !self.fill_or_end(pcap.header_bytes)? {
            return Ok(None);
        }
        let [s, fraction, kept_bytes, wire_bytes] =
            [0, 4, 8, 12].map(|at| self.u32_at(at, pcap.is_big_endian));
        let record_bytes = pcap.header_bytes + kept_bytes as usize;
        self.fill_record(record_bytes)?;
        Ok(Some(Frame {
            // Both factors are below 2^32.
            time_ns: i64::from(s) * 1_000_000_000 + i64::from(fraction) * pcap.ns_per_fraction,
            link_type: pcap.link_type,
            wire_bytes,
            data: &self.take(record_bytes)[pcap.header_bytes..],
        }))
    }

    fn next_pcapng(&mut self) -> Result<Option<Frame<'_>>, ReadError> {
        // A frame borrows the buffer, so the loop only looks for it.
        loop {
            if !self.fill_or_end(12)? {
                return Ok(None);
            }
            let offset = self.offset;
            let block_bytes = self.block_bytes()?;
            self.fill_record(block_bytes)?;
            let (start, end) = (self.start, self.start + block_bytes);
            self.skip(block_bytes);
            let Format::Pcapng(section) = &mut self.format else {
                return Ok(None);
            };
            let taken = section.take(&self.buffer[start..end], &mut self.about);
            let damaged = |what| ReadError::Damaged { offset, what };
            if let Some(place) = taken.map_err(damaged)? {
                let data = start + place.data.start..start + place.data.end;
                return Ok(Some(Frame {
                    time_ns: place.time_ns,
                    link_type: place.link_type,
                    wire_bytes: place.wire_bytes,
                    data: &self.buffer[data],
                }));
            }
        }
    }

    /// Of the block that begins here; a section header tells its byte order itself.
    fn block_bytes(&mut self) -> Result<usize, ReadError> {
        let Format::Pcapng(section) = &self.format else {
            return Ok(0);
        };
        let is_big = match self.ahead().starts_with(&PCAPNG_MAGIC) {
            true => self.ahead()[8..12] == [0x1a, 0x2b, 0x3c, 0x4d],
            false => section.is_big_endian(),
        };
        let block_bytes = self.u32_at(4, is_big) as usize;
        match block_bytes {
            12.. => Ok(block_bytes),
            _ => Err(ReadError::Damaged {
                offset: self.offset,
                what: "a block of less than 12 bytes",
            }),
        }
    }

    fn u32_at(&self, at: usize, is_big_endian: bool) -> u32 {
        let bytes: [u8; 4] = self.ahead()[at..at + 4]
            .try_into()
            .expect("a slice of four bytes");
        match is_big_endian {
            true => u32::from_be_bytes(bytes),
            false => u32::from_le_bytes(bytes),
        }
    }

    fn ahead(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    fn skip(&mut self, bytes: usize) {
        self.start += bytes;
        self.offset += bytes as u64;
    }

    fn take(&mut self, bytes: usize) -> &[u8] {
        let start = self.start;
        self.skip(bytes);
        &self.buffer[start..start + bytes]
    }

    /// False at the end of the file.
    fn fill_or_end(&mut self, bytes: usize) -> Result<bool, ReadError> {
        let is_filled = self.fill(bytes)?;
        match is_filled || self.ahead().is_empty() {
            true => Ok(is_filled),
            false => Err(self.cut_short()),
        }
    }

    fn fill_record(&mut self, bytes: usize) -> Result<(), ReadError> {
        if bytes > MAX_RECORD_BYTES {
            return Err(ReadError::Damaged {
                offset: self.offset,
                what: "a record of more than 4 MiB",
            });
        }
        match self.fill(bytes)? {
            true => Ok(()),
            false => Err(self.cut_short()),
        }
    }

    fn cut_short(&self) -> ReadError {
        ReadError::CutShort {
            offset: self.offset,
        }
    }

    /// So many bytes ahead in the buffer; false when the input ends before.
    fn fill(&mut self, bytes: usize) -> Result<bool, ReadError> {
        if self.end - self.start >= bytes {
            return Ok(true);
        }
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.buffer.len() < bytes {
            self.buffer.resize(bytes, 0);
        }
        while self.end < bytes {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Ok(false),
                Ok(count) => self.end += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }
}

impl Pcap {
    fn of(header: &PcapHeader) -> Pcap {
        Pcap {
            is_big_endian: header.is_bigendian(),
            header_bytes: match header.magic_number {
                PCAP_MODIFIED_MAGIC => 24,
                _ => 16,
            },
            ns_per_fraction: match header.is_nanosecond_precision() {
                true => 1,
                false => 1000,
            },
            // The upper half may tell of a frame check sequence.
            link_type: header.network.0 & 0xffff,
        }
    }
}
