// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `fp_bbr` knows of a flow's path.

#[cfg(feature = "document")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a flow under `fp_bbr` is doing (draft-ietf-ccwg-bbr-06, 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub enum BbrPhase {
    /// Doubles its rate every round trip.
    Startup,
    /// Empties the queue that Startup made.
    Drain,
    /// Sends less than the path delivers.
    ProbeBwDown,
    /// Sends what the path delivers.
    ProbeBwCruise,
    /// Fills the path before it probes.
    ProbeBwRefill,
    /// Sends more, to find out whether the path has more.
    ProbeBwUp,
    /// Keeps little in flight, to measure the path's round-trip time.
    ProbeRtt,
}

impl BbrPhase {
    /// Its name in the draft.
    pub fn name(self) -> &'static str {
        match self {
            BbrPhase::Startup => "Startup",
            BbrPhase::Drain => "Drain",
            BbrPhase::ProbeBwDown => "ProbeBW_DOWN",
            BbrPhase::ProbeBwCruise => "ProbeBW_CRUISE",
            BbrPhase::ProbeBwRefill => "ProbeBW_REFILL",
            BbrPhase::ProbeBwUp => "ProbeBW_UP",
            BbrPhase::ProbeRtt => "ProbeRTT",
        }
    }
}

/// The model of its path that a flow under `fp_bbr` goes by. The draft's names stand in brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct BbrState {
    /// What it is doing.
    pub phase: BbrPhase,
    /// The bandwidth that it goes by, bytes of data a second (BBR.bw).
    pub bw_bytes_per_s: u64,
    /// The highest delivery rate of two probes (BBR.max_bw).
    pub max_bw_bytes_per_s: u64,
    /// To which losses hold it down until the next probe; none without a bound (BBR.bw_shortterm).
    pub bw_shortterm_bytes_per_s: Option<u64>,
    /// Least round-trip time of ten seconds, µs; none before the first (BBR.min_rtt).
    pub min_rtt_us: Option<u32>,
    /// What the path held without much loss when it was probed, segments (BBR.inflight_longterm).
    pub inflight_longterm_pkts: Option<u32>,
    /// What losses since then let it hold, segments (BBR.inflight_shortterm).
    pub inflight_shortterm_pkts: Option<u32>,
}
