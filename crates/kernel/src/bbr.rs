// SPDX-License-Identifier: MIT OR Apache-2.0
//! BBR's model of a flow's path, from the kernel half's fixed-point numbers.

use crate::abi::fp_bbr;
use fatpath_api::{BbrPhase, BbrState};

/// In the order of enum cc_bbr_phase of bpf/cc/bbr_model.h.
const PHASES: [BbrPhase; 7] = [
    BbrPhase::Startup,
    BbrPhase::Drain,
    BbrPhase::ProbeBwDown,
    BbrPhase::ProbeBwCruise,
    BbrPhase::ProbeBwRefill,
    BbrPhase::ProbeBwUp,
    BbrPhase::ProbeRtt,
];

/// `None`: the flow is under another law.
#[inline]
pub(crate) fn bbr_state(r: &fp_bbr, mss_bytes: u32) -> Option<BbrState> {
    let place = r.phase.checked_sub(1)?;
    let bytes_per_s = |bw: u32| ((u64::from(bw) * 1_000_000) >> 24) * u64::from(mss_bytes);
    let known = |value: u32| (value != u32::MAX).then_some(value);
    Some(BbrState {
        phase: *PHASES.get(place as usize)?,
        bw_bytes_per_s: bytes_per_s(r.bw),
        max_bw_bytes_per_s: bytes_per_s(r.max_bw),
        bw_shortterm_bytes_per_s: known(r.bw_shortterm).map(bytes_per_s),
        min_rtt_us: known(r.min_rtt_us),
        inflight_longterm_pkts: known(r.inflight_longterm_pkts),
        inflight_shortterm_pkts: known(r.inflight_shortterm_pkts),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_law_has_no_such_state_and_a_bound_may_be_absent() {
        assert_eq!(bbr_state(&fp_bbr::default(), 1448), None);
        let state = bbr_state(
            &fp_bbr {
                phase: 4,
                bw: 1 << 24,
                bw_shortterm: u32::MAX,
                inflight_longterm_pkts: 7,
                ..fp_bbr::default()
            },
            1000,
        );
        let state = state.expect("it is BBR's");
        assert_eq!(state.phase, BbrPhase::ProbeBwCruise);
        assert_eq!(state.bw_bytes_per_s, 1_000_000_000);
        assert_eq!(state.bw_shortterm_bytes_per_s, None);
        assert_eq!(state.inflight_longterm_pkts, Some(7));
    }
}
