// SPDX-License-Identifier: MIT OR Apache-2.0
//! Datagrams of an echo test, and what their round trips say. What proves that they are of the test is not here: whoever
//! sends them fills [`Datagram::TAG`].

use crate::Trip;
use crate::tool::{ReadError, Values, values};
use std::ops::Range;

const MAGIC: [u8; 4] = *b"FPe1";
/// Of each datagram; what follows is padding.
pub const HEADER_BYTES: usize = 56;

/// Which way it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To the responder.
    There = 1,
    /// From it.
    Back = 2,
}

/// The header of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// So that none is taken for an answer to itself.
    pub way: Way,
    /// From 0.
    pub sequence: u32,
    /// What nobody can say who has not received the datagram; an answer has that of its question.
    pub nonce: u64,
    /// When the responder received it, ns since 1970 by its clock; 0: it does not say.
    pub received_ns: u64,
    /// When it sent it back.
    pub answered_ns: u64,
}

impl Datagram {
    /// Where the proof is: of all other bytes.
    pub const TAG: Range<usize> = 40..HEADER_BYTES;

    /// Writes it to the front of `bytes`, which are at least [`HEADER_BYTES`].
    pub fn encode(&self, bytes: &mut [u8]) {
        bytes[..HEADER_BYTES].fill(0);
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = self.way as u8;
        bytes[8..12].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.nonce.to_be_bytes());
        bytes[24..32].copy_from_slice(&self.received_ns.to_be_bytes());
        bytes[32..40].copy_from_slice(&self.answered_ns.to_be_bytes());
    }

    /// Reads what somebody sent; `None`: it is something else.
    pub fn decode(bytes: &[u8]) -> Option<Datagram> {
        let header: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
        let way = match header[4] {
            1 => Way::There,
            2 => Way::Back,
            _ => return None,
        };
        let number = |at: usize| Some(u64::from_be_bytes(*header[at..].first_chunk()?));
        let sequence = u32::from_be_bytes(*header[8..].first_chunk()?);
        header.starts_with(&MAGIC).then_some(Datagram {
            way,
            sequence,
            nonce: number(16)?,
            received_ns: number(24)?,
            answered_ns: number(32)?,
        })
    }
}

/// What `sent` datagrams say, of which some came back.
///
/// # Errors
/// None came back.
pub fn round_trips(sent: u32, trips: &[Trip]) -> Result<Values, ReadError> {
    let count = trips.len() as f64;
    let trips_ns = trips.iter().map(|trip| trip.trip_ns);
    let (Some(min), Some(max)) = (trips_ns.clone().min(), trips_ns.clone().max()) else {
        return Err(ReadError::Tool(format!(
            "none of {sent} datagrams came back"
        )));
    };
    let ms = |ns: f64| ns / 1e6;
    let mean = trips_ns.clone().map(|ns| ns as f64).sum::<f64>() / count;
    let squares = trips_ns.map(|ns| (ns as f64 - mean).powi(2));
    let deviation = (squares.sum::<f64>() / count).sqrt();
    Ok(values([
        ("sent", f64::from(sent), "packets"),
        ("loss", (1.0 - count / f64::from(sent)).max(0.0), "1"),
        ("rtt_min", ms(min as f64), "ms"),
        ("rtt_avg", ms(mean), "ms"),
        ("rtt_max", ms(max as f64), "ms"),
        ("rtt_mdev", ms(deviation), "ms"),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn round_trips_are_summed_up() {
        let trip = |ms: u64| Trip {
            trip_ns: ms * 1_000_000,
            sent_ns: 0,
            received_ns: 0,
            answered_ns: 0,
            came_ns: 0,
        };
        let values = round_trips(4, &[1, 2, 3].map(trip)).unwrap();
        assert_eq!(values["rtt_avg"], (2.0, "ms".to_owned()));
        assert_eq!((values["rtt_min"].0, values["rtt_max"].0), (1.0, 3.0));
        assert_eq!(values["loss"], (0.25, "1".to_owned()));
        assert!(round_trips(4, &[]).is_err());
    }

    proptest! {
        #[test]
        fn a_header_is_read_as_it_was_written(
            there: bool, sequence: u32, nonce: u64, received_ns: u64, answered_ns: u64, padding in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            let way = if there { Way::There } else { Way::Back };
            let datagram = Datagram { way, sequence, nonce, received_ns, answered_ns };
            let mut bytes = [vec![9; HEADER_BYTES], padding].concat();
            datagram.encode(&mut bytes);
            prop_assert_eq!(Datagram::decode(&bytes), Some(datagram));
            prop_assert_eq!(Datagram::decode(&bytes[..HEADER_BYTES - 1]), None);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            let begins = bytes.starts_with(&MAGIC) && bytes.len() >= HEADER_BYTES;
            prop_assert!(begins || Datagram::decode(&bytes).is_none());
        }
    }
}
