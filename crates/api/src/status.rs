// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is loaded, changed, pinned and lost.

use crate::RudeGate;
#[cfg(feature = "document")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::PathBuf;

/// `GET /v1/status`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct Status {
    /// The daemon's version.
    pub version: String,
    /// The daemon's process.
    pub pid: u32,
    /// Seconds since it started.
    pub uptime_s: u64,
    /// Name of the file that the live policy came from.
    pub policy_file: String,
    /// The kernel half.
    pub kernel: KernelStatus,
    /// Changes to the host that are in force.
    pub host_changes: Vec<Change>,
    /// The log of flows that ended.
    pub flow_log: LogStatus,
    /// The log of events; absent when the daemon writes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_log: Option<LogStatus>,
    /// The archive; absent while the live policy asks for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<ArchiveStatus>,
    /// The scheduled tests; absent without a file that lists them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measure: Option<MeasureStatus>,
    /// The rules whose path is measured, with what is in force.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measured: Vec<MeasuredRule>,
    /// The traces that the live policy asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<TraceStatus>,
    /// Where the page is served over TCP.
    pub page: Option<SocketAddr>,
    /// Why it is not, although the daemon was asked to: it tries again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_error: Option<String>,
    /// The gate of Rude TCP; absent from a daemon of an earlier build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rude: Option<RudeGate>,
}

/// A rule whose path is measured (`rtt = "measured"`, `rate = "measured"`), and what it goes by now.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct MeasuredRule {
    /// Its name.
    pub rule: String,
    /// Round-trip time, µs; null while it is not known.
    pub rtt_us: Option<u32>,
    /// Rate, bits a second; null while it is not known.
    pub rate_bps: Option<u64>,
    /// On which path it was measured, and by what; null while nothing was measured, so that what is known is of the file.
    pub by: Option<String>,
    /// Since when it is in force, RFC 3339; null likewise.
    pub since: Option<String>,
}

/// What `fatpath status --json` prints while no daemon runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct StatusWithoutDaemon {
    /// Null: this tells the two forms apart.
    pub pid: (),
    /// What is pinned; none when nothing is.
    pub kernel: Option<KernelStatus>,
    /// The gate of Rude TCP; none when nothing is pinned.
    pub rude: Option<RudeGate>,
    /// Changes to the host that are in force.
    pub host_changes: Vec<Change>,
}

/// The kernel half as it is now.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct KernelStatus {
    /// Directory of the pins.
    pub pin_dir: PathBuf,
    /// Everything that is pinned there.
    pub pinned: Vec<Pinned>,
    /// Names of the live policy's rules.
    pub rules: Vec<String>,
    /// Counts policies made live since the load; 0 = none is.
    pub policy_generation: u32,
    /// Laws of ours that the kernel has registered.
    pub laws: Vec<String>,
    /// Counters since the load.
    pub counts: Counts,
    /// What the instruments counted; none where the kernel did not take them.
    pub instruments: Option<SampleCounts>,
    /// Whether flows are listed a network namespace at a time, since the kernel refuses iterators over maps: those of a
    /// namespace without a process or a name are not listed.
    #[serde(default)]
    pub lists_by_namespace: bool,
}

/// One pin.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct Pinned {
    /// Its file's name.
    pub name: String,
    /// What it holds.
    pub kind: PinKind,
}

/// What a pin holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub enum PinKind {
    /// A BPF map.
    Map,
    /// A link: what attaches a program.
    Link,
    /// A program that links attach.
    Program,
    /// A registered congestion-control law.
    Law,
}

/// Counters since the load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct Counts {
    /// Flows that matched a rule.
    pub flows_met: u64,
    /// Flows that matched none.
    pub flows_passed: u64,
    /// Events lost because nobody read them in time.
    pub events_lost: u64,
    /// Flows without what their rule gives, or with Reno's window under `fp_bbr`, because their socket had no memory for
    /// fatpath's state.
    pub flows_without_storage: u64,
    /// Times a law found parameters out of range and took Reno's.
    pub bad_law_parameters: u64,
    /// Rude flows that went back to congestion control because their segments were not marked.
    pub rude_flows_unmarked: u64,
    /// Buffers of rules that flows were not given because the host's TCP memory was short.
    pub buffers_withheld: u64,
}

