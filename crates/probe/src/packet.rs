// SPDX-License-Identifier: MIT OR Apache-2.0
//! The header of each datagram of a train; zeros follow up to its length. No I/O.

use crate::secret::{Secret, TAG_BYTES};

/// Which packet of which train a datagram is. Of which test, its proof says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The train's number within the test.
    pub train: u32,
    /// The packet's number within the train.
    pub sequence: u32,
}

/// The first bytes of every such datagram.
const MAGIC: [u8; 4] = *b"FPt2";

/// All of the header but its proof.
const PROVED_BYTES: usize = 12;

impl Header {
    /// Its length.
    pub const BYTES: usize = PROVED_BYTES + TAG_BYTES;

    /// As it is sent, big-endian, with the proof that it is of the test of `secret`.
    pub fn sealed(&self, secret: &Secret) -> [u8; Header::BYTES] {
        let mut bytes = [0; Header::BYTES];
        let (proved, tag) = bytes.split_at_mut(PROVED_BYTES);
        proved[..4].copy_from_slice(&MAGIC);
        proved[4..8].copy_from_slice(&self.train.to_be_bytes());
        proved[8..].copy_from_slice(&self.sequence.to_be_bytes());
        tag.copy_from_slice(&secret.tag([proved]));
        bytes
    }

    /// The header at the beginning of a datagram of the test's train of this number; `None` for anything else.
    pub fn opened(datagram: &[u8], train: u32, secret: &Secret) -> Option<Header> {
        let bytes: &[u8; Header::BYTES] = datagram.first_chunk()?;
        let (proved, tag) = bytes.split_at(PROVED_BYTES);
        let number = |at: usize| Some(u32::from_be_bytes(*proved[at..].first_chunk()?));
        let header = Header {
            train: number(4)?,
            sequence: number(8)?,
        };
        // What is of no train costs no proof.
        let is_of_train = proved.starts_with(&MAGIC) && header.train == train;
        (is_of_train && secret.proves([proved], tag)).then_some(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_header_is_read_as_it_was_written(train: u32, sequence: u32, behind: Vec<u8>) {
            let (header, secret) = (Header { train, sequence }, Secret::new(&[1; 32]));
            let datagram = [&header.sealed(&secret)[..], &behind].concat();
            prop_assert_eq!(Header::opened(&datagram, train, &secret), Some(header));
            prop_assert_eq!(Header::opened(&datagram, !train, &secret), None);
            prop_assert_eq!(Header::opened(&datagram, train, &Secret::new(&[2; 32])), None);
        }

        #[test]
        fn no_changed_bit_is_proved(train: u32, sequence: u32, bit in 0..8 * Header::BYTES) {
            let (header, secret) = (Header { train, sequence }, Secret::new(&[1; 32]));
            let mut datagram = header.sealed(&secret);
            datagram[bit / 8] ^= 1 << (bit % 8);
            for train in [train, u32::from_be_bytes([datagram[4], datagram[5], datagram[6], datagram[7]])] {
                prop_assert_eq!(Header::opened(&datagram, train, &secret), None);
            }
        }

        #[test]
        fn no_bytes_are_proved_by_chance(datagram: Vec<u8>, train: u32) {
            prop_assert_eq!(Header::opened(&datagram, train, &Secret::new(&[1; 32])), None);
        }
    }
}
