// SPDX-License-Identifier: MIT OR Apache-2.0
//! The form of a segment: [`MAGIC`], a frame with the [`Header`], then a frame for each event.
//!
//! A frame is the length of its payload and a CRC-32 of length and payload (each 4 bytes, little-endian), then the
//! payload. The payload of an event is its sequence number and the event, in the encoding of postcard. Whatever a crash
//! or a damaged disk left of a segment, all events before the first bad frame are read; what follows it is not.

use crate::{Event, Kind, Origin};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The first bytes of a segment; the number is the version of the format.
pub const MAGIC: &[u8; 16] = b"fatpath spool 1\n";

/// The longest payload of a frame, bytes.
pub const MAX_PAYLOAD_BYTES: usize = 1 << 20;

/// Length and checksum.
const PREFIX_BYTES: usize = 8;

/// What all events of a segment have in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Where they come from.
    pub origin: Origin,
    /// Their kind.
    pub kind: Kind,
}

/// The bytes are no segment, or its header is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a segment of fatpath's spool, or its header is damaged")]
pub struct NotASegment;

/// An event of more than [`MAX_PAYLOAD_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event has {0} bytes; at most {MAX_PAYLOAD_BYTES} are kept")]
pub struct TooLong(pub usize);

/// Reads a segment: the header, then the events until the first bad frame.
///
/// # Errors
/// When not even the header can be read.
pub fn read(bytes: &[u8]) -> Result<(Header, Events<'_>), NotASegment> {
    let rest = bytes.strip_prefix(MAGIC).ok_or(NotASegment)?;
    let (header, rest) = take_frame(rest).ok_or(NotASegment)?;
    let header = decode(header).ok_or(NotASegment)?;
    Ok((header, Events { rest }))
}

/// The events of a segment, each with its sequence number, in the order in which they were appended.
#[derive(Clone, Debug)]
pub struct Events<'b> {
    rest: &'b [u8],
}

impl Events<'_> {
    /// Bytes that were not read: behind the last event, those of a torn or damaged tail.
    pub fn unread_bytes(&self) -> usize {
        self.rest.len()
    }
}

impl Iterator for Events<'_> {
    type Item = (u64, Event);

    fn next(&mut self) -> Option<(u64, Event)> {
        let (payload, rest) = take_frame(self.rest)?;
        let event = decode(payload)?;
        self.rest = rest;
        Some(event)
    }
}

/// The first frame's payload, and what follows the frame.
fn take_frame(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (prefix, rest) = bytes.split_first_chunk::<PREFIX_BYTES>()?;
    let [l0, l1, l2, l3, c0, c1, c2, c3] = *prefix;
    let length = [l0, l1, l2, l3];
    let payload_bytes = u32::from_le_bytes(length) as usize;
    if payload_bytes > MAX_PAYLOAD_BYTES {
        return None;
    }
    let (payload, rest) = rest.split_at_checked(payload_bytes)?;
    let is_whole = checksum(length, payload) == u32::from_le_bytes([c0, c1, c2, c3]);
    is_whole.then_some((payload, rest))
}

/// A payload with bytes to spare was not made by [`frame`].
fn decode<T: DeserializeOwned>(payload: &[u8]) -> Option<T> {
    let (value, rest) = postcard::take_from_bytes(payload).ok()?;
    rest.is_empty().then_some(value)
}

fn checksum(length: [u8; 4], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&length);
    hasher.update(payload);
    hasher.finalize()
}

/// The first bytes of a segment.
///
/// # Errors
/// When the names of the origin are absurdly long.
pub fn head(header: &Header) -> Result<Vec<u8>, TooLong> {
    let mut bytes = MAGIC.to_vec();
    push_frame(&mut bytes, header)?;
    Ok(bytes)
}

/// Adds the frame of an event.
///
/// # Errors
/// When the event is too long; nothing is added then.
pub fn push_event(bytes: &mut Vec<u8>, sequence: u64, event: &Event) -> Result<(), TooLong> {
    push_frame(bytes, &(sequence, event))
}

