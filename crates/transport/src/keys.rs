// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys of a connection's two directions, from the secret that its ends share.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::aead::{AES_128_GCM, Algorithm, CHACHA20_POLY1305, LessSafeKey, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};

/// Bytes of the nonce of both ciphers (RFC 5116, 5.1; RFC 8439, 2.8).
pub(crate) const IV_BYTES: usize = 12;
/// Bytes of a direction's secret: those of SHA-256 (RFC 5869, 2.3).
const SECRET_BYTES: usize = 32;

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

    /// Datagrams that may fail to verify in a connection, whatever the key (RFC 9001, 6.6).
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
    /// How many keys of its direction came before it, of which datagrams carry the last 8 bits.
    pub(crate) phase: u8,
}

/// The keys of one direction, one after the other (RFC 9001, 6). Each secret gives a key and the next secret, and is
/// forgotten: whoever learns a secret knows no earlier key.
pub(crate) struct Keys {
    cipher: Cipher,
    secret: Prk,
    phase: u8,
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

    /// The keys of a direction, from its first.
    pub(crate) fn keys(&self, cipher: Cipher, direction: Direction) -> Keys {
        let way: &[u8] = match direction {
            Direction::Data => b"data",
            Direction::Acks => b"acks",
        };
        let mut secret = [0; SECRET_BYTES];
        self.expand(&[b"secret ", way], &mut secret);
        Keys {
            cipher,
            secret: Prk::new_less_safe(HKDF_SHA256, &secret),
            phase: 0,
        }
    }

    /// By the flow, and what it is for.
    fn expand(&self, what: &[&[u8]], bytes: &mut [u8]) {
        let flow = self.flow.to_be_bytes();
        expand(
            &self.prk,
            &[&[b"fatpath transport 2 ", &flow[..]], what].concat(),
            bytes,
        );
    }
}

impl Keys {
    /// The key of the next phase.
    pub(crate) fn next_key(&mut self) -> Key {
        let algorithm = self.cipher.algorithm();
        let (mut key, mut iv, mut secret) = ([0; 32], [0; IV_BYTES], [0; SECRET_BYTES]);
        let key = &mut key[..algorithm.key_len()];
        expand(&self.secret, &[b"key"], key);
        expand(&self.secret, &[b"iv"], &mut iv);
        expand(&self.secret, &[b"next"], &mut secret);
        self.secret = Prk::new_less_safe(HKDF_SHA256, &secret);
        let unbound = UnboundKey::new(algorithm, key).expect("the key has the cipher's length");
        let phase = self.phase;
        self.phase = phase.wrapping_add(1);
        Key {
            aead: LessSafeKey::new(unbound),
            iv,
            phase,
        }
    }
}

/// HKDF-Expand with SHA-256 (RFC 5869, 2.3).
fn expand(prk: &Prk, info: &[&[u8]], bytes: &mut [u8]) {
    let expanded = prk.expand(info, Length(bytes.len()));
    let filled = expanded.and_then(|output| output.fill(bytes));
    filled.expect("HKDF gives up to 255 hashes, and these are no longer than one");
}
