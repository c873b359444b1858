// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys of a connection's two directions, from the secret that its ends share.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::aead::{AES_128_GCM, Algorithm, CHACHA20_POLY1305, LessSafeKey, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};

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

/// What both ends of a transfer know, and nobody else; of 32 random bytes from each end, which makes it another for each
/// transfer as long as one of the ends draws them afresh. It gives the secrets of flows, each once.
pub struct Secret {
    prk: Arc<Prk>,
    next_flow: u16,
}

/// The secret of one flow. Neither it nor [`Secret`] can be copied, and making an end of a connection consumes it, so
/// that no two connections use a nonce under the same key.
pub struct FlowSecret {
    prk: Arc<Prk>,
    pub(crate) flow: u16,
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("Secret(..)")
    }
}

impl fmt::Debug for FlowSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("FlowSecret(..)")
    }
}

/// Which connection, and how it is sealed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names {
    pub(crate) cipher: Cipher,
    pub(crate) flow: u16,
    pub(crate) connection: u32,
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
    /// From bytes that a cryptographic generator made for this transfer alone, those of the end that called the other
    /// first.
    pub fn agree(callers: &[u8; 32], called: &[u8; 32]) -> Secret {
        let random = [*callers, *called].concat();
        let salt = Salt::new(HKDF_SHA256, b"fatpath transfer 1");
        Secret {
            prk: Arc::new(salt.extract(&random)),
            next_flow: 0,
        }
    }

    /// Of the next flow, from 0; both ends ask in the same order. `None`: all 65535 are used up.
    pub fn next_flow(&mut self) -> Option<FlowSecret> {
        let flow = self.next_flow;
        self.next_flow = flow.checked_add(1)?;
        Some(FlowSecret {
            prk: self.prk.clone(),
            flow,
        })
    }
}

impl FlowSecret {
    pub(crate) fn names(&self, cipher: Cipher) -> Names {
        let mut connection = [0; 4];
        self.expand(&[b"connection"], &mut connection);
        Names {
            cipher,
            flow: self.flow,
            connection: u32::from_be_bytes(connection),
        }
    }

    /// HKDF-SHA-256 (RFC 5869), expanded by what the key is for.
    pub(crate) fn key(&self, cipher: Cipher, direction: Direction) -> Key {
        let algorithm = cipher.algorithm();
        let way: &[u8] = match direction {
            Direction::Data => b"data",
            Direction::Acks => b"acks",
        };
        let (mut key, mut iv) = ([0; 32], [0; IV_BYTES]);
        let key = &mut key[..algorithm.key_len()];
        self.expand(&[b"key ", way], key);
        self.expand(&[b"iv ", way], &mut iv);
        let unbound = UnboundKey::new(algorithm, key).expect("the key has the cipher's length");
        let aead = LessSafeKey::new(unbound);
        Key { aead, iv }
    }

    fn expand(&self, what: &[&[u8]], bytes: &mut [u8]) {
        let flow = self.flow.to_be_bytes();
        let info = [&[b"fatpath transport 1 ", &flow[..]], what].concat();
        let expanded = self.prk.expand(&info, Length(bytes.len()));
        let filled = expanded.and_then(|output| output.fill(bytes));
        filled.expect("HKDF gives up to 255 hashes, and these are shorter than one");
    }
}
