// SPDX-License-Identifier: MIT OR Apache-2.0
//! By what a server of iperf3 knows its client: a user and a password that hold for one test, and the key to which the
//! password is encrypted on its way (iperf3's own authentication).

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::KeyPair as _;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use fatpath_launch::HandedFile;
use fatpath_measure::pem;
use std::io;

const PRIVATE: &str = "PRIVATE KEY";

/// Of one test.
pub struct Credentials {
    pub user: String,
    pub password: String,
    /// Base64 of the public key's SubjectPublicKeyInfo.
    pub public_key: String,
    /// PEM.
    private_key: String,
}

/// What a server reads.
pub struct Files {
    pub private_key: HandedFile,
    pub users: HandedFile,
}

impl Credentials {
    /// New ones.
    ///
    /// # Errors
    /// The kernel gives no random bytes.
    pub fn new() -> io::Result<Credentials> {
        let failed = |_| io::Error::other("the kernel gives no random bytes");
        let key = KeyPair::generate(KeySize::Rsa2048).map_err(failed)?;
        let private: Pkcs8V1Der = key.as_der().map_err(failed)?;
        let public: PublicKeyX509Der = key.public_key().as_der().map_err(failed)?;
        Ok(Credentials {
            user: word()?,
            password: word()?,
            public_key: BASE64_STANDARD.encode(public.as_ref()),
            private_key: pem(PRIVATE, &BASE64_STANDARD.encode(private.as_ref())),
        })
    }

    /// What the server reads.
    ///
    /// # Errors
    /// The kernel's.
    pub fn files(&self) -> io::Result<Files> {
        Ok(Files {
            private_key: HandedFile::new(&self.private_key)?,
            users: HandedFile::new(&self.line())?,
        })
    }

    /// iperf3(1): the user, and SHA-256 of `{user}password`.
    fn line(&self) -> String {
        let Credentials { user, password, .. } = self;
        let hash = digest(&SHA256, format!("{{{user}}}{password}").as_bytes());
        format!("{user},{}\n", hex(hash.as_ref()))
    }
}

/// 128 random bits.
fn word() -> io::Result<String> {
    let mut bytes = [0; 16];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| io::Error::other("the kernel gives no random bytes"))?;
    Ok(hex(&bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_listed_as_iperf3_wants_it() {
        let credentials = Credentials {
            user: "mario".into(),
            password: "rossi".into(),
            public_key: String::new(),
            private_key: String::new(),
        };
        // The example of iperf3(1).
        let wanted = "mario,bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b\n";
        assert_eq!(credentials.line(), wanted);
    }

    #[test]
    fn each_test_has_its_own() {
        let [a, b] = [(), ()].map(|()| Credentials::new().unwrap());
        assert!(a.password != b.password && a.user != b.user && a.public_key != b.public_key);
        assert_eq!(a.password.len(), 32);
    }
}
