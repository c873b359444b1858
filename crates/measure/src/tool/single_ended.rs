// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rate of the path to a host without fatpath, by packet trains that its kernel answers, by `fatpath measure single-ended`.

use super::echo::given;
use super::{seconds, words};
use serde::Serialize;

/// `tool = "single_ended"`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SingleEnded {
    /// Where segments of TCP are sent; none: echo requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp_port: Option<u16>,
    /// Length of a packet, IP header included.
    pub size_bytes: u64,
    /// No train is faster.
    pub most_rate_bps: u64,
}

impl SingleEnded {
    /// What the host answers: echo requests, or segments of TCP that belong to no connection.
    pub const METHODS: [&str; 2] = ["icmp", "tcp"];
    /// See [`SingleEnded::tcp_port`]: discard, which no host has.
    pub const PORT: u16 = 9;
    /// See [`SingleEnded::size_bytes`].
    pub const SIZE_BYTES: u64 = 1500;
    /// See [`SingleEnded::most_rate_bps`].
    pub const MOST_RATE_BPS: u64 = 10_000_000_000;

    pub(super) fn command(&self, to: &str, duration_us: u64) -> Vec<String> {
        let [icmp, tcp] = SingleEnded::METHODS;
        let method = self.tcp_port.map_or(icmp, |_| tcp);
        let mut words = words(&["fatpath", "measure", "single-ended", "--json"]);
        words.extend(given([
            ("--method", &Some(method.to_owned())),
            ("--port", &self.tcp_port.map(|port| port.to_string())),
            ("--size", &Some(self.size_bytes.to_string())),
            ("--most-rate", &Some(format!("{}bit", self.most_rate_bps))),
            ("--duration", &Some(format!("{}s", seconds(duration_us)))),
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
        let single_ended = SingleEnded {
            tcp_port: Some(9),
            size_bytes: 1400,
            most_rate_bps: 2_000_000_000,
        };
        assert_eq!(
            single_ended.command("h", 2_000_000).join(" "),
            "fatpath measure single-ended --json --method tcp --port 9 --size 1400 --most-rate 2000000000bit --duration 2s -- h"
        );
        let icmp = SingleEnded {
            tcp_port: None,
            ..single_ended
        };
        let command = icmp.command("h", 2_000_000).join(" ");
        assert!(command.contains("--method icmp --size 1400"), "{command}");
    }
}
