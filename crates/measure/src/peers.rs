// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whose tests this host answers, and within which limits.

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// `[responder]`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Responder {
    /// TCP, and UDP while a test runs.
    pub listen: SocketAddr,
    /// What tests of others load here, sorted; none: whatever tests of the same file load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Vec<String>>,
    /// This host's clock differs from the true time by no more; none: what the kernel says of it counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_error_us: Option<u64>,
    /// Where a server of iperf3 listens while a peer's test runs.
    pub iperf3_port: u16,
}

/// One `[[peer]]`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Peer {
    /// Unique in the file.
    pub name: String,
    /// Where it is.
    pub prefixes: Vec<IpNet>,
    /// Its public key, as `fatpath keys show` prints it there.
    pub key: String,
    /// Of tests that it may make.
    pub kinds: Vec<Kind>,
    /// No test of it lasts longer.
    pub longest_us: u64,
    /// What its tests make this host send in a day of UTC, headers of UDP and IPv6 included, or receive of packet trains and iperf3.
    pub bytes_a_day: u64,
    /// What its tests make this host send in a second, at the average from a test's beginning; of iperf3 also what it receives.
    pub rate_bps: u64,
}

/// What a test is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Datagrams are sent back: round-trip time and loss.
    Echo,
    /// And when each came and left by this host's clock: one-way delay.
    OneWay,
    /// The arrival of packet trains is recorded: the path's rate.
    Rate,
    /// A server of iperf3 is started: throughput.
    Iperf3,
}

impl Kind {
    /// All, by name.
    pub const ALL: [(&str, Kind); 4] = [
        ("echo", Kind::Echo),
        ("one_way", Kind::OneWay),
        ("rate", Kind::Rate),
        ("iperf3", Kind::Iperf3),
    ];

    /// What a peer may ask for where the file does not say. Tests of rate and iperf3 fill the path.
    pub const DEFAULT: [Kind; 2] = [Kind::Echo, Kind::OneWay];
}

impl fmt::Display for Kind {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Kind::ALL.iter().find(|(_, kind)| kind == self);
        to.write_str(named.map_or("", |(name, _)| name))
    }
}

impl Peer {
    /// Whether the address is in one of its prefixes.
    pub fn is_at(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.prefixes.iter().any(|prefix| prefix.contains(&address))
    }
}
