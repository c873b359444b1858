// SPDX-License-Identifier: MIT OR Apache-2.0
//! One rule of a policy: which flows, the path as the administrator knows it, and what its flows get.

use crate::{PortRange, Prefix, Settings};
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// One named rule: which flows, and what they get.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Rule {
    /// Unique in the policy; 1 to 63 bytes of `[A-Za-z0-9._-]`.
    pub name: String,
    /// The line of the file where the rule begins, from 1.
    pub line: u32,
    /// Which flows.
    pub matches: Match,
    /// What the administrator says of the path.
    pub path: Path,
    /// What the flows get.
    pub settings: Settings,
    /// What they get while their process is in a collective phase, where that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collective: Option<Settings>,
}

/// Which flows a rule is for. Every part must hold; an empty or absent part holds for every flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Match {
    /// Prefixes of the peer's address, whichever side opened the connection.
    pub destination: Vec<Prefix>,
    /// Prefixes of this host's address.
    pub source: Vec<Prefix>,
    /// The peer's port; sorted, no two overlap.
    pub destination_ports: Vec<PortRange>,
    /// This host's port; sorted, no two overlap.
    pub source_ports: Vec<PortRange>,
    /// The cgroup-2 path of the flow's socket, or one above it. Begins with `/`.
    pub cgroup: Option<String>,
}

/// The path as the administrator knows it, or as it was measured. With both parts, `bdp` has a meaning.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Path {
    /// Round-trip time in microseconds, 1 us to 60 s.
    pub rtt_us: Option<u32>,
    /// Bottleneck rate in bits a second, 1 kb/s to 100 Tb/s.
    pub rate_bps: Option<u64>,
    /// Which of them follow what is measured.
    #[serde(skip_serializing_if = "Follows::is_nothing")]
    pub follows: Follows,
}

/// Which parts of a path are measured. Such a part is what was measured last, before that what the file gives for the
/// time until then, or none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Follows {
    /// The round-trip time.
    pub rtt: bool,
    /// The rate.
    pub rate: bool,
    /// What the parts in force come from, for people; none while nothing is measured.
    pub by: Option<String>,
    /// Largest buffer that follows from them, bytes; without it a buffer may be as large as any.
    #[serde(skip)]
    pub most_buffer_bytes: Option<u64>,
}

/// What was measured of a rule's path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeasuredPath {
    /// Round-trip time in microseconds; none while it is not known.
    pub rtt_us: Option<u32>,
    /// Bottleneck rate in bits a second; none while it is not known.
    pub rate_bps: Option<u64>,
    /// On which path, and by what, for people.
    pub by: String,
    /// Largest buffer that may follow from it on this host, bytes; none where that is not known.
    pub most_buffer_bytes: Option<u64>,
}

/// What was measured, by the name of the rule.
pub type MeasuredPaths = BTreeMap<String, MeasuredPath>;

impl Rule {
    /// Of one flow alone, by its ends.
    pub fn for_flow(name: &str, local: SocketAddr, remote: SocketAddr) -> Rule {
        let port = |end: SocketAddr| {
            vec![PortRange {
                first: end.port(),
                last: end.port(),
            }]
        };
        Rule {
            name: name.to_owned(),
            matches: Match {
                destination: vec![Prefix::of(remote.ip())],
                source: vec![Prefix::of(local.ip())],
                destination_ports: port(remote),
                source_ports: port(local),
                cgroup: None,
            },
            ..Rule::default()
        }
    }
}

impl Follows {
    /// Whether the path is as the file gives it.
    pub fn is_nothing(&self) -> bool {
        !self.rtt && !self.rate
    }
}

impl Path {
    /// Whether a part is not known that will be measured, and no other.
    pub(crate) fn waits(&self) -> bool {
        let may_come = |is_known: bool, is_measured: bool| is_known || is_measured;
        self.bdp_bytes().is_none()
            && may_come(self.rtt_us.is_some(), self.follows.rtt)
            && may_come(self.rate_bps.is_some(), self.follows.rate)
    }

    /// What the path holds; `None` where a part of it is not known.
    pub fn bdp_bytes(&self) -> Option<u64> {
        let bits = u128::from(self.rate_bps?) * u128::from(self.rtt_us?) / 1_000_000;
        u64::try_from(bits / 8).ok()
    }
}

impl Match {
    /// Whether the peer's address alone decides: nothing else is asked of the flow.
    pub fn by_destination_only(&self) -> bool {
        self.source.is_empty()
            && self.destination_ports.is_empty()
            && self.source_ports.is_empty()
            && self.cgroup.is_none()
    }
}
