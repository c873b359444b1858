// SPDX-License-Identifier: MIT OR Apache-2.0
//! A flow as a question to the policy, and the naive answer: try the rules in file order.
//!
//! A question may leave parts open ("what would a flow to 10.5.128.74 get?"), so a rule's answer has
//! three values. What the kernel does for a whole flow is [`Classifier`](crate::Classifier); the two
//! agree. Start at [`Policy::first_match`].

use crate::{Match, Policy, PortRange, Prefix, Rule};
use serde::Serialize;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// A TCP connection seen from this host; `None` means not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Flow {
    /// The peer's address, whichever side opened the connection.
    pub destination: IpAddr,
    /// The peer's port.
    pub destination_port: Option<u16>,
    /// This host's address.
    pub source: Option<IpAddr>,
    /// This host's port.
    pub source_port: Option<u16>,
    /// The cgroup-2 path of the socket; begins with `/`.
    pub cgroup: Option<String>,
}

/// Why a text is not a [`Flow`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a destination: write ADDRESS, ADDRESS:PORT or [IPV6-ADDRESS]:PORT, for instance 10.5.128.74:443 or [2001:db8::1]:443"
)]
pub struct FlowParseError(String);

/// What a rule can ask of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Dimension {
    /// The peer's address.
    Destination,
    /// The peer's port.
    DestinationPort,
    /// This host's address.
    Source,
    /// This host's port.
    SourcePort,
    /// The socket's cgroup.
    Cgroup,
}

/// A rule's answer to a flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The rule is for the flow.
    Matches,
    /// It is not, for what stands in these dimensions.
    Differs(Vec<Dimension>),
    /// It depends on these dimensions, which the flow leaves open; nothing else speaks against it.
    Unknown(Vec<Dimension>),
}

impl Policy {
    /// The first rule, in file order, that surely matches. A rule that asks for what the flow leaves
    /// open does not; [`explain`](crate::explain) names such rules.
    pub fn first_match(&self, flow: &Flow) -> Option<&Rule> {
        self.rules
            .iter()
            .find(|rule| rule.matches.verdict(flow) == Verdict::Matches)
    }
}

impl Match {
    /// Whether a flow is meant.
    pub fn verdict(&self, flow: &Flow) -> Verdict {
        let answers = self.answers(flow);
        let those = |wanted: Option<bool>| -> Vec<Dimension> {
            answers
                .iter()
                .filter(|(_, answer)| *answer == wanted)
                .map(|(which, _)| *which)
                .collect()
        };
        let (differing, open) = (those(Some(false)), those(None));
        match (differing.is_empty(), open.is_empty()) {
            (false, _) => Verdict::Differs(differing),
            (true, false) => Verdict::Unknown(open),
            (true, true) => Verdict::Matches,
        }
    }

    /// For each dimension whether the flow fits; `None` where the flow leaves open what the rule asks.
    fn answers(&self, flow: &Flow) -> [(Dimension, Option<bool>); 5] {
        [
            (
                Dimension::Destination,
                Some(any_prefix(&self.destination, flow.destination)),
            ),
            (
                Dimension::DestinationPort,
                fits_ports(&self.destination_ports, flow.destination_port),
            ),
            (Dimension::Source, self.fits_source(flow)),
            (
                Dimension::SourcePort,
                fits_ports(&self.source_ports, flow.source_port),
            ),
            (
                Dimension::Cgroup,
                fits_cgroup(self.cgroup.as_deref(), flow.cgroup.as_deref()),
            ),
        ]
    }

    /// An open source is still of the destination's family, and cannot be in a prefix of the other.
    fn fits_source(&self, flow: &Flow) -> Option<bool> {
        let family_is_ipv4 = flow.destination.to_canonical().is_ipv4();
        match flow.source {
            Some(source) => Some(any_prefix(&self.source, source)),
            None if self.source.is_empty() => Some(true),
            None if self
                .source
                .iter()
                .all(|prefix| prefix.is_ipv4() != family_is_ipv4) =>
            {
                Some(false)
            }
            None => None,
        }
    }
}

fn any_prefix(prefixes: &[Prefix], address: IpAddr) -> bool {
    prefixes.is_empty() || prefixes.iter().any(|prefix| prefix.contains(address))
}

