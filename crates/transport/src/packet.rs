// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clear header of a datagram, 16 bytes in network order, and what follows it:
//!
//! ```text
//! kind u8 | phase u8 | flow u16 | connection u32 | number u64 | sealed frame | tag, 16 bytes
//! ```
//!
//! The header is the AEAD's associated data, and its number the nonce, XORed into the key's IV (RFC 5116, 3.2).

/// Bytes of the header.
pub const HEADER_BYTES: usize = 16;
/// Bytes of the AEAD's tag (RFC 5116, 5.1; RFC 8439, 2.8).
pub const TAG_BYTES: usize = 16;

/// What a datagram carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Runs of data.
    Data,
    /// Nothing; it asks for an acknowledgement.
    Probe,
    /// An acknowledgement.
    Ack,
    /// The end of the connection.
    Close,
    /// Nothing; the receiving end says where it is.
    Hello,
    /// Nothing, at a length of which it is asked whether it arrives.
    Size,
    /// Which of those arrived.
    Sized,
}

impl Kind {
    const ALL: [Kind; 7] = [
        Kind::Data,
        Kind::Probe,
        Kind::Ack,
        Kind::Close,
        Kind::Hello,
        Kind::Size,
        Kind::Sized,
    ];

    fn code(self) -> u8 {
        match self {
            Kind::Data => 1,
            Kind::Probe => 2,
            Kind::Ack => 3,
            Kind::Close => 4,
            Kind::Hello => 5,
            Kind::Size => 6,
            Kind::Sized => 7,
        }
    }
}

/// The clear header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What follows.
    pub kind: Kind,
    /// Which key of its direction, the last 8 bits of its number.
    pub phase: u8,
    /// Which of a transfer's flows.
    pub flow: u16,
    /// Which connection.
    pub connection: u32,
    /// Of the datagram, in its direction; from 0, and never used again.
    pub number: u64,
}

impl Header {
    /// Its bytes.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..2].copy_from_slice(&[self.kind.code(), self.phase]);
        bytes[2..4].copy_from_slice(&self.flow.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.connection.to_be_bytes());
        bytes[8..].copy_from_slice(&self.number.to_be_bytes());
        bytes
    }

    /// The header that a datagram begins with; `None`: it is too short, or none of this version.
    pub fn decode(datagram: &[u8]) -> Option<Header> {
        let bytes: &[u8; HEADER_BYTES] = datagram.first_chunk()?;
        let kind = Kind::ALL.into_iter().find(|kind| kind.code() == bytes[0])?;
        Some(Header {
            kind,
            phase: bytes[1],
            flow: u16::from_be_bytes([bytes[2], bytes[3]]),
            connection: u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
            number: u64::from_be_bytes(*bytes.last_chunk()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// What is read is what was written, and every other byte string is refused or written the same again.
        #[test]
        fn bytes_and_headers_are_one_to_one(bytes in prop::collection::vec(any::<u8>(), 0..24), kind in 0u8..9) {
            let mut bytes = bytes;
            bytes.iter_mut().take(1).for_each(|first| *first = kind);
            if let Some(header) = Header::decode(&bytes) {
                prop_assert_eq!(&header.encode()[..], &bytes[..HEADER_BYTES]);
            } else {
                prop_assert!(bytes.len() < HEADER_BYTES || !(1..=7).contains(&kind));
            }
        }
    }
}
