// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the archive answers.

#[cfg(feature = "document")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// `?since_us=…&prefix=192.0.2.0/24&kinds=flow,test&limit=100`
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct ArchiveQuery {
    /// Not before this, µs since 1970; without it a day before `until_us`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_us: Option<i64>,
    /// Before this, µs since 1970; without it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_us: Option<i64>,
    /// Of peers in this prefix, or of this address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// From this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Of this rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Of these kinds, with commas between: sample, event, flow, path, test, decision. Without it of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinds: Option<String>,
    /// At most so many, 1 to 1000; without it 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// The newest so many are left out: those of the page before that have the same time as its oldest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip: Option<usize>,
}

/// A part of the events that match: the newest, in the order of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct ArchivePage {
    /// The events.
    pub events: Vec<ArchivedEvent>,
    /// Where the older ones begin; none when there is none.
    pub next: Option<ArchiveCursor>,
}

/// What to ask for to get the next page, with everything else as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct ArchiveCursor {
    /// The query's `until_us`.
    pub until_us: i64,
    /// The query's `skip`.
    pub skip: usize,
}

/// A stored event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct ArchivedEvent {
    /// When, RFC 3339 in UTC.
    pub time: String,
    /// When, µs since 1970.
    pub time_us: i64,
    /// From which host.
    pub host: String,
    /// From which of its boots.
    pub boot: String,
    /// Its number there.
    pub sequence: u64,
    /// sample, event, flow, path, test or decision.
    pub kind: String,
    /// What happened.
    pub name: String,
    /// The peer.
    pub peer: Option<IpAddr>,
    /// The rule.
    pub rule: Option<String>,
    /// Its one number.
    pub value: Option<f64>,
    /// How many like it this one stands for.
    pub weight: u32,
    /// Everything else.
    pub body: serde_json::Value,
}

/// `?prefix=192.0.2.0/24&kinds=flow,test&limit=100`
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct LatestQuery {
    /// Of peers in this prefix, and of paths that this prefix, or address, is a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Of these kinds, with commas between: sample, event, flow, path, test, decision. Without it of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinds: Option<String>,
    /// At most so many, 1 to 1000; without it 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// The `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// A part of the newest events that match.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct LatestPage {
    /// By path, those of the whole host first.
    pub values: Vec<LatestValue>,
    /// The query's `after` for the next page, with everything else as before; none when there is none.
    pub next: Option<String>,
}

/// The newest event of its name and path since the daemon began. The store may not have it yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct LatestValue {
    /// Whose it is: a /24 of peers, of IPv6 a /48; of a scheduled test its name; empty of the whole host.
    pub of: String,
    /// When, RFC 3339 in UTC.
    pub time: String,
    /// When, µs since 1970.
    pub time_us: i64,
    /// sample, event, flow, path, test or decision.
    pub kind: String,
    /// What happened.
    pub name: String,
    /// The peer.
    pub peer: Option<IpAddr>,
    /// The rule.
    pub rule: Option<String>,
    /// Its one number.
    pub value: Option<f64>,
    /// How many like it this one stands for.
    pub weight: u32,
    /// Everything else.
    pub body: serde_json::Value,
}

/// `?prefix=192.0.2.0/24&by=hour`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct PathHistoryQuery {
    /// Prefix of the peers, or an address. Measures are kept of each /24, of IPv6 of each /48.
    pub prefix: String,
    /// How long an interval is.
    #[serde(default)]
    pub by: HistoryInterval,
    /// Not before this, µs since 1970; without it a week before `until_us`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_us: Option<i64>,
    /// Before this, µs since 1970; without it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_us: Option<i64>,
}

/// How long an interval of a history is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum HistoryInterval {
    /// A minute.
    Minute,
    /// An hour.
    #[default]
    Hour,
}

/// The history of a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct PathHistory {
    /// Those in which flows ended, by time.
    pub intervals: Vec<PathInterval>,
    /// Findings, tests and estimates of the path, and the decisions of that time.
    pub events: Vec<ArchivedEvent>,
}

/// What flows that ended in an interval measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct PathInterval {
    /// RFC 3339 in UTC.
    pub begin: String,
    /// By the measure's name: goodput_bps, srtt_us, min_rtt_us, retransmitted_share.
    pub measures: BTreeMap<String, MeasureSummary>,
}

/// What is kept of the values of a measure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct MeasureSummary {
    /// How many values.
    pub n: u64,
    /// Sum of their logarithms.
    pub sum_ln: f64,
    /// Sum of the squares of these.
    pub sum_ln2: f64,
    /// 10th percentile, right to 2.2 %.
    pub p10: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
}
