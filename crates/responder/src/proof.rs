// SPDX-License-Identifier: MIT OR Apache-2.0
//! Proves that a datagram is of a test: HMAC-SHA256 of all that is not the proof, cut to half of its length (RFC 2104, 5).

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;
use fatpath_measure::echo::{Datagram, HEADER_BYTES};

/// By the secret of one connection.
pub struct Proof(hmac::Key);

impl Proof {
    /// Of a secret that only both ends have.
    pub fn new(secret: &[u8; 32]) -> Proof {
        Proof(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// Writes a header to the front of `bytes`, and the proof of all of them.
    pub fn seal(&self, datagram: &Datagram, bytes: &mut [u8]) {
        datagram.encode(bytes);
        let tag = self.tag(bytes);
        let room = &mut bytes[Datagram::TAG];
        room.copy_from_slice(&tag.as_ref()[..room.len()]);
    }

    /// Reads a datagram that is proved; `None`: it is not.
    pub fn open(&self, bytes: &[u8]) -> Option<Datagram> {
        let datagram = Datagram::decode(bytes)?;
        let tag = self.tag(bytes);
        let proof = &bytes[Datagram::TAG];
        let is_equal = verify_slices_are_equal(&tag.as_ref()[..proof.len()], proof);
        is_equal.is_ok().then_some(datagram)
    }

    fn tag(&self, bytes: &[u8]) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(&bytes[..Datagram::TAG.start]);
        context.update(&bytes[HEADER_BYTES..]);
        context.sign()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fatpath_measure::echo::Way;

    #[test]
    fn a_changed_byte_or_another_secret_is_no_proof() {
        let datagram = Datagram {
            way: Way::There,
            sequence: 7,
            nonce: 8,
            received_ns: 0,
            answered_ns: 0,
        };
        let proof = Proof::new(&[1; 32]);
        let mut bytes = [0; 64];
        proof.seal(&datagram, &mut bytes);
        assert_eq!(proof.open(&bytes), Some(datagram));
        assert_eq!(Proof::new(&[2; 32]).open(&bytes), None);
        assert_eq!(proof.open(&bytes[..63]), None);
        for place in 0..bytes.len() {
            let mut changed = bytes;
            changed[place] ^= 1;
            assert_eq!(proof.open(&changed), None, "{place}");
        }
    }
}
