// SPDX-License-Identifier: MIT OR Apache-2.0
//! Proves that a datagram of an echo is of its test, by all of it that is not the proof.

use fatpath_measure::echo::{Datagram, HEADER_BYTES};
use fatpath_probe::Secret;

/// By the secret of one connection.
pub struct Proof(Secret);

impl Proof {
    /// Of a secret that only both ends have.
    pub fn new(secret: &[u8; 32]) -> Proof {
        Proof(Secret::new(secret))
    }

    /// Writes a header to the front of `bytes`, and the proof of all of them.
    pub fn seal(&self, datagram: &Datagram, bytes: &mut [u8]) {
        datagram.encode(bytes);
        let tag = self.0.tag(proved(bytes));
        bytes[Datagram::TAG].copy_from_slice(&tag);
    }

    /// Reads a datagram that is proved; `None`: it is not.
    pub fn open(&self, bytes: &[u8]) -> Option<Datagram> {
        let datagram = Datagram::decode(bytes)?;
        let is_proved = self.0.proves(proved(bytes), &bytes[Datagram::TAG]);
        is_proved.then_some(datagram)
    }
}

/// All but the proof.
fn proved(bytes: &[u8]) -> [&[u8]; 2] {
    [&bytes[..Datagram::TAG.start], &bytes[HEADER_BYTES..]]
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
