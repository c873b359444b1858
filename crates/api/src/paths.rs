// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is learned of paths, as the daemon answers it.

#[cfg(feature = "document")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// `?prefix=192.0.2.0/24&limit=100`
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct PathsQuery {
    /// To peers in this prefix, or to this address; without it all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// At most so many, 1 to 65536, those seen last; without it 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// `?prefix=192.0.2.0/24`
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct ForgetPathsQuery {
    /// To peers in this prefix, or to this address.
    pub prefix: String,
}

/// What was forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct ForgottenPaths {
    /// So many paths.
    pub paths: usize,
}

/// What was learned of paths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct LearnedPaths {
    /// off, observe or tune, as the policy's section `[auto]` says.
    pub mode: String,
    /// How many are known; more than there are in `paths` where a limit or a prefix leaves some out.
    pub known: usize,
    /// The path that was seen last comes first.
    pub paths: Vec<LearnedPath>,
}

/// One path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct LearnedPath {
    /// This host's address.
    pub local: IpAddr,
    /// The peers: a /24, of IPv6 a /48.
    pub prefix: String,
    /// Flows that told something, ever.
    pub flows: u64,
    /// How often it became another path.
    pub epochs: u32,
    /// Flows that the numbers rest on: the latest.
    pub evidence: usize,
    /// When a flow was last seen, RFC 3339 in UTC.
    pub seen: String,
    /// Round-trip time without queues, µs.
    pub base_rtt_us: f64,
    /// Its standard error, as a share of it.
    pub base_rtt_doubt: f64,
    /// Round-trip time with queues, µs.
    pub high_rtt_us: f64,
    /// Bits of payload a second; none while no flow lasted long enough.
    pub rate_bps: Option<f64>,
    /// Its standard error, as a share of it.
    pub rate_doubt: Option<f64>,
    /// What held back the flows that say so, so that the path may carry more: application, own_buffer, peer_window, or loss.
    pub rate_limit: Option<String>,
    /// When segments are lost: none, queue, random or policed.
    pub loss: Option<String>,
    /// Segments sent again, of those sent.
    pub retransmitted_share: f64,
    /// Keys of a rule of the policy file, a line each: what its flows get, or would get.
    pub settings: String,
    /// Why, for people.
    pub reasons: Vec<String>,
    /// Whether flows get it now.
    pub state: PathState,
    /// Until when it is left alone, RFC 3339 in UTC.
    pub quarantined_until: Option<String>,
}

/// What becomes of what a path could get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub enum PathState {
    /// The host's settings do, or too little is known.
    AsHost,
    /// It is only told: the mode is observe.
    Observed,
    /// Flows that no rule of the file matches get it.
    Tuned,
    /// What its flows had been given did harm: it is left alone for a time.
    Quarantined,
}
