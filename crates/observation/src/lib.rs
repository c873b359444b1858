// SPDX-License-Identifier: MIT OR Apache-2.0
//! What passed each direction of each link in each millisecond, and the file that holds it.
//!
//! Pure: time, counters and packets are arguments, a file is anything that reads. It draws nothing
//! and judges nothing.
//!
//! Writing: a [`Tally`] for each direction makes a [`Record`] of each interval; one [`Recorder`]
//! makes blocks of bytes of them. Reading: [`read`].
//!
//! The file is [`MAGIC`], the header as JSON behind its length, then blocks behind theirs (each
//! length 4 bytes, little-endian). A block holds whole entries, so a file that was cut short is
//! readable up to its last whole block. Numbers in blocks are LEB128; see `recorder`.

mod bins;
mod figures;
mod lateness;
mod reader;
mod recorder;
mod tally;
mod varint;

use fatpath_link::{Count, DropCause, Flow};
use serde::{Deserialize, Serialize};

pub use bins::{Bin, Selection, Totals, bins, intervals_per_bin};
pub use figures::{Depths, DirectionFigures};
pub use lateness::{Lateness, LatenessBucket};
pub use reader::{ReadError, Records, read};
pub use recorder::Recorder;
pub use tally::Tally;

/// The first bytes of every file; the number is the version of the format.
pub const MAGIC: &[u8; 22] = b"fatpath observation 1\n";

/// How many flows a file tells apart. Packets of any further flow count in the totals only.
pub const MAX_FLOWS: usize = 65_536;

/// What a file is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Length of an interval, above 0. Interval i is from i to just before i + 1 times this.
    pub interval_ns: u64,
    /// When interval 0 began, since 1970.
    pub begun_unix_ns: u64,
    /// The directions; records name them by their place here.
    pub directions: Vec<DirectionName>,
    /// Whether records tell flows apart.
    pub per_flow: bool,
}

/// A direction of a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectionName {
    /// The link.
    pub link: String,
    /// The host at which packets enter.
    pub from: String,
    /// The host at which they leave.
    pub to: String,
}

/// One interval of one direction. Records of one direction come in order of time; those of several
/// are mixed. There is none of an interval in which nothing happened and nothing was queued.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Index in [`Header::directions`].
    pub direction: usize,
    /// Number of the interval, from 0.
    pub interval: u64,
    /// Entered the direction.
    pub arrived: Count,
    /// Left it.
    pub left: Count,
    /// The most bytes that its queues held at any instant of the interval.
    pub peak_queue_bytes: u64,
    /// Dropped, for each cause, in the order of [`DropCause::ALL`].
    pub dropped: [Count; DropCause::ALL.len()],
    /// Marked: congestion met.
    pub marked: Count,
    /// Duplicates, made in addition to what arrived.
    pub duplicated: Count,
    /// Damaged.
    pub corrupted: Count,
    /// What fragments are more than the packets that they were.
    pub fragmented: Count,
    /// Of each flow of which a packet arrived or left; empty unless [`Header::per_flow`]. Packets
    /// without ports, and flows beyond [`MAX_FLOWS`], are not listed.
    pub flows: Vec<FlowRecord>,
}

/// What passed of one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRecord {
    /// The flow.
    pub flow: Flow,
    /// Entered the direction.
    pub arrived: Count,
    /// Left it.
    pub left: Count,
}

impl Record {
    /// Dropped for `cause`.
    pub fn dropped(&self, cause: DropCause) -> Count {
        self.dropped[cause as usize]
    }

    /// Whether nothing happened and nothing was queued.
    pub fn is_empty(&self) -> bool {
        self.peak_queue_bytes == 0
            && self
                .counts()
                .iter()
                .all(|count| **count == Count::default())
    }

    /// All counts, in the order of the file: a new one comes last, so that older files stay readable.
    fn counts(&self) -> [&Count; COUNTS] {
        let [full, early, loss, too_big, policed] = &self.dropped;
        [
            &self.arrived,
            &self.left,
            full,
            early,
            loss,
            too_big,
            &self.marked,
            &self.duplicated,
            &self.corrupted,
            policed,
            &self.fragmented,
        ]
    }

    fn counts_mut(&mut self) -> [&mut Count; COUNTS] {
        let [full, early, loss, too_big, policed] = &mut self.dropped;
        [
            &mut self.arrived,
            &mut self.left,
            full,
            early,
            loss,
            too_big,
            &mut self.marked,
            &mut self.duplicated,
            &mut self.corrupted,
            policed,
            &mut self.fragmented,
        ]
    }
}

/// How many counts a record has in addition to those of its flows.
const COUNTS: usize = 6 + DropCause::ALL.len();