fn fits_ports(ranges: &[PortRange], port: Option<u16>) -> Option<bool> {
    if ranges.is_empty() {
        return Some(true);
    }
    port.map(|port| ranges.iter().any(|range| range.contains(port)))
}

fn fits_cgroup(wanted: Option<&str>, path: Option<&str>) -> Option<bool> {
    let Some(wanted) = wanted else {
        return Some(true);
    };
    if wanted == "/" {
        return Some(true);
    }
    path.map(|path| {
        path.strip_prefix(wanted)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

impl Flow {
    /// A flow to an address, everything else open.
    pub fn to(destination: IpAddr) -> Flow {
        Flow {
            destination,
            destination_port: None,
            source: None,
            source_port: None,
            cgroup: None,
        }
    }

    /// Reads `10.5.128.74:443`, `[2001:db8::1]:443`, `[2001:db8::1]`, or an address alone.
    ///
    /// # Errors
    /// [`FlowParseError`] for anything else, a host name too: nothing is looked up here.
    pub fn parse(text: &str) -> Result<Flow, FlowParseError> {
        text.parse()
    }
}

impl FromStr for Flow {
    type Err = FlowParseError;

    fn from_str(text: &str) -> Result<Flow, FlowParseError> {
        let alone = text
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .unwrap_or(text);
        if let Ok(address) = alone.parse() {
            return Ok(Flow::to(address));
        }
        match text.parse::<SocketAddr>() {
            Ok(peer) if peer.port() > 0 => Ok(Flow {
                destination_port: Some(peer.port()),
                ..Flow::to(peer.ip())
            }),
            _ => Err(FlowParseError(text.to_owned())),
        }
    }
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "to {}",
            endpoint(self.destination, self.destination_port)
        )?;
        match (self.source, self.source_port) {
            (Some(source), port) => write!(f, " from {}", endpoint(source, port))?,
            (None, Some(port)) => write!(f, " from port {port}")?,
            (None, None) => {}
        }
        self.cgroup
            .iter()
            .try_for_each(|path| write!(f, " in cgroup {path}"))
    }
}

fn endpoint(address: IpAddr, port: Option<u16>) -> String {
    port.map_or_else(
        || address.to_string(),
        |port| SocketAddr::new(address, port).to_string(),
    )
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Dimension::Destination => "destination",
            Dimension::DestinationPort => "destination port",
            Dimension::Source => "source",
            Dimension::SourcePort => "source port",
            Dimension::Cgroup => "cgroup",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(rule: &str) -> Policy {
        crate::parse(&format!("[[rule]]\nname = \"x\"\n{rule}"), None).unwrap()
    }

    #[test]
    fn a_destination_has_its_four_forms() {
        let texts = [
            "10.5.128.74:443",
            "10.5.128.74",
            "[2001:db8::1]:443",
            "[2001:db8::1]",
            "2001:db8::1",
        ];
        let ports = [Some(443), None, Some(443), None, None];
        assert_eq!(
            texts.map(|text| Flow::parse(text).unwrap().destination_port),
            ports
        );
        for text in [
            "",
            "host",
            "host:80",
            "10.5.128.74:0",
            "10.5.128.74:70000",
            "10.5.128:80",
            "[::1",
            "10.0.0.0/8",
        ] {
            assert!(Flow::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_a_question_leaves_open_is_unknown_unless_the_family_decides() {
        let policy = policy("source = [\"2001:db8::/32\"]\nsource_ports = [80]");
        let verdict = |to: &str| policy.rules[0].matches.verdict(&Flow::parse(to).unwrap());
        assert_eq!(
            verdict("2001:db8::1"),
            Verdict::Unknown(vec![Dimension::Source, Dimension::SourcePort])
        );
        assert_eq!(
            verdict("10.0.0.1"),
            Verdict::Differs(vec![Dimension::Source])
        );
        assert_eq!(
            policy.first_match(&Flow::parse("2001:db8::1").unwrap()),
            None
        );
    }

    #[test]
    fn an_ipv4_peer_of_a_dual_stack_socket_is_ipv4() {
        let policy = policy("destination = [\"10.0.0.0/8\"]");
        let met = |to: &str| policy.first_match(&Flow::parse(to).unwrap()).is_some();
        assert!(met("[::ffff:10.5.1.7]:80"));
        assert!(!met("[::a05:107]:80"));
    }
}
