// SPDX-License-Identifier: MIT OR Apache-2.0
//! A flow that is tuned: what its rule asks for, what it has, what it did.

use crate::{BbrState, Flow};
#[cfg(feature = "document")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A tuned flow at one moment: `GET /v1/flows`, and a line of the flow log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct TunedFlow {
    /// Which flow.
    #[serde(flatten)]
    pub flow: Flow,
    /// Who opened it.
    pub opened: Opened,
    /// The rule it is on; none when its rule was taken out of the policy.
    pub rule: Option<String>,
    /// Seconds since it was established, or since fatpath first saw it.
    pub duration_s: f64,
    /// Each setting that the rule asks for: what was asked, what the kernel has.
    pub settings: Vec<SettingReport>,
    /// What it did.
    #[serde(flatten)]
    pub measures: Measures,
    /// What held it back.
    pub limited: Limits,
    /// While it is rude, or going polite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rude: Option<RudeFlow>,
    /// What its law knows of the path; none unless that is `fp_bbr`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bbr: Option<BbrState>,
    /// Path of its cgroup; none when it is gone, or nobody looked it up.
    #[serde(default)]
    pub cgroup: Option<String>,
}

/// What became of a flow that was tuned by hand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct TunedByHand {
    /// The flow as it is now; none when no rule gives it anything any more.
    pub flow: Option<TunedFlow>,
    /// What could not be done for it, for people.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// A line of the flow log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct FlowLogLine {
    /// When it was written, RFC 3339 in UTC.
    pub time: String,
    /// What happened.
    pub event: FlowLogEvent,
    /// The flow at that moment.
    #[serde(flatten)]
    pub flow: TunedFlow,
}

/// What a line of the flow log is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub enum FlowLogEvent {
    /// The flow was closed.
    FlowEnd,
}

/// Who opened the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub enum Opened {
    /// This host.
    Here,
    /// The peer.
    ByPeer,
    /// It was there before fatpath.
    BeforeFatpath,
}

/// One setting: asked for, and read back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct SettingReport {
    /// Name as in the policy file, with its unit.
    pub setting: Cow<'static, str>,
    /// What the rule asks for (its share, when the rule divides).
    pub asked: SettingValue,
    /// What the kernel says it has.
    pub has: SettingValue,
    /// What became of it.
    pub outcome: SettingOutcome,
    /// Why the two may differ, for people; programs read `outcome`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What became of a setting that a rule asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub enum SettingOutcome {
    /// The kernel took it.
    Given,
    /// The kernel took it, and the program's own value is ignored (`override_application`).
    OverridesProgram,
    /// The program set its own value, which stays.
    KeptProgramsOwn,
    /// It counts only when a flow begins, and this one had begun.
    TooLate,
    /// The flow's law is none of fatpath's, and no other heeds it.
    IgnoredByLaw,
    /// The host's TCP memory was short: the kernel's own buffer stays.
    Withheld,
    /// The kernel refused it.
    Refused,
}

/// A number in the unit of its setting's name, or a law's name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub enum SettingValue {
    /// A number.
    Number(u64),
    /// A name.
    Name(String),
}

/// Counters and estimates of a flow, RFC 4898 in the comments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct Measures {
    /// Bytes that the peer acknowledged (ThruOctetsAcked).
    pub bytes_acked: u64,
    /// Bytes received in order (ThruOctetsReceived).
    pub bytes_received: u64,
    /// The larger of both over the duration, Mb/s.
    pub goodput_mbps: f64,
    /// Segments retransmitted (SegsRetrans).
    pub segments_retransmitted: u32,
    /// Bytes retransmitted (OctetsRetrans).
    pub bytes_retransmitted: u64,
    /// Segments sent (SegsOut).
    pub segments_sent: u32,
    /// Segments received (SegsIn).
    pub segments_received: u32,
    /// Smoothed round-trip time, µs (SmoothedRTT).
    pub srtt_us: u32,
    /// Least round-trip time of late, µs; none before the first sample.
    pub min_rtt_us: Option<u32>,
    /// Segment size, bytes (CurMSS).
    pub mss_bytes: u32,
    /// Congestion window, segments.
    pub cwnd_pkts: u32,
    /// Slow-start threshold, segments; none while it was never set.
    pub ssthresh_pkts: Option<u32>,
    /// Segments in flight.
    pub in_flight_pkts: u32,
    /// Window that the peer advertises, bytes (CurRwinRcvd).
    pub peer_window_bytes: u32,
    /// Law in use.
    pub law: String,
    /// Window scale that this host announced.
    pub receive_window_scale: u32,
    /// Window scale that the peer announced.
    pub send_window_scale: u32,
}

/// How long the flow had something to send, and what held it back meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct Limits {
    /// Seconds with data to send or in flight.
    pub busy_s: f64,
    /// Of these, limited by the receiver's window (SndLimTimeRwin).
    pub receiver_s: f64,
    /// By the sender's own buffer (SndLimTimeSnd).
    pub sender_s: f64,
    /// By the congestion window, that is by the network (SndLimTimeCwnd).
    pub network_s: f64,
}

/// What a flow that was rude is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub enum RudeMode {
    /// Without congestion control.
    Rude,
    /// RUDE_OFF_NICELY: above its fair window still.
    GoingPolite,
}

/// A flow that is rude or going polite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct RudeFlow {
    /// What it is.
    pub mode: RudeMode,
    /// The window that it would have, or is going to, segments.
    pub fair_cwnd_pkts: u32,
    /// Segments that were marked, modulo 2^32; behind a bond or a VLAN's interface, once for each.
    pub marked_pkts: u32,
    /// Number of the user who asked for it, or who owns the socket.
    pub user: u32,
}