/// What the instruments counted since the load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct SampleCounts {
    /// Flows that are sampled now.
    pub flows_sampled: u64,
    /// Samples handed over.
    pub samples: u64,
    /// Samples lost because nobody read them in time.
    pub samples_lost: u64,
    /// Flows that `max_flows` or `max_flows_per_prefix` left out.
    pub flows_beyond_bounds: u64,
    /// Flows left out because their socket had no memory for what is kept of them.
    pub flows_without_storage: u64,
    /// The budget: so many samples a second at most; 0 = none.
    #[serde(default)]
    pub samples_per_s_max: u32,
    /// The least time between two samples of a flow, as it is now; microseconds.
    #[serde(default)]
    pub interval_us: u64,
    /// The same as the policy gives it. It is longer now if the budget would not hold otherwise.
    #[serde(default)]
    pub interval_configured_us: u64,
    /// Events that have no sample of their own because of the budget: the flow's next sample counts them.
    #[serde(default)]
    pub events_unsampled: u64,
}

/// How a log file fares.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct LogStatus {
    /// The file.
    pub file: PathBuf,
    /// Lines written since the daemon started.
    pub written: u64,
    /// Lines that could not be written.
    pub missing: u64,
    /// Why the last line is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How the archive fares.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct ArchiveStatus {
    /// Its folder.
    pub folder: PathBuf,
    /// Size of the spool.
    pub spool_bytes: u64,
    /// Events that wait there for the store.
    pub spool_events: u64,
    /// Age of the oldest of them, seconds.
    pub lag_s: f64,
    /// Events that were given up since the spool was opened, by kind.
    pub dropped: Vec<ArchiveDrops>,
    /// Events that found the daemon's queue full, or no spool, since the daemon started.
    pub unqueued: u64,
    /// Events stored since the daemon started.
    pub stored: u64,
    /// Events that the store had no space for, since the daemon started.
    pub refused: u64,
    /// Size of the store.
    pub store_bytes: u64,
    /// Days whose events are in the store, the oldest first.
    pub days: Vec<String>,
    /// Why events are not durable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spool_error: Option<String>,
    /// Why events wait in the spool, or old days stay in the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_error: Option<String>,
}

/// How the scheduled tests fare.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct MeasureStatus {
    /// The file that lists them.
    pub file: PathBuf,
    /// Why the file was not taken; the tests before it go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_error: Option<String>,
    /// How many there are.
    pub tests: u64,
    /// Names of those that run now, or wait for a resource.
    pub running: Vec<String>,
    /// The one that is due next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// When, µs since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_due_us: Option<i64>,
    /// Runs that gave values, since the daemon started.
    pub succeeded: u64,
    /// Runs that failed.
    pub failed: u64,
    /// Runs that were left out: flows said enough, or the resource was in use.
    pub left_out: u64,
    /// Why the last that failed did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// How a trace of the policy fares (`[[trace]]`). Counts begin when the policy with it becomes live.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct TraceStatus {
    /// Its name.
    pub name: String,
    /// The folder of its files.
    pub folder: PathBuf,
    /// Flows that are traced now.
    pub flows: u64,
    /// Flows that were not traced when they were first seen, because `max_flows` others were. One that was left out
    /// takes the place of the next that ends.
    pub flows_left_out: u64,
    /// Samples written.
    pub written: u64,
    /// Samples of its flows that could not be written.
    pub missing: u64,
    /// Samples of any flows, traced or not, that passed faster than the daemon looked at them.
    pub unread: u64,
    /// Finished files that are there.
    pub files: u64,
    /// Their size together.
    pub bytes: u64,
    /// Why the last sample is not written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Events of a kind that were given up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct ArchiveDrops {
    /// `sample`, `event`, `flow`, `path`, `test` or `decision`.
    pub kind: String,
    /// How many.
    pub events: u64,
}

/// One change to the host, as the journal and the API name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub enum Change {
    /// A sysctl was raised.
    Sysctl {
        /// As sysctl(8) writes it.
        name: String,
        /// Its value before.
        before: String,
        /// Its value since.
        after: String,
    },
    /// A route was added: a copy of the one that led there, with metrics.
    RouteAdded {
        /// For people.
        route: String,
        /// The netlink message, hexadecimal.
        message: String,
    },
    /// A route was given metrics.
    RouteChanged {
        /// For people.
        route: String,
        /// The netlink message before, hexadecimal.
        before: String,
        /// The netlink message since.
        after: String,
    },
    /// A file system was mounted.
    Mount {
        /// Where.
        at: PathBuf,
    },
}
