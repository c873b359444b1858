// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sealing and opening datagrams in place. A [`Sealer`] gives each a number of its own, and an [`Opener`] opens each number
//! once.

use std::fmt;

use aws_lc_rs::aead::{Aad, Nonce};

use super::keys::{Cipher, Direction, FlowSecret, IV_BYTES, Key, Names};
use super::packet::{HEADER_BYTES, Header, Kind, TAG_BYTES};
use super::replay::ReplayWindow;

/// A key has sealed as many datagrams as it may: the connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the key has sealed as many datagrams as it may; open another connection")]
pub struct KeyExhausted;

/// Why a datagram was not opened. Nothing has changed, but that forged ones are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is no datagram of this version, or cut off.
    #[error("no datagram of this transport")]
    Unknown,
    /// It belongs to another flow or connection.
    #[error("a datagram of another connection")]
    Foreign,
    /// A datagram of this number was opened before, or it is too old to tell.
    #[error("a datagram that was opened before")]
    Replayed,
    /// It was changed, or sealed by another key.
    #[error("a datagram that does not verify")]
    Forged,
    /// So many did not verify that the key is no longer safe: the connection ends.
    #[error("too many datagrams did not verify; open another connection")]
    KeyExhausted,
    /// The peer sealed what its side may not say: acknowledgements of what was never sent, data without end.
    #[error("the peer breaks the protocol")]
    Nonsense,
}

impl FlowSecret {
    /// The sending end's: what seals data, what opens acknowledgements.
    pub fn of_sender(self, cipher: Cipher) -> (Sealer, Opener) {
        (
            Sealer::new(&self, cipher, Direction::Data),
            Opener::new(&self, cipher, Direction::Acks),
        )
    }

    /// The receiving end's: what seals acknowledgements, what opens data.
    pub fn of_receiver(self, cipher: Cipher) -> (Sealer, Opener) {
        (
            Sealer::new(&self, cipher, Direction::Acks),
            Opener::new(&self, cipher, Direction::Data),
        )
    }
}

/// Seals the datagrams of one direction.
pub struct Sealer {
    key: Key,
    names: Names,
    next: u64,
    /// Bytes of the longest datagram that was sealed.
    longest: usize,
    /// A test's, lower than the cipher's.
    end: u64,
}

impl Sealer {
    fn new(secret: &FlowSecret, cipher: Cipher, direction: Direction) -> Sealer {
        Sealer {
            key: secret.key(cipher, direction),
            names: secret.names(cipher),
            next: 0,
            longest: 0,
            end: u64::MAX,
        }
    }

    /// The number of the next datagram.
    pub fn next_number(&self) -> u64 {
        self.next
    }

    /// Seals what `datagrams` holds from `begin` on, of which the first [`HEADER_BYTES`] are room for the header and the rest
    /// is the frame, and appends the tag. Gives its number.
    ///
    /// # Errors
    /// The key has reached its limit.
    ///
    /// # Panics
    /// If there is no room for the header.
    pub fn seal(
        &mut self,
        kind: Kind,
        datagrams: &mut Vec<u8>,
        begin: usize,
    ) -> Result<u64, KeyExhausted> {
        self.longest = self.longest.max(datagrams.len() - begin + TAG_BYTES);
        // The last number is for the close, which tells the other end.
        let kept = u64::from(kind != Kind::Close);
        let end = self.end.min(self.names.cipher.most_sealed(self.longest));
        if self.next + kept >= end {
            return Err(KeyExhausted);
        }
        let number = self.next;
        self.next += 1; // whatever follows, the nonce is spent
        let header = Header {
            kind,
            flow: self.names.flow,
            connection: self.names.connection,
            number,
        }
        .encode();
        let (clear, frame) = datagrams[begin..].split_at_mut(HEADER_BYTES);
        clear.copy_from_slice(&header);
        let nonce = nonce(&self.key.iv, number);
        let aead = &self.key.aead;
        let tag = aead.seal_in_place_separate_tag(nonce, Aad::from(header), frame);
        datagrams.extend_from_slice(
            tag.expect("a datagram is far below the AEAD's length")
                .as_ref(),
        );
        Ok(number)
    }

    #[cfg(test)]
    pub(crate) fn limit(&mut self, end: u64) {
        self.end = end;
    }
}

