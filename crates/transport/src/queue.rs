// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is to be sent, and how it is cut into segments.

use std::collections::VecDeque;

/// Numbers of the wire are below this, so that sums of them do not overflow (docs/transport.md).
pub(crate) const MOST: u64 = 1 << 62;

/// A stretch of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The object's number.
    pub object: u32,
    /// Where it begins, bytes.
    pub offset: u64,
    /// Its length, bytes.
    pub bytes: u64,
}

/// A stretch of an object in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The object's number.
    pub object: u32,
    /// Where it begins, bytes.
    pub offset: u64,
    /// Its length, bytes; at least 1.
    pub bytes: u16,
}

impl From<&Run> for Extent {
    fn from(run: &Run) -> Extent {
        Extent {
            object: run.object,
            offset: run.offset,
            bytes: run.bytes.into(),
        }
    }
}

impl Run {
    /// Bytes that describe it in a segment: object, offset, length.
    pub(crate) const HEADER_BYTES: u32 = 4 + 8 + 2;

    /// Its bytes of a segment.
    pub(crate) fn segment_bytes(&self) -> u32 {
        Run::HEADER_BYTES + u32::from(self.bytes)
    }

    /// Its beginning, and the rest, where no more than so many bytes of a segment are left for it.
    pub(crate) fn split(&self, room_bytes: u32) -> (Option<Run>, Option<Extent>) {
        let room = room_bytes.saturating_sub(Run::HEADER_BYTES);
        let bytes = u32::from(self.bytes).min(room) as u16;
        let first = (bytes > 0).then_some(Run { bytes, ..*self });
        let rest = Extent {
            object: self.object,
            offset: self.offset + u64::from(bytes),
            bytes: u64::from(self.bytes - bytes),
        };
        (first, (rest.bytes > 0).then_some(rest))
    }
}

/// Extents in the order in which they leave.
#[derive(Debug, Default)]
pub struct Queue {
    extents: VecDeque<Extent>,
    bytes: u64,
}

impl Queue {
    /// It leaves after what was given before.
    ///
    /// # Panics
    /// It ends beyond 2^62 bytes.
    pub fn push(&mut self, extent: Extent) {
        let end = extent.offset.checked_add(extent.bytes);
        assert!(
            end.is_some_and(|end| end <= MOST),
            "an object ends at 2^62 bytes"
        );
        if extent.bytes == 0 {
            return;
        }
        self.bytes += extent.bytes;
        match self.extents.back_mut() {
            Some(last)
                if (last.object, last.offset + last.bytes) == (extent.object, extent.offset) =>
            {
                last.bytes += extent.bytes;
            }
            _ => self.extents.push_back(extent),
        }
    }

    /// It leaves before all others: it had left, and was left out of what was sent again.
    pub(crate) fn push_front(&mut self, extent: Extent) {
        self.bytes += extent.bytes;
        self.extents.push_front(extent);
    }

    /// All has left.
    pub fn is_empty(&self) -> bool {
        self.extents.is_empty()
    }

    /// How many there are.
    pub fn extents(&self) -> usize {
        self.extents.len()
    }

    /// The lowest byte, whatever the order.
    pub fn lowest(&self) -> Option<(u32, u64)> {
        let firsts = self
            .extents
            .iter()
            .map(|extent| (extent.object, extent.offset));
        firsts.min()
    }

    /// All of it.
    pub(crate) fn into_extents(self) -> impl Iterator<Item = Extent> {
        self.extents.into_iter()
    }

    /// Bytes of objects.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of segments that all of it takes at least: its data, and a header for each extent.
    pub(crate) fn least_bytes(&self) -> u64 {
        self.bytes + u64::from(Run::HEADER_BYTES) * self.extents.len() as u64
    }

    /// Takes what fits into `room_bytes` of a segment.
    pub(crate) fn cut(&mut self, room_bytes: u32) -> Box<[Run]> {
        let (mut room, mut runs) = (room_bytes, Vec::new());
        while let Some(run) = self.cut_run(room) {
            room -= Run::HEADER_BYTES + u32::from(run.bytes);
            runs.push(run);
        }
        runs.into()
    }

    fn cut_run(&mut self, room_bytes: u32) -> Option<Run> {
        let room = room_bytes
            .checked_sub(Run::HEADER_BYTES)?
            .min(u16::MAX.into());
        let extent = self.take(room.into())?;
        Some(Run {
            object: extent.object,
            offset: extent.offset,
            bytes: extent.bytes as u16,
        })
    }

    /// Takes the beginning of the first extent, `most` bytes of it or all; `None`: there is nothing to take.
    pub fn take(&mut self, most: u64) -> Option<Extent> {
        let first = self.extents.front_mut()?;
        let taken = Extent {
            bytes: most.min(first.bytes),
            ..*first
        };
        if taken.bytes == 0 {
            return None;
        }
        first.offset += taken.bytes;
        first.bytes -= taken.bytes;
        self.bytes -= taken.bytes;
        if first.bytes == 0 {
            self.extents.pop_front();
        }
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Every byte once and in order, no segment too long, none empty, and never fewer bytes than were said.
        #[test]
        fn segments_hold_all_of_it(
            lengths in prop::collection::vec(0u64..5000, 0..40),
            room in 15u32..3000,
        ) {
            let mut queue = Queue::default();
            for (object, bytes) in lengths.iter().enumerate() {
                queue.push(Extent { object: object as u32, offset: 7, bytes: *bytes });
            }
            let (least, mut used, mut next) = (queue.least_bytes(), 0, vec![7; lengths.len()]);
            while !queue.is_empty() {
                let runs = queue.cut(room);
                prop_assert!(!runs.is_empty());
                let length: u32 = runs.iter().map(|run| Run::HEADER_BYTES + u32::from(run.bytes)).sum();
                prop_assert!(length <= room);
                used += u64::from(length);
                for run in &runs {
                    prop_assert_eq!(run.offset, next[run.object as usize]);
                    next[run.object as usize] += u64::from(run.bytes);
                }
            }
            prop_assert!(used >= least);
            prop_assert_eq!(next, lengths.iter().map(|bytes| bytes + 7).collect::<Vec<_>>());
        }
    }
}
