// SPDX-License-Identifier: MIT OR Apache-2.0
//! What API, page, command line and exports show of a flow: one form for all of them.
//!
//! Times of a flow are seconds since fatpath first saw it (`t_s`). What is not known is `None`.

use crate::{BbrState, Finding, Flow, Sample};
#[cfg(feature = "document")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One flow as it is now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct FlowView {
    /// Which flow.
    pub flow: Flow,
    /// Name of the rule that it met.
    pub rule: Option<String>,
    /// Its latest sample.
    pub sample: Sample,
    /// What follows from the samples of the last one to two seconds.
    pub rates: Rates,
    /// What held it back, over the span that the findings judge.
    pub shares: Shares,
    /// The administrator's own events by name; one without a finite value is left out.
    pub derived: BTreeMap<String, f64>,
    /// Why it is slow, the gravest first.
    pub findings: Vec<Finding>,
    /// It is closed; the sample is its last.
    pub has_ended: bool,
}

/// Rates of the last one to two seconds, or since the begin when that is less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct Rates {
    /// Bytes that the peer acknowledged, bits a second.
    pub goodput_bps: f64,
    /// Payload sent, retransmissions included, bits a second.
    pub sent_bps: f64,
    /// Payload received in order, bits a second.
    pub received_bps: f64,
    /// Of the bytes sent in this time, the share that was retransmitted; 0 when none was sent.
    pub retransmitted_share: f64,
    /// Bytes acknowledged or received, whichever are more, over the flow's life, bits a second.
    pub average_bps: f64,
}

/// Shares of a span of time by what held the sender back; they add up to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct Shares {
    /// Nothing to send: the application gave nothing.
    pub application: f64,
    /// The sender's own buffer (SndLimTimeSnd).
    pub send_buffer: f64,
    /// The receiver's window (SndLimTimeRwin).
    pub receiver: f64,
    /// Waiting for the retransmission timer.
    pub timeout: f64,
    /// The congestion window, and so the path (SndLimTimeCwnd).
    pub network: f64,
}

impl Shares {
    /// Each by the name that people read.
    pub fn named(&self) -> [(&'static str, f64); 5] {
        [
            ("application", self.application),
            ("send buffer", self.send_buffer),
            ("receiver", self.receiver),
            ("timer", self.timeout),
            ("network", self.network),
        ]
    }
}

/// One point of a flow's plots.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // the fields of Sample and Rates
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct Point {
    pub t_s: f64,
    pub cwnd_pkts: u32,
    pub ssthresh_pkts: Option<u32>,
    pub srtt_us: u32,
    pub rtt_us: Option<u32>,
    pub in_flight_pkts: u32,
    /// Bytes acknowledged or received since the point before, bits a second.
    pub rate_bps: f64,
    /// The same since the begin.
    pub average_bps: f64,
    /// Segments retransmitted since the point before.
    pub retransmitted_pkts: u64,
}

/// What an [`Event`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub enum EventKind {
    /// Established, or first seen.
    Begin,
    /// It matched a rule, or a law, buffer, clamp or mode of it was changed.
    Tuned,
    /// The congestion window was reduced.
    Congestion,
    /// The retransmission timer ended.
    Timeout,
    /// Segments were retransmitted.
    Retransmission,
    /// A finding appeared.
    Finding,
    /// Closed.
    End,
}

/// One dated fact of a flow, marked on the time axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct Event {
    /// Seconds since the begin.
    pub t_s: f64,
    /// Its kind.
    pub kind: EventKind,
    /// In words, with the numbers.
    pub text: String,
}

/// `GET /v1/instruments/flows/{cookie}`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct FlowDetail {
    /// The flow as it is now.
    pub view: FlowView,
    /// Its latest points, the oldest first.
    pub points: Vec<Point>,
    /// Its latest events, the oldest first.
    pub events: Vec<Event>,
}

/// `GET /v1/instruments/why`: one of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct Why {
    /// Which flow.
    pub flow: Flow,
    /// Name of the rule that it met.
    pub rule: Option<String>,
    /// Bits a second now.
    pub rates: Rates,
    /// What held it back.
    pub shares: Shares,
    /// Seconds that shares and findings judge.
    pub span_s: f64,
    /// The gravest first; none in a healthy transfer.
    pub findings: Vec<Finding>,
    /// What the flow's law knows of the path; none unless that is `fp_bbr`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bbr: Option<BbrState>,
}
