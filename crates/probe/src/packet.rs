// SPDX-License-Identifier: MIT OR Apache-2.0
//! The header of each datagram of a train; zeros follow up to its length. No I/O.

/// Which packet of which train of which test a datagram is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Drawn at random for a test by its receiver: a datagram without it is no part of the test.
    pub test: u64,
    /// The train's number within the test.
    pub train: u32,
    /// The packet's number within the train.
    pub sequence: u32,
}

/// `FPTR`: the first bytes of every such datagram.
const MAGIC: u32 = 0x4650_5452;

impl Header {
    /// Its length.
    pub const BYTES: usize = 20;

    /// As it is sent: big-endian.
    pub fn encoded(&self) -> [u8; Header::BYTES] {
        let mut bytes = [0; Header::BYTES];
        bytes[..4].copy_from_slice(&MAGIC.to_be_bytes());
        bytes[4..12].copy_from_slice(&self.test.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.train.to_be_bytes());
        bytes[16..].copy_from_slice(&self.sequence.to_be_bytes());
        bytes
    }

    /// The header at the beginning of a datagram; `None` for anything else.
    pub fn decoded(datagram: &[u8]) -> Option<Header> {
        let (magic, rest) = datagram.split_first_chunk()?;
        let (test, rest) = rest.split_first_chunk()?;
        let (train, rest) = rest.split_first_chunk()?;
        let (sequence, _) = rest.split_first_chunk()?;
        (u32::from_be_bytes(*magic) == MAGIC).then(|| Header {
            test: u64::from_be_bytes(*test),
            train: u32::from_be_bytes(*train),
            sequence: u32::from_be_bytes(*sequence),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_header_is_read_as_it_was_written(test: u64, train: u32, sequence: u32, behind: Vec<u8>) {
            let header = Header { test, train, sequence };
            let datagram = [&header.encoded()[..], &behind].concat();
            prop_assert_eq!(Header::decoded(&datagram), Some(header));
        }

        #[test]
        fn no_bytes_make_it_panic(datagram: Vec<u8>) {
            let begins = datagram.starts_with(&MAGIC.to_be_bytes()) && datagram.len() >= Header::BYTES;
            prop_assert_eq!(Header::decoded(&datagram).is_some(), begins);
        }
    }
}
