// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sealing and opening datagrams in place. A [`Sealer`] gives each a number of its own, and an [`Opener`] opens each number
//! once.
//!
//! Keys are renewed before the cipher's limit, by phases that datagrams name. The end that has the data begins a phase, and
//! not before the other end has answered in the one that goes on; the other end follows. So neither is ever more than one
//! phase behind, whatever is lost. An [`Opener`] has the key of the next phase ready, and that of the one before for
//! datagrams that come late: a datagram costs one attempt to open it, whatever phase it names.

use std::fmt;

use aws_lc_rs::aead::{Aad, Nonce};

use super::keys::{Cipher, Direction, FlowSecret, IV_BYTES, Key, Keys, Names};
use super::packet::{HEADER_BYTES, Header, Kind, TAG_BYTES};
use super::queue::MOST;
use super::replay::ReplayWindow;

/// A key has sealed as many datagrams as it may, and the other end did not answer so that it could be renewed: the
/// connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the key has sealed as many datagrams as it may, and was not renewed; open another connection"
)]
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
    /// It was changed, or sealed by another key, of another phase perhaps.
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
    keys: Keys,
    key: Key,
    names: Names,
    direction: Direction,
    next: u64,
    /// Datagrams that `key` has sealed.
    sealed: u64,
    /// Bytes of the longest of them.
    longest: usize,
    /// What the other end has sealed by.
    peers_phase: u8,
    /// A test's limits, lower than the cipher's.
    lowered: Limits,
}

/// Datagrams by one key.
#[derive(Clone, Copy)]
struct Limits {
    /// From which on it is to be renewed.
    renewal: u64,
    /// That it seals at most.
    end: u64,
}

