// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rude TCP on this host: the gate, the mark, and the flows that are rude or going polite.

use crate::TunedFlow;
#[cfg(feature = "document")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How segments of rude flows are marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub enum RudeMark {
    /// A reserved bit of the TCP header, in the two bytes of data offset and flags: 0x100, 0x200,
    /// 0x400 or 0x800.
    TcpBit(u16),
    /// A DSCP, 1 to 63.
    Dscp(u8),
}

/// The lowest bit that RFC 9768 leaves reserved. The paper's, 0x100, is AE there.
impl Default for RudeMark {
    fn default() -> RudeMark {
        RudeMark::TcpBit(0x200)
    }
}

impl fmt::Display for RudeMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RudeMark::TcpBit(bit) => write!(f, "{bit:#x}"),
            RudeMark::Dscp(dscp) => write!(f, "dscp={dscp}"),
        }
    }
}

impl FromStr for RudeMark {
    type Err = String;

    fn from_str(text: &str) -> Result<RudeMark, String> {
        let bit = |text: &str| u16::from_str_radix(text, 16).ok();
        let mark = match (text.strip_prefix("0x"), text.strip_prefix("dscp=")) {
            (Some(digits), _) => bit(digits)
                .filter(|bit| [0x100, 0x200, 0x400, 0x800].contains(bit))
                .map(RudeMark::TcpBit),
            (_, Some(number)) => number
                .parse()
                .ok()
                .filter(|dscp| (1..=63).contains(dscp))
                .map(RudeMark::Dscp),
            _ => None,
        };
        mark.ok_or_else(|| "0x100, 0x200, 0x400, 0x800, or dscp=1 to dscp=63".to_owned())
    }
}

/// The gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct RudeGate {
    /// While it is closed no flow is rude.
    pub is_open: bool,
    /// How segments are marked.
    pub mark: RudeMark,
    /// Whether the daemon's own network namespace marks.
    pub marks_here: bool,
}

impl RudeGate {
    /// The mark of datagrams without congestion control.
    ///
    /// # Errors
    /// In words: why none may leave, and the remedy.
    pub fn dscp_of_datagrams(&self) -> Result<u8, String> {
        const REMEDY: &str = "as root, `fatpath rude on --mark dscp=N`";
        match (self.is_open, self.mark) {
            (true, RudeMark::Dscp(dscp)) => Ok(dscp),
            (true, mark @ RudeMark::TcpBit(_)) => Err(format!(
                "the mark is {mark}, a bit of TCP's header, which datagrams do not have: {REMEDY}"
            )),
            (false, _) => Err(format!("the gate is closed: {REMEDY}")),
        }
    }
}

/// `GET /v1/rude/permission`: whether a program of the user who asks may send datagrams without congestion control.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub enum RudePermission {
    /// It may.
    Granted(RudePermit),
    /// It may not: why, and the remedy.
    Refused(String),
}

/// How datagrams without congestion control may be sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct RudePermit {
    /// The rule that allows it.
    pub rule: String,
    /// The most that a transfer may send: the rule's `rude_rate`, bits of IP packets a second.
    pub rate_bps: u64,
    /// The DSCP that each datagram has to have, 1 to 63.
    pub dscp: u8,
    /// The permission ends so soon unless it is given again.
    pub good_for_ms: u32,
}

/// What opening or closing the gate did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct Gated {
    /// Live flows that became rude, or polite.
    pub flows_changed: u32,
    /// Interfaces that cannot mark, and why: no flow over them can stay rude.
    pub unmarked: Vec<String>,
}

/// `GET /v1/rude`: all of Rude TCP on this host.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct RudeStatus {
    /// The gate.
    pub gate: RudeGate,
    /// Network namespaces whose interfaces mark: inode, and how many.
    pub marked_namespaces: Vec<(u32, u32)>,
    /// Rude flows that went back to congestion control because their segments were not marked, since the load.
    pub flows_unmarked: u64,
    /// The flows that are rude or going polite.
    pub flows: Vec<TunedFlow>,
}
