// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys of a connection's two directions, from the secret that its ends share.

use std::fmt;

use aws_lc_rs::aead::{AES_128_GCM, Algorithm, CHACHA20_POLY1305, LessSafeKey, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk};

/// Bytes of the nonce of both ciphers (RFC 5116, 5.1; RFC 8439, 2.8).
pub(crate) const IV_BYTES: usize = 12;

/// What seals datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cipher {
    /// Where the processor has instructions for AES.
    Aes128Gcm,
    /// Where it has none.
    ChaCha20Poly1305,
}

impl Cipher {
    fn algorithm(self) -> &'static Algorithm {
        match self {
            Cipher::Aes128Gcm => &AES_128_GCM,
            Cipher::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        }
    }

    /// Datagrams of `longest` bytes at most that one key may seal (RFC 9001, 6.6, and appendix B.1.1 for those of up to
    /// 2^11 bytes); ChaCha20-Poly1305 has no limit that a number of 62 bits could reach.
    pub(crate) fn most_sealed(self, longest: usize) -> u64 {
        match self {
            Cipher::Aes128Gcm if longest <= 1 << 11 => 1 << 28,
            Cipher::Aes128Gcm => 1 << 23,
            Cipher::ChaCha20Poly1305 => 1 << 62,
        }
    }

    /// Datagrams that may fail to verify under one key (RFC 9001, 6.6).
    pub(crate) fn most_forged(self) -> u64 {
        match self {
            Cipher::Aes128Gcm => 1 << 52,
            Cipher::ChaCha20Poly1305 => 1 << 36,
        }
    }
}

/// 32 random bytes that both ends of a transfer know, and nobody else. Each pair of `flow` and `connection` may be used
/// once with a secret: the second use would use its nonces again.
#[derive(Clone)]
pub struct Secret([u8; 32]);

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("Secret(..)")
    }
}

/// Which way datagrams go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// With the data.
    Data,
    /// With the acknowledgements.
    Acks,
}

/// A key and its IV.
pub(crate) struct Key {
    pub(crate) aead: LessSafeKey,
    pub(crate) iv: [u8; IV_BYTES],
}

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

impl Secret {
    /// From bytes that a cryptographic generator made.
    pub fn new(bytes: [u8; 32]) -> Secret {
        Secret(bytes)
    }

    /// HKDF-SHA-256 (RFC 5869), expanded by what the key is for.
    pub(crate) fn key(
        &self,
        cipher: Cipher,
        flow: u16,
        connection: u32,
        direction: Direction,
    ) -> Key {
        let algorithm = cipher.algorithm();
        let of = |what: &[u8], bytes: &mut [u8]| {
            let way: &[u8] = match direction {
                Direction::Data => b"data",
                Direction::Acks => b"acks",
            };
            let (flow, connection) = (flow.to_be_bytes(), connection.to_be_bytes());
            let info = [b"fatpath transport 1 ", what, way, &flow, &connection];
            let prk = Prk::new_less_safe(HKDF_SHA256, &self.0);
            let expanded = prk.expand(&info, Length(bytes.len()));
            let filled = expanded.and_then(|output| output.fill(bytes));
            filled.expect("HKDF gives up to 255 hashes, and these are shorter than one");
        };
        let (mut key, mut iv) = ([0; 32], [0; IV_BYTES]);
        let key = &mut key[..algorithm.key_len()];
        of(b"key ", key);
        of(b"iv ", &mut iv);
        let unbound = UnboundKey::new(algorithm, key).expect("the key has the cipher's length");
        let aead = LessSafeKey::new(unbound);
        Key { aead, iv }
    }
}
