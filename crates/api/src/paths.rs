// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is learned of paths, as the daemon answers it.

#[cfg(feature = "document")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// `?prefix=192.0.2.0/24&limit=100&evidence=true`
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct PathsQuery {
    /// To peers in this prefix, or to this address; without it all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// At most so many, 1 to 65536, with evidence to 1000, those seen last; without it 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// With each flow that the numbers rest on; without it not.
    #[serde(default)]
    pub evidence: bool,
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
    /// What held back the flows that say so, so that the path may carry more: application,
    /// own_buffer, program_buffer (one that the program set), peer_window, loss, or pacing.
    pub rate_limit: Option<String>,
    /// When segments are lost: none, queue, short_queue, random or policed.
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
    /// The median rate of flows that began under learned settings, as a multiple of that of the others; none where the numbers do
    /// not rest on flows of both.
    pub gain: Option<f64>,
    /// The flows that the numbers rest on, oldest first, where they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told_by: Vec<PathEvidence>,
}

/// What one flow told of its path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct PathEvidence {
    /// When it began, RFC 3339 in UTC.
    pub began: String,
    /// Until when it told, RFC 3339 in UTC.
    pub seen: String,
    /// Bytes acknowledged or received, whichever is more.
    pub bytes: u64,
    /// Least round-trip time, µs.
    pub min_rtt_us: f64,
    /// Mean round-trip time, µs.
    pub mean_rtt_us: f64,
    /// Its best rate, bits a second; none of a flow that lasted less than a second and ten round trips.
    pub rate_bps: Option<f64>,
    /// What held it back for a quarter of its time or more: application, own_buffer, program_buffer, peer_window, loss or
    /// pacing.
    pub limit: Option<String>,
    /// What losses it had: none, queue, short_queue, random or policed; none where it cannot be told.
    pub loss: Option<String>,
    /// Segments with data that this host sent.
    pub sent_pkts: u64,
    /// Segments that it sent again.
    pub retransmitted_pkts: u64,
    /// Whether what was learned gave it its settings.
    pub is_tuned: bool,
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