fn push_frame(bytes: &mut Vec<u8>, value: &impl Serialize) -> Result<(), TooLong> {
    let payload = postcard::to_stdvec(value).expect("strings and numbers are encodable");
    if payload.len() > MAX_PAYLOAD_BYTES {
        return Err(TooLong(payload.len()));
    }
    let length = (payload.len() as u32).to_le_bytes();
    bytes.extend(length);
    bytes.extend(checksum(length, &payload).to_le_bytes());
    bytes.extend(payload);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header() -> Header {
        Header {
            origin: Origin {
                host: "here".into(),
                boot: "1".into(),
            },
            kind: Kind::Flow,
        }
    }

    fn event(number: u64, body: String) -> Event {
        Event {
            time_us: number as i64 - 5,
            name: "flow.end".into(),
            peer: Some("192.0.2.7".parse().unwrap()),
            rule: None,
            value: Some(number as f64),
            weight: 1,
            body,
        }
    }

    /// The bytes of a segment, where each frame of an event ends, and the events.
    fn written(bodies: &[String]) -> (Vec<u8>, Vec<usize>, Vec<(u64, Event)>) {
        let mut bytes = head(&header()).unwrap();
        let (mut ends, mut events) = (vec![bytes.len()], Vec::new());
        for (number, body) in (1..).zip(bodies) {
            let event = event(number, body.clone());
            push_event(&mut bytes, number, &event).unwrap();
            ends.push(bytes.len());
            events.push((number, event));
        }
        (bytes, ends, events)
    }

    fn bodies() -> impl Strategy<Value = Vec<String>> {
        prop::collection::vec(".{0,40}", 1..8)
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(bodies in bodies()) {
            let (bytes, _, events) = written(&bodies);
            let (read_header, mut read) = read(&bytes).unwrap();
            prop_assert_eq!(read_header, header());
            prop_assert_eq!(read.by_ref().collect::<Vec<_>>(), events);
            prop_assert_eq!(read.unread_bytes(), 0);
        }

        #[test]
        fn a_torn_segment_gives_all_whole_events(bodies in bodies(), at: prop::sample::Index) {
            let (bytes, ends, events) = written(&bodies);
            let kept = at.index(bytes.len() + 1);
            let whole = ends.iter().filter(|end| **end <= kept).count();
            match read(&bytes[..kept]) {
                Err(NotASegment) => prop_assert_eq!(whole, 0),
                Ok((_, read)) => prop_assert_eq!(&read.collect::<Vec<_>>(), &events[..whole - 1]),
            }
        }

        #[test]
        fn a_damaged_byte_costs_only_what_follows(
            bodies in bodies(), at: prop::sample::Index, flip in 1..=255u8,
        ) {
            let (mut bytes, ends, events) = written(&bodies);
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            let whole = ends.iter().filter(|end| **end <= at).count();
            match read(&bytes) {
                Err(NotASegment) => prop_assert_eq!(whole, 0),
                Ok((_, read)) => prop_assert_eq!(&read.collect::<Vec<_>>(), &events[..whole - 1]),
            }
        }

        #[test]
        fn arbitrary_bytes_are_survived(tail in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut bytes = head(&header()).unwrap();
            bytes.extend(tail);
            let (_, mut events) = read(&bytes).unwrap();
            let before = events.by_ref().count();
            prop_assert!(before == 0 || events.unread_bytes() < bytes.len());
        }
    }

    #[test]
    fn an_event_that_is_too_long_is_refused_and_adds_nothing() {
        let mut bytes = vec![7];
        let long = event(1, "x".repeat(MAX_PAYLOAD_BYTES));
        assert!(push_event(&mut bytes, 1, &long).is_err());
        assert_eq!(bytes, [7]);
    }

    /// A length that is not covered by the checksum could be read as another frame.
    #[test]
    fn zeroes_are_no_frames() {
        let mut bytes = head(&header()).unwrap();
        bytes.extend([0; 4096]);
        assert_eq!(read(&bytes).unwrap().1.count(), 0);
    }
}
