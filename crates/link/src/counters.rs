// SPDX-License-Identifier: MIT OR Apache-2.0
//! What passed a cell, and what it dropped.

use serde::{Serialize, Serializer};

use crate::{Packet, Wire};

/// Segments and their bytes. A super-packet of 45 segments counts as 45.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// Segments.
    pub packets: u64,
    /// Their wire bytes, IP header on, without the overhead a rate may add.
    pub bytes: u64,
}

impl Count {
    /// Adds all segments of a packet.
    #[inline]
    pub fn add(&mut self, wire: Wire) {
        self.packets += u64::from(wire.segments);
        self.bytes += wire.len_bytes(0);
    }

    /// Whether nothing was counted.
    pub fn is_none(&self) -> bool {
        *self == Count::default()
    }

    /// Sums the segments of many packets.
    pub fn of<'a, P: Packet + 'a>(packets: impl IntoIterator<Item = &'a P>) -> Count {
        let mut count = Count::default();
        packets
            .into_iter()
            .for_each(|packet| count.add(packet.wire()));
        count
    }
}

impl std::ops::AddAssign for Count {
    fn add_assign(&mut self, other: Count) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

/// Why a cell dropped a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropCause {
    /// The queue had no room for it.
    QueueFull,
    /// The queue's discipline dropped it before the queue was full.
    Early,
    /// Lost on the way.
    Loss,
    /// Longer than the MTU.
    TooBig,
    /// A policer had too few tokens for it.
    Policed,
}

impl DropCause {
    /// Every cause, in the order in which results list them.
    pub const ALL: [DropCause; 5] = [
        DropCause::QueueFull,
        DropCause::Early,
        DropCause::Loss,
        DropCause::TooBig,
        DropCause::Policed,
    ];

    /// The cause as results print it.
    pub const fn name(self) -> &'static str {
        match self {
            DropCause::QueueFull => "queue_full",
            DropCause::Early => "early",
            DropCause::Loss => "loss",
            DropCause::TooBig => "too_big",
            DropCause::Policed => "policed",
        }
    }
}

/// What passed a cell. At every instant `arrived + duplicated + fragmented = left + dropped + held`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Pushed in.
    pub arrived: Count,
    /// Popped out.
    pub left: Count,
    /// Duplicates, made in addition to what was pushed in.
    pub duplicated: Count,
    /// What fragments are more than the packets that they were: packets, and bytes of headers.
    #[serde(skip_serializing_if = "Count::is_none")]
    pub fragmented: Count,
    /// Marked: by ECN as having met congestion, or by a policer's DSCP.
    pub marked: Count,
    /// Damaged.
    pub corrupted: Count,
    #[serde(serialize_with = "by_cause")]
    dropped: [Count; DropCause::ALL.len()],
}

/// As a map from the names of the causes.
fn by_cause<S: Serializer>(
    dropped: &[Count; DropCause::ALL.len()],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(DropCause::ALL.map(DropCause::name).iter().zip(dropped))
}

impl Counters {
    /// Counters without drops.
    #[inline]
    pub fn passed(arrived: Count, left: Count) -> Self {
        Counters {
            arrived,
            left,
            ..Counters::default()
        }
    }

    /// Dropped for `cause`.
    pub fn dropped(&self, cause: DropCause) -> Count {
        self.dropped[cause as usize]
    }

    /// Dropped for any cause.
    pub fn dropped_total(&self) -> Count {
        let mut total = Count::default();
        self.dropped.iter().for_each(|count| total += *count);
        total
    }

    /// Notes that a packet goes on as these fragments.
    pub(crate) fn fragment(&mut self, whole: Wire, fragments: Count) {
        self.fragmented += Count {
            packets: fragments.packets - u64::from(whole.segments),
            bytes: fragments.bytes - whole.len_bytes(0),
        };
    }

    /// Notes the drop of a whole packet.
    #[inline]
    pub fn drop(&mut self, cause: DropCause, wire: Wire) {
        self.dropped[cause as usize].add(wire);
    }

    /// Adds what another cell did to packets (all but `arrived` and `left`) to these.
    pub fn add_effects(&mut self, other: &Counters) {
        self.duplicated += other.duplicated;
        self.fragmented += other.fragmented;
        self.marked += other.marked;
        self.corrupted += other.corrupted;
        self.dropped
            .iter_mut()
            .zip(&other.dropped)
            .for_each(|(mine, theirs)| *mine += *theirs);
    }
}
