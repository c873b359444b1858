// SPDX-License-Identifier: MIT OR Apache-2.0
//! A key pair (Ed25519, RFC 8410), and the public half as one word of text.

use crate::files::{FileError, create_private, read_private};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::Ed25519KeyPair;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rustls::crypto::aws_lc_rs::sign::any_eddsa_type;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

/// What stands before the 32 bytes of an Ed25519 key in a SubjectPublicKeyInfo (RFC 8410, 4).
const SPKI_PREFIX: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];
const TEXT_PREFIX: &str = "ed25519:";
/// A line of PEM (RFC 7468, 2).
const PEM_LINE: usize = 64;

/// The half of a key that everybody may know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// Of the form in which TLS carries it; `None`: it is no Ed25519 key.
    pub(crate) fn of_spki(spki: &[u8]) -> Option<PublicKey> {
        let key = spki.strip_prefix(&SPKI_PREFIX)?;
        Some(PublicKey(key.try_into().ok()?))
    }
}

/// `ed25519:` and the 32 bytes in base64.
impl fmt::Display for PublicKey {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{TEXT_PREFIX}{}", BASE64_STANDARD.encode(self.0))
    }
}

/// A text is no public key.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is no public key: give one as `fatpath keys show` prints it, such as ed25519:AAAA…")]
pub struct NoKey;

impl FromStr for PublicKey {
    type Err = NoKey;

    fn from_str(text: &str) -> Result<PublicKey, NoKey> {
        let encoded = text.strip_prefix(TEXT_PREFIX).ok_or(NoKey)?;
        let bytes = BASE64_STANDARD.decode(encoded).map_err(|_| NoKey)?;
        Ok(PublicKey(bytes.try_into().map_err(|_| NoKey)?))
    }
}

/// The key of this host, or of this user of it.
#[derive(Clone)]
pub struct Key {
    certified: Arc<CertifiedKey>,
    public: PublicKey,
}

impl Key {
    /// Makes one, and writes it into a new file that its owner alone may read.
    ///
    /// # Errors
    /// The file is there, or cannot be written.
    pub fn make(path: &Path) -> Result<Key, FileError> {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new())
            .map_err(|_| FileError::NoRandom)?;
        create_private(path, &pem(document.as_ref()))?;
        Key::of_der(path, PrivatePkcs8KeyDer::from(document.as_ref().to_vec()))
    }

    /// Reads one: PKCS #8 in PEM.
    ///
    /// # Errors
    /// The file cannot be read, others may read it, or it has no Ed25519 key.
    pub fn read(path: &Path) -> Result<Key, FileError> {
        let text = read_private(path)?;
        let der = PrivatePkcs8KeyDer::from_pem_slice(text.as_bytes());
        let der = der.map_err(|_| FileError::NoPrivateKey(path.to_owned()))?;
        Key::of_der(path, der)
    }

    /// The half that others are told.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    pub(crate) fn certified(&self) -> Arc<CertifiedKey> {
        self.certified.clone()
    }

    fn of_der(path: &Path, der: PrivatePkcs8KeyDer<'_>) -> Result<Key, FileError> {
        let none = || FileError::NoPrivateKey(path.to_owned());
        let signing = any_eddsa_type(&der).map_err(|_| none())?;
        let spki = signing.public_key().ok_or_else(none)?;
        let public = PublicKey::of_spki(spki.as_ref()).ok_or_else(none)?;
        let spki = CertificateDer::from(spki.as_ref().to_vec());
        Ok(Key {
            certified: Arc::new(CertifiedKey::new(vec![spki], signing)),
            public,
        })
    }
}

fn pem(der: &[u8]) -> String {
    let encoded = BASE64_STANDARD.encode(der);
    let mut text = "-----BEGIN PRIVATE KEY-----\n".to_owned();
    let mut rest = encoded.as_str();
    while !rest.is_empty() {
        let (line, left) = rest.split_at(rest.len().min(PEM_LINE));
        text.push_str(line);
        text.push('\n');
        rest = left;
    }
    text + "-----END PRIVATE KEY-----\n"
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_is_read_as_it_was_made() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("not/yet/there/key");
        let made = Key::make(&path).unwrap();
        assert_eq!(Key::read(&path).unwrap().public(), made.public());
        let text = made.public().to_string();
        assert_eq!(text.parse(), Ok(made.public()), "{text}");
        let again = Key::make(&path).err().unwrap().to_string();
        assert!(again.contains("is there already"), "{again}");
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let open = Key::read(&path).err().unwrap().to_string();
        assert!(open.contains("chmod 600"), "{open}");
    }

    /// With the public half in it (RFC 5958), and without it, as `openssl genpkey -algorithm ed25519` writes it.
    #[test]
    fn keys_of_other_programs_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let keys = [
            (
                "MFECAQEwBQYDK2VwBCIEICeLUKK8Tnacj6yx7NchjAEFrkZKZ2+OkK5pL4hUOQXu\n\
                 gSEAi8MwnddfsdjA1skS9Qo7PVroU6UJiwlZHE/NUlK7co4=",
                "ed25519:i8MwnddfsdjA1skS9Qo7PVroU6UJiwlZHE/NUlK7co4=",
            ),
            (
                "MC4CAQAwBQYDK2VwBCIEIJpxl80gY6PLSmmYdGr5zgZgJ7MUZuAxqXJima+w/UXT",
                "ed25519:5SYVZZBFBvGgVrV3ctEJHCAxT1v/4FdOBdR0Fz8/+ck=",
            ),
        ];
        for (place, (private, public)) in keys.into_iter().enumerate() {
            let path = folder.path().join(place.to_string());
            let text =
                format!("-----BEGIN PRIVATE KEY-----\n{private}\n-----END PRIVATE KEY-----\n");
            create_private(&path, &text).unwrap();
            assert_eq!(Key::read(&path).unwrap().public().to_string(), public);
        }
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        create_private(
            &path,
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        )
        .unwrap();
        let error = Key::read(&path).err().unwrap().to_string();
        assert!(error.contains("no private key"), "{error}");
        let missing = Key::read(&folder.path().join("none"))
            .err()
            .unwrap()
            .to_string();
        assert!(missing.contains("fatpath keys new"), "{missing}");
        for text in [
            "",
            "ed25519:",
            "ed25519:AAAA",
            "rsa:AAAA",
            &format!("ed25519:{}", "A".repeat(43)),
        ] {
            assert_eq!(text.parse::<PublicKey>(), Err(NoKey), "{text}");
        }
    }
}
