// SPDX-License-Identifier: MIT OR Apache-2.0
//! A server of iperf3 that a responder starts for one test: what is asked for, and what whoever asked has to know of it.

use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// How long a test lasts, in µs.
pub const DURATIONS_US: RangeInclusive<u64> = 1_000_000..=3_600_000_000;
pub(crate) const RATES_BPS: RangeInclusive<u64> = 1_000..=1_000_000_000_000;
/// iperf3 takes an average over some seconds for the rate of a test, and ends one that is faster than it was told.
const MARGIN: (u64, u64) = (5, 4);

/// A server that is to be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// How long data are sent.
    pub duration_us: u64,
    /// All streams of the test together are no faster; none: as fast as the peer's limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// How long the responder may wait until no other test loads its path.
    #[serde(default)]
    pub patience_us: u64,
}

/// What a client of the server needs. Nobody else hears it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Served {
    /// Of TCP, and of UDP.
    pub port: u16,
    /// All streams of the test together are no faster.
    pub rate_bps: u64,
    /// Who may connect.
    pub user: String,
    /// By which the server knows it.
    pub password: String,
    /// RSA, as base64 of its SubjectPublicKeyInfo: what the password is encrypted to.
    pub public_key: String,
}

impl Server {
    /// The rate of a test by a peer whose limit is `most_bps`.
    pub fn rate_bps(&self, most_bps: u64) -> u64 {
        self.rate_bps.unwrap_or(most_bps)
    }

    /// What the test may bring or send at most, at that rate.
    pub fn bytes(&self, rate_bps: u64) -> u64 {
        let bits = u128::from(tolerated_bps(rate_bps)) * u128::from(self.duration_us) / 1_000_000;
        u64::try_from(bits / 8).unwrap_or(u64::MAX)
    }
}

/// The rate beyond which the server ends the test.
pub fn tolerated_bps(rate_bps: u64) -> u64 {
    let (more, of) = MARGIN;
    rate_bps / of * more
}

/// A key in the form in which iperf3 reads one (RFC 7468): `base64` under its label.
pub fn pem(label: &str, base64: &str) -> String {
    let lines = base64.as_bytes().chunks(64);
    let lines = lines.map(|line| format!("{}\n", String::from_utf8_lossy(line)));
    let body: String = lines.collect();
    format!("-----BEGIN {label}-----\n{body}-----END {label}-----\n")
}

impl Served {
    /// Whether this can be given to a client: the words become arguments of a program.
    pub fn is_sound(&self) -> bool {
        let is_word = |text: &str, most: usize| {
            (1..=most).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric())
        };
        let is_base64 = |b: u8| b.is_ascii_alphanumeric() || b"+/=".contains(&b);
        self.port > 0
            && RATES_BPS.contains(&self.rate_bps)
            && is_word(&self.user, 64)
            && is_word(&self.password, 64)
            && (1..=1024).contains(&self.public_key.len())
            && self.public_key.bytes().all(is_base64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_test_may_bring_is_kept_with_its_margin() {
        let server = Server {
            duration_us: 10_000_000,
            rate_bps: None,
            patience_us: 0,
        };
        assert_eq!(server.rate_bps(8_000_000), 8_000_000);
        assert_eq!(server.bytes(8_000_000), 12_500_000);
        let own = Server {
            rate_bps: Some(4_000_000),
            ..server
        };
        assert_eq!(own.rate_bps(8_000_000), 4_000_000);
        let longest = Server {
            duration_us: *DURATIONS_US.end(),
            ..server
        };
        assert!(longest.bytes(*RATES_BPS.end()) > 1 << 40, "no overflow");
    }

    #[test]
    fn what_is_no_word_is_given_to_no_program() {
        let sound = Served {
            port: 5201,
            rate_bps: 1_000_000,
            user: "a1".into(),
            password: "b2".into(),
            public_key: "MIIB+/==".into(),
        };
        assert!(sound.is_sound());
        let spoilt: [fn(&mut Served); 6] = [
            |it| it.port = 0,
            |it| it.rate_bps = 1,
            |it| it.user = "--help".into(),
            |it| it.password = String::new(),
            |it| it.password = "x".repeat(65),
            |it| it.public_key = "a\nb".into(),
        ];
        for spoil in spoilt {
            let mut served = sound.clone();
            spoil(&mut served);
            assert!(!served.is_sound(), "{served:?}");
        }
    }
}