/// Opens the datagrams of one direction.
pub struct Opener {
    key: Key,
    names: Names,
    seen: ReplayWindow,
    forged: u64,
    most_forged: u64,
}

/// What was in a datagram.
#[derive(Debug, PartialEq, Eq)]
pub struct Opened<'d> {
    /// Its header.
    pub header: Header,
    /// Its frame, where it lay.
    pub frame: &'d mut [u8],
}

impl Opener {
    fn new(secret: &FlowSecret, cipher: Cipher, direction: Direction) -> Opener {
        Opener {
            key: secret.key(cipher, direction),
            names: secret.names(cipher),
            seen: ReplayWindow::new(),
            forged: 0,
            most_forged: cipher.most_forged(),
        }
    }

    /// Opens it in place.
    ///
    /// # Errors
    /// Why it is refused; of its content nothing is left then.
    pub fn open<'d>(&mut self, datagram: &'d mut [u8]) -> Result<Opened<'d>, Refused> {
        let header = Header::decode(datagram).ok_or(Refused::Unknown)?;
        if datagram.len() < HEADER_BYTES + TAG_BYTES {
            return Err(Refused::Unknown);
        }
        if (header.flow, header.connection) != (self.names.flow, self.names.connection) {
            return Err(Refused::Foreign);
        }
        if !self.seen.is_new(header.number) {
            return Err(Refused::Replayed);
        }
        if self.forged >= self.most_forged {
            return Err(Refused::KeyExhausted);
        }
        // A peer that keeps the limits never gets there.
        if header.number >= self.names.cipher.most_sealed(0) {
            return Err(Refused::Forged);
        }
        let (clear, sealed) = datagram.split_at_mut(HEADER_BYTES);
        let nonce = nonce(&self.key.iv, header.number);
        let opened = self.key.aead.open_in_place(nonce, Aad::from(clear), sealed);
        let frame = opened.map_err(|_| {
            self.forged += 1;
            Refused::Forged
        })?;
        self.seen.note(header.number);
        Ok(Opened { header, frame })
    }

    /// Datagrams that did not verify.
    pub fn forged(&self) -> u64 {
        self.forged
    }

    #[cfg(test)]
    pub(crate) fn limit(&mut self, most_forged: u64) {
        self.most_forged = most_forged;
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let mut shown = formatter.debug_struct("Sealer");
        shown
            .field("names", &self.names)
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

/// All but the key and the count of forgeries, so that two states compare by it.
impl fmt::Debug for Opener {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let mut shown = formatter.debug_struct("Opener");
        shown
            .field("names", &self.names)
            .field("seen", &self.seen)
            .finish_non_exhaustive()
    }
}

