// SPDX-License-Identifier: MIT OR Apache-2.0
//! What BBR knows of a flow's path, for people: the state that bpf/cc/bbr_model.h keeps.

use crate::raw::{self, RateFlow};

/// What a BBR flow is doing (draft-ietf-ccwg-bbr-06, 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    const ALL: [BbrPhase; 7] = [
        BbrPhase::Startup,
        BbrPhase::Drain,
        BbrPhase::ProbeBwDown,
        BbrPhase::ProbeBwCruise,
        BbrPhase::ProbeBwRefill,
        BbrPhase::ProbeBwUp,
        BbrPhase::ProbeRtt,
    ];

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

/// A flow's model of its path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bbr {
    /// What it is doing.
    pub phase: BbrPhase,
    /// The highest delivery rate of two cycles, segments a second (`BBR.max_bw`).
    pub max_bw_pkts_per_s: f64,
    /// The rate that it goes by, which losses may hold down for a while (`BBR.bw`).
    pub bw_pkts_per_s: f64,
    /// The least round-trip time of ten seconds; `None`: none was measured (`BBR.min_rtt`).
    pub min_rtt_us: Option<u32>,
    /// Segments that the path held without much loss when it was probed (`BBR.inflight_longterm`).
    pub inflight_longterm_pkts: Option<u32>,
    /// Since losses of this cycle (`BBR.inflight_shortterm`).
    pub inflight_shortterm_pkts: Option<u32>,
    /// The path was filled once (`BBR.full_bw_reached`).
    pub full_bw_reached: bool,
}

impl Bbr {
    /// Of a flow under BBR.
    pub fn of(flow: &RateFlow) -> Bbr {
        // SAFETY: the flow's own memory is such a state, or all 0, and lives as long as the flow.
        let state = unsafe { &*raw::fatpath_bbr_state(flow) };
        let max_bw = state.max_bw.into_iter().max().unwrap_or(0);
        Bbr {
            phase: BbrPhase::ALL[usize::from(state.phase) % BbrPhase::ALL.len()],
            max_bw_pkts_per_s: pkts_per_s(max_bw),
            bw_pkts_per_s: pkts_per_s(state.bw),
            min_rtt_us: known(state.min_rtt_us),
            inflight_longterm_pkts: known(state.inflight_longterm_pkts),
            inflight_shortterm_pkts: known(state.inflight_shortterm_pkts),
            full_bw_reached: state.flags & raw::CC_BBR_FULL_BW_REACHED != 0,
        }
    }
}

fn pkts_per_s(bw: u32) -> f64 {
    f64::from(bw) * 1e6 / f64::from(1u32 << raw::CC_BBR_BW_BITS)
}

fn known(value: u32) -> Option<u32> {
    (value != raw::CC_BBR_NONE).then_some(value)
}
