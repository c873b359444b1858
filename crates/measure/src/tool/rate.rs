// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rate of a path's bottleneck by packet trains between two hosts of fatpath, by `fatpath measure rate`.

use super::echo::given;
use super::{seconds, words};
use serde::Serialize;
use std::ops::RangeInclusive;

/// `tool = "rate"`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rate {
    /// Of the responder.
    pub port: u16,
    /// Length of a packet, IP and UDP headers included.
    pub size_bytes: u64,
    /// No train is faster; none: as [`fatpath_train::Limits`] says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_rate_bps: Option<u64>,
    /// How long the responder may wait until no other test loads its path.
    pub patience_us: u64,
    /// File of this host's key; none: the configuration's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// File of the keys that it trusts; none: the configuration's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<String>,
}

impl Rate {
    /// See [`Rate::size_bytes`].
    pub const SIZE_BYTES: u64 = 1500;
    /// How long a test lasts, in µs.
    pub const DURATIONS_US: RangeInclusive<u64> = 1_000_000..=3_600_000_000;
    /// See [`Rate::most_rate_bps`].
    pub const MOST_RATES_BPS: RangeInclusive<u64> = 1_000_000..=100_000_000_000;

    pub(super) fn command(&self, to: &str, duration_us: u64) -> Vec<String> {
        let (port, size) = (self.port.to_string(), self.size_bytes.to_string());
        let duration = format!("{}s", seconds(duration_us));
        let mut words = words(&[
            "fatpath", "measure", "rate", "--json", "--port", &port, "--size", &size,
        ]);
        words.extend(["--duration".to_owned(), duration]);
        words.extend([
            "--patience".to_owned(),
            format!("{}s", seconds(self.patience_us)),
        ]);
        let most_rate = self.most_rate_bps.map(|bps| format!("{bps}bit"));
        words.extend(given([
            ("--most-rate", &most_rate),
            ("--key", &self.key),
            ("--trust", &self.trust),
        ]));
        words.extend(["--".to_owned(), to.to_owned()]);
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_this_program_that_is_run() {
        let rate = Rate {
            port: 9,
            size_bytes: 1400,
            most_rate_bps: Some(2_000_000_000),
            patience_us: 60_000_000,
            key: Some("/k".into()),
            trust: None,
        };
        assert_eq!(
            rate.command("h", 2_000_000).join(" "),
            "fatpath measure rate --json --port 9 --size 1400 --duration 2s --patience 60s --most-rate 2000000000bit --key /k -- h"
        );
    }
}