/// RFC 8446, 5.3: the number, to the left filled with zeros, XORed into the IV.
fn nonce(iv: &[u8; IV_BYTES], number: u64) -> Nonce {
    let mut bytes = *iv;
    let number = number.to_be_bytes();
    for (byte, of_number) in bytes[IV_BYTES - number.len()..].iter_mut().zip(number) {
        *byte ^= of_number;
    }
    Nonce::assume_unique_for_key(bytes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests {
    use super::super::keys::Secret;
    use super::*;
    use proptest::prelude::*;

    /// Flow `number` of a transfer.
    fn flow(transfer: u8, number: u16) -> FlowSecret {
        let mut secret = Secret::agree(&[transfer; 32], &[7; 32]);
        (0..number).for_each(|_| drop(secret.next_flow()));
        secret.next_flow().unwrap()
    }

    fn pair(cipher: Cipher) -> (Sealer, Opener) {
        (
            flow(1, 3).of_sender(cipher).0,
            flow(1, 3).of_receiver(cipher).1,
        )
    }

    fn sealed(sealer: &mut Sealer, frame: &[u8]) -> Vec<u8> {
        let mut datagram = [&[0; HEADER_BYTES], frame].concat();
        sealer.seal(Kind::Data, &mut datagram, 0).unwrap();
        datagram
    }

    fn ciphers() -> impl Strategy<Value = Cipher> {
        prop::sample::select(vec![Cipher::Aes128Gcm, Cipher::ChaCha20Poly1305])
    }

    proptest! {
        #[test]
        fn what_is_sealed_opens_once(cipher in ciphers(), frame in prop::collection::vec(any::<u8>(), 0..200)) {
            let (mut sealer, mut opener) = pair(cipher);
            sealed(&mut sealer, b"before");
            let datagram = sealed(&mut sealer, &frame);
            let opened = &mut datagram.clone();
            let opened = opener.open(opened).unwrap();
            prop_assert_eq!(&*opened.frame, &frame[..]);
            prop_assert_eq!((opened.header.kind, opened.header.number), (Kind::Data, 1));
            prop_assert_eq!(opener.open(&mut datagram.clone()).err(), Some(Refused::Replayed));
        }

        /// One bit anywhere, or a byte less, or other bytes.
        #[test]
        fn what_was_changed_does_not_open(
            cipher in ciphers(),
            frame in prop::collection::vec(any::<u8>(), 0..60),
            bit in any::<prop::sample::Index>(),
            end in any::<prop::sample::Index>(),
            other in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            let (mut sealer, mut opener) = pair(cipher);
            let datagram = sealed(&mut sealer, &frame);
            let before = format!("{opener:?}");
            let mut flipped = datagram.clone();
            let bit = bit.index(8 * datagram.len());
            flipped[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(opener.open(&mut flipped).is_err());
            prop_assert!(opener.open(&mut datagram[..end.index(datagram.len())].to_vec()).is_err());
            prop_assert!(opener.open(&mut other.clone()).is_err());
            prop_assert_eq!(format!("{:?}", opener), before);
            prop_assert!(opener.open(&mut datagram.clone()).is_ok());
        }
    }

    #[test]
    fn directions_transfers_and_flows_have_keys_of_their_own() {
        let cipher = Cipher::Aes128Gcm;
        let datagram = sealed(&mut flow(1, 3).of_sender(cipher).0, b"x");
        let refused = |mut opener: Opener| opener.open(&mut datagram.clone()).unwrap_err();
        assert_eq!(refused(flow(1, 3).of_sender(cipher).1), Refused::Forged);
        assert_eq!(refused(flow(1, 4).of_receiver(cipher).1), Refused::Foreign);
        assert_eq!(refused(flow(2, 3).of_receiver(cipher).1), Refused::Foreign);
        let ciphertexts = [(1, 3), (1, 4), (2, 3)].map(|(transfer, number)| {
            let (mut sealer, _) = flow(transfer, number).of_sender(cipher);
            sealed(&mut sealer, b"same text")[HEADER_BYTES..].to_vec()
        });
        assert!(ciphertexts[0] != ciphertexts[1] && ciphertexts[0] != ciphertexts[2]);
        assert!(ciphertexts[1] != ciphertexts[2]);
    }

    #[test]
    fn a_flow_is_given_once() {
        let mut secret = Secret::agree(&[1; 32], &[2; 32]);
        let mut flows = std::collections::BTreeSet::new();
        while let Some(flow) = secret.next_flow() {
            assert!(flows.insert(flow.flow));
        }
        assert_eq!(flows.len(), usize::from(u16::MAX));
    }

    /// RFC 9001, 6.6, with lower limits.
    #[test]
    fn a_key_ends_at_its_limits() {
        let (mut sealer, mut opener) = pair(Cipher::ChaCha20Poly1305);
        sealer.limit(3);
        opener.limit(3);
        sealed(&mut sealer, b"x");
        let datagram = sealed(&mut sealer, b"x");
        assert_eq!(
            sealer.seal(Kind::Data, &mut vec![0; 16], 0),
            Err(KeyExhausted)
        );
        assert_eq!(sealer.seal(Kind::Close, &mut vec![0; 16], 0), Ok(2));
        assert_eq!(
            sealer.seal(Kind::Close, &mut vec![0; 16], 0),
            Err(KeyExhausted)
        );
        let mut forged = datagram.clone();
        forged[20] ^= 1;
        let refusals = [0; 4].map(|_: u8| opener.open(&mut forged.clone()).unwrap_err());
        assert_eq!(refusals[..3], [Refused::Forged; 3]);
        assert_eq!(refusals[3], Refused::KeyExhausted);
        assert_eq!(
            opener.open(&mut datagram.clone()),
            Err(Refused::KeyExhausted)
        );
    }
}
