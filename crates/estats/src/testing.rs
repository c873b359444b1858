// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples for tests: a flow that only waits, and what a test says differs from it.

use fatpath_api::{Flow, Sample, SampleKind};

/// In ns.
pub const SECOND: u64 = 1_000_000_000;

/// A flow that began at 100 s of the clock.
pub const BEGIN: u64 = 100 * SECOND;

/// Of a flow over 20 ms, `after_ns` after its begin.
pub fn sample(cookie: u64, kind: SampleKind, after_ns: u64) -> Sample {
    Sample {
        now_ns: BEGIN + after_ns,
        begin_ns: BEGIN,
        is_tracked: true,
        state: 1,
        law: "cubic".into(),
        segs_out: 1,
        segs_in: 1,
        bytes_acked: 1,
        delivered_pkts: 1,
        snd_una: 1,
        snd_nxt: 1,
        rcv_nxt: 1,
        slow_start_acks: Some(0),
        cong_avoid_acks: Some(0),
        rtt_us: Some(20_000),
        srtt_us: 20_000,
        rttvar_us: 1_000,
        min_rtt_us: Some(20_000),
        max_rtt_us: 20_000,
        sum_rtt_us: 20_000,
        count_rtt: 1,
        rto_us: 220_000,
        mss_bytes: 1000,
        adv_mss_bytes: 1460,
        pmtu_bytes: 1500,
        reordering_pkts: 3,
        sack_is_on: true,
        timestamps_are_on: true,
        cwnd_pkts: 10,
        peer_window_bytes: 4 << 20,
        max_peer_window_bytes: 4 << 20,
        receive_window_bytes: 65_535,
        send_wscale: 7,
        receive_wscale: 7,
        send_buffer_bytes: 4 << 20,
        receive_buffer_bytes: 131_072,
        cwnd_clamp_pkts: u32::MAX,
        window_clamp_bytes: 65_535,
        ..Sample::unknown(kind, flow(cookie))
    }
}

/// Its parts but the cookie are always the same.
///
/// # Panics
/// Never: the addresses are good.
#[allow(clippy::unwrap_used)]
pub fn flow(cookie: u64) -> Flow {
    Flow {
        cookie,
        local: "10.0.0.1:5000".parse().unwrap(),
        remote: "10.0.0.2:5001".parse().unwrap(),
        netns: 1,
        cgroup_id: 1,
        rule_id: None,
        is_passive: false,
        is_adopted: false,
    }
}