impl Sealer {
    fn new(secret: &FlowSecret, cipher: Cipher, direction: Direction) -> Sealer {
        let mut keys = secret.keys(cipher, direction);
        let key = keys.next_key();
        Sealer {
            keys,
            names: secret.names(cipher),
            direction,
            next: 0,
            sealed: 0,
            longest: 0,
            peers_phase: key.phase,
            key,
            lowered: Limits {
                renewal: u64::MAX,
                end: u64::MAX,
            },
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
        self.renew_if_due(datagrams.len() - begin + TAG_BYTES);
        // The last number is for the close, which tells the other end.
        let kept = u64::from(kind != Kind::Close);
        if self.sealed + kept >= self.limits().end || self.next >= MOST {
            return Err(KeyExhausted);
        }
        let number = self.next;
        (self.next, self.sealed) = (number + 1, self.sealed + 1); // whatever follows, the nonce is spent
        let header = Header {
            kind,
            phase: self.key.phase,
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

    /// The other end has sealed by its key of this phase ([`Opener::phase`]).
    pub fn heard(&mut self, phase: u8) {
        self.peers_phase = phase;
    }

    /// The phase of the key that sealed last.
    pub fn phase(&self) -> u8 {
        self.key.phase
    }

    /// Before a datagram of this length.
    fn renew_if_due(&mut self, bytes: usize) {
        self.longest = self.longest.max(bytes);
        let is_answered = self.peers_phase == self.key.phase;
        let is_due = match self.direction {
            Direction::Data => is_answered && self.sealed >= self.limits().renewal,
            Direction::Acks => !is_answered,
        };
        if is_due {
            self.key = self.keys.next_key();
            (self.sealed, self.longest) = (0, bytes);
        }
    }

    /// Half of what it may seal is left for as long as the other end takes to answer.
    fn limits(&self) -> Limits {
        let end = self.names.cipher.most_sealed(self.longest);
        Limits {
            renewal: self.lowered.renewal.min(end / 2),
            end: self.lowered.end.min(end),
        }
    }

    #[cfg(test)]
    pub(crate) fn limit(&mut self, renewal: u64, end: u64) {
        self.lowered = Limits { renewal, end };
    }
}

/// Opens the datagrams of one direction.
pub struct Opener {
    keys: Keys,
    /// The key before `key`, while datagrams that it sealed may be opened.
    previous: Option<Key>,
    key: Key,
    /// The number that `key` opened first.
    since: u64,
    next: Key,
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
        let mut keys = secret.keys(cipher, direction);
        let (key, next) = (keys.next_key(), keys.next_key());
        Opener {
            keys,
            previous: None,
            key,
            since: 0,
            next,
            names: secret.names(cipher),
            seen: ReplayWindow::new(),
            forged: 0,
            most_forged: cipher.most_forged(),
        }
    }

    /// It is of this flow and connection, by what it says.
    pub(crate) fn is_named_by(&self, header: &Header) -> bool {
        (header.flow, header.connection) == (self.names.flow, self.names.connection)
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
        if !self.is_named_by(&header) {
            return Err(Refused::Foreign);
        }
        if !self.seen.is_new(header.number) {
            return Err(Refused::Replayed);
        }
        if self.forged >= self.most_forged {
            return Err(Refused::KeyExhausted);
        }
        // A peer that keeps the limits never gets there.
        if header.number >= MOST {
            return Err(Refused::Forged);
        }
        let key = self.key_of(header.phase).ok_or(Refused::Forged)?;
        let (clear, sealed) = datagram.split_at_mut(HEADER_BYTES);
        let nonce = nonce(&key.iv, header.number);
        let opened = key.aead.open_in_place(nonce, Aad::from(clear), sealed);
        let frame = opened.map_err(|_| {
            self.forged += 1;
            Refused::Forged
        })?;
        self.seen.note(header.number);
        if header.phase == self.next.phase {
            self.move_on(header.number);
        }
        if self.seen.is_too_old(self.since) {
            self.previous = None;
        }
        Ok(Opened { header, frame })
    }

    fn key_of(&self, phase: u8) -> Option<&Key> {
        let keys = [Some(&self.key), Some(&self.next), self.previous.as_ref()];
        keys.into_iter().flatten().find(|key| key.phase == phase)
    }

    /// The datagram of this number was the first of the next phase.
    fn move_on(&mut self, number: u64) {
        let key = std::mem::replace(&mut self.next, self.keys.next_key());
        self.previous = Some(std::mem::replace(&mut self.key, key));
        self.since = number;
    }

    /// The newest phase that a datagram was sealed in.
    pub fn phase(&self) -> u8 {
        self.key.phase
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
            .field("phase", &self.key.phase)
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
            .field("phase", &self.key.phase)
            .field("has_previous", &self.previous.is_some())
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

    /// RFC 9001, 6.6, with lower limits: nobody answers, so no key is renewed.
    #[test]
    fn a_key_ends_at_its_limits() {
        let (mut sealer, mut opener) = pair(Cipher::ChaCha20Poly1305);
        sealer.limit(u64::MAX, 3);
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

    /// The cipher's own limits, by which keys are renewed at half.
    #[test]
    fn keys_are_renewed_at_half_of_what_they_may_seal() {
        let renewal = |cipher, bytes| {
            let (mut sealer, _) = pair(cipher);
            sealer.renew_if_due(bytes);
            sealer.limits().renewal
        };
        assert_eq!(renewal(Cipher::Aes128Gcm, 2048), 1 << 27);
        assert_eq!(renewal(Cipher::Aes128Gcm, 2049), 1 << 22);
        assert_eq!(renewal(Cipher::ChaCha20Poly1305, 9000), 1 << 61);
    }

    /// The bytes of datagrams, once each as they were sealed, with the phase of each.
    fn phases(sealer: &mut Sealer, count: usize) -> Vec<(u8, Vec<u8>)> {
        let datagrams = (0..count).map(|_| sealed(sealer, b"x"));
        datagrams.map(|datagram| (datagram[1], datagram)).collect()
    }

    #[test]
    fn a_phase_begins_when_the_last_one_was_answered() {
        let (mut sealer, mut opener) = pair(Cipher::Aes128Gcm);
        sealer.limit(3, 10);
        let of = |sent: &[(u8, Vec<u8>)]| sent.iter().map(|(phase, _)| *phase).collect::<Vec<_>>();
        let first = phases(&mut sealer, 6);
        assert_eq!(of(&first), [0, 0, 0, 1, 1, 1]);
        sealed(&mut sealer, b"still the second");
        assert_eq!(opener.open(&mut first[4].1.clone()).map(|_| ()), Ok(()));
        sealer.heard(opener.phase());
        let second = phases(&mut sealer, 2);
        assert_eq!(of(&second), [2, 2]);
        // The first three come late, and the next phase with them.
        for datagram in [&first[1], &first[5], &second[1], &second[0], &first[3]] {
            assert_eq!(opener.open(&mut datagram.1.clone()).map(|_| ()), Ok(()));
        }
        let two_before = opener.open(&mut first[2].1.clone()).unwrap_err();
        assert_eq!((two_before, opener.forged()), (Refused::Forged, 0));
    }

    /// The other end's follows, and says nothing in a phase that it was not shown.
    #[test]
    fn the_end_without_data_follows() {
        let (mut sealer, _) = flow(1, 3).of_receiver(Cipher::Aes128Gcm);
        sealer.limit(3, 100);
        assert!(phases(&mut sealer, 20).iter().all(|(phase, _)| *phase == 0));
        sealer.heard(1);
        assert!(phases(&mut sealer, 20).iter().all(|(phase, _)| *phase == 1));
    }

    /// RFC 9001, 6.5: for a bounded time.
    #[test]
    fn a_key_is_forgotten_when_nothing_new_can_be_sealed_by_it() {
        let (mut sealer, mut opener) = pair(Cipher::Aes128Gcm);
        sealer.limit(3, u64::MAX);
        let first = phases(&mut sealer, 6);
        assert_eq!(opener.open(&mut first[3].1.clone()).map(|_| ()), Ok(()));
        let mut count = 0;
        while opener.previous.is_some() {
            let next = sealed(&mut sealer, b"x");
            assert_eq!(opener.open(&mut next.clone()).map(|_| ()), Ok(()));
            count += 1;
        }
        assert!((4000..4200).contains(&count), "{count}");
        assert_eq!(opener.open(&mut first[2].1.clone()), Err(Refused::Replayed));
    }

    /// 8 bits of the phase are enough: all that is opened is of one of three.
    #[test]
    fn phases_go_on_beyond_what_a_header_holds() {
        let (mut sealer, mut opener) = pair(Cipher::Aes128Gcm);
        sealer.limit(1, 10);
        let mut seen = std::collections::BTreeSet::new();
        for number in 0..600_u64 {
            let datagram = sealed(&mut sealer, b"x");
            assert_eq!(datagram[1], number as u8);
            assert!(seen.insert(datagram[HEADER_BYTES..].to_vec()));
            assert_eq!(opener.open(&mut datagram.clone()).map(|_| ()), Ok(()));
            sealer.heard(opener.phase());
        }
    }

    /// A phase that others write into a header costs one attempt, and makes no key.
    #[test]
    fn a_phase_that_was_changed_changes_nothing() {
        let (mut sealer, mut opener) = pair(Cipher::Aes128Gcm);
        sealer.limit(3, u64::MAX);
        let sent = phases(&mut sealer, 6);
        for (_, datagram) in &sent {
            let before = format!("{opener:?}");
            for phase in (0..=u8::MAX).filter(|phase| *phase != datagram[1]) {
                let mut forged = datagram.clone();
                forged[1] = phase;
                assert_eq!(opener.open(&mut forged), Err(Refused::Forged));
            }
            assert_eq!(format!("{opener:?}"), before);
            assert_eq!(opener.open(&mut datagram.clone()).map(|_| ()), Ok(()));
        }
        // One attempt for each other phase that there is a key for: the next, and the one before where there is one.
        assert_eq!(opener.forged(), 3 + 1 + 2 * 2);
    }
}
