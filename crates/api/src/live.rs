// SPDX-License-Identifier: MIT OR Apache-2.0
//! The frames of the live stream. A flow is a row of a table there: what changes often is sent often, so
//! it is small. All of a flow is at `/v1/instruments/flows/{cookie}`.

use crate::{LimitedBy, Severity};
use compact_str::CompactString;
#[cfg(feature = "document")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// One server-sent event of `GET /v1/instruments/live`: its name, and its data as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", content = "data", rename_all = "snake_case")]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub enum LiveFrame {
    /// What was sent before no longer counts.
    Reset {},
    /// Flows that are new or changed.
    Flows(Vec<FlowRow>),
    /// Cookies of flows that are no longer known.
    Gone(Vec<u64>),
    /// Counts of samples that never came, when one changed.
    Lost(Lost),
    /// The client was slow.
    Late(Late),
}

impl LiveFrame {
    /// The event's name, as serde writes it.
    pub fn event(&self) -> &'static str {
        match self {
            LiveFrame::Reset {} => "reset",
            LiveFrame::Flows(_) => "flows",
            LiveFrame::Gone(_) => "gone",
            LiveFrame::Lost(_) => "lost",
            LiveFrame::Late(_) => "late",
        }
    }
}

/// How far a client of the live stream was behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct Late {
    /// Milliseconds since the frame before.
    pub ms: u64,
}

/// What the instruments missed since the kernel half was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct Lost {
    /// Samples lost because nobody read them in time.
    pub samples_lost: u64,
    /// Flows that `max_flows` or `max_flows_per_prefix` left out.
    pub flows_beyond_bounds: u64,
    /// Flows left out because their socket had no memory for what is kept of them.
    pub flows_without_storage: u64,
}

/// A flow as the live stream sends it: parts of its [`FlowView`](crate::FlowView).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
#[allow(missing_docs)] // the fields of FlowView's parts
pub struct FlowRow {
    pub cookie: u64,
    pub local: SocketAddr,
    pub remote: SocketAddr,
    pub rule: Option<String>,
    #[cfg_attr(feature = "document", schemars(with = "String"))]
    pub law: CompactString,
    pub is_passive: bool,
    pub is_rude: bool,
    pub has_ended: bool,
    pub elapsed_s: f64,
    pub goodput_bps: f64,
    pub received_bps: f64,
    pub average_bps: f64,
    pub retransmitted_share: f64,
    pub srtt_us: u32,
    pub min_rtt_us: Option<u32>,
    pub cwnd_pkts: u32,
    pub in_flight_pkts: u32,
    pub limited_by: LimitedBy,
    pub findings: Vec<FindingName>,
}

/// A finding without its evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct FindingName {
    /// Stable: `FP-RWND-SCALE`.
    pub id: String,
    /// In one sentence.
    pub title: String,
    /// How much it matters.
    pub severity: Severity,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_named_as_it_is_serialized() {
        let frames = [
            LiveFrame::Reset {},
            LiveFrame::Flows(vec![]),
            LiveFrame::Gone(vec![1]),
            LiveFrame::Lost(Lost::default()),
            LiveFrame::Late(Late { ms: 1 }),
        ];
        for frame in frames {
            let json = serde_json::to_value(&frame).unwrap();
            assert_eq!(json["event"], frame.event());
            assert_eq!(serde_json::from_value::<LiveFrame>(json).unwrap(), frame);
        }
    }
}
