// SPDX-License-Identifier: MIT OR Apache-2.0
//! One dated fact, and where it comes from.

use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// What an event is, in the order in which a full spool gives events up: the first goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Something that happened to a flow: congestion, a timeout, a retransmission, a derived value.
    Sample,
    /// Any other event: a finding, an error, lost samples.
    Event,
    /// The end of a flow, with its settings and what it did.
    Flow,
    /// A new estimate of a path.
    Path,
    /// The result of a measurement.
    Test,
    /// A change of what flows get: a policy that became live.
    Decision,
}

impl Kind {
    /// All, in their order.
    pub const ALL: [Kind; 6] = [
        Kind::Sample,
        Kind::Event,
        Kind::Flow,
        Kind::Path,
        Kind::Test,
        Kind::Decision,
    ];

    /// Its name, as serde writes it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Sample => "sample",
            Kind::Event => "event",
            Kind::Flow => "flow",
            Kind::Path => "path",
            Kind::Test => "test",
            Kind::Decision => "decision",
        }
    }
}

/// A name that is no kind's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("give sample, event, flow, path, test or decision")]
pub struct UnknownKind;

impl std::str::FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(name: &str) -> Result<Kind, UnknownKind> {
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
        kind.ok_or(UnknownKind)
    }
}

/// The source of events: a sequence number is unique within it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Origin {
    /// The host's name.
    pub host: String,
    /// The boot of the host (`/proc/sys/kernel/random/boot_id`).
    pub boot: String,
}

/// One dated fact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Microseconds since 1970, by the clock of the host.
    pub time_us: i64,
    /// What happened: `flow.end`, `finding`, `policy.applied`.
    pub name: String,
    /// The peer, where there is one.
    pub peer: Option<IpAddr>,
    /// The rule of the policy, where there is one.
    pub rule: Option<String>,
    /// The event's one number; of a flow, the larger of the bytes acknowledged and received.
    pub value: Option<f64>,
    /// How many like it this one stands for, at least 1: flows below a size are sampled.
    pub weight: u32,
    /// Everything else, as a JSON object.
    pub body: String,
}
