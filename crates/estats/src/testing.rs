// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples for tests: a flow that only waits, and what a test says differs from it.

use fatpath_api::{CaState, Flow, LimitedBy, Sample, SampleKind};

/// In ns.
pub const SECOND: u64 = 1_000_000_000;

/// A flow that began at 100 s of the clock.
pub const BEGIN: u64 = 100 * SECOND;

/// Of a flow over 20 ms, `after_ns` after its begin.
pub fn sample(cookie: u64, kind: SampleKind, after_ns: u64) -> Sample {
    Sample {
        kind,
        flow: flow(cookie),
        now_ns: BEGIN + after_ns,
        begin_ns: BEGIN,
        is_tracked: true,
        state: 1,
        ca_state: CaState::Open,
        law: "cubic".into(),
        segs_out: 1,
        data_segs_out: 0,
        bytes_sent: 0,
        segs_retrans: 0,
        bytes_retrans: 0,
        segs_in: 1,
        data_segs_in: 0,
        bytes_received: 0,
        bytes_acked: 1,
        delivered_pkts: 1,
        delivered_ce_pkts: 0,
        lost_pkts: 0,
        snd_una: 1,
        snd_nxt: 1,
        rcv_nxt: 1,
        busy_us: 0,
        rwnd_limited_us: 0,
        sndbuf_limited_us: 0,
        limited_by: LimitedBy::Idle,
        lim_trans_rwin: 0,
        lim_trans_cwnd: 0,
        lim_trans_snd: 0,
        cong_signals: 0,
        timeouts: 0,
        subsequent_timeouts: 0,
        slow_start_acks: Some(0),
        cong_avoid_acks: Some(0),
        pre_cong_sum_cwnd_pkts: 0,
        post_cong_sum_ssthresh_pkts: 0,
        pre_cong_sum_rtt_us: 0,
        rtt_us: Some(20_000),
        srtt_us: 20_000,
        rttvar_us: 1_000,
        min_rtt_us: Some(20_000),
        max_rtt_us: 20_000,
        sum_rtt_us: 20_000,
        count_rtt: 1,
        rto_us: 220_000,
        rcv_rtt_us: 0,
        mss_bytes: 1000,
        adv_mss_bytes: 1460,
        pmtu_bytes: 1500,
        dsack_dups: 0,
        reord_seen: 0,
        reordering_pkts: 3,
        rcv_ooopack: 0,
        ecn_is_on: false,
        sack_is_on: true,
        timestamps_are_on: true,
        cwnd_pkts: 10,
        ssthresh_pkts: None,
        packets_out: 0,
        sacked_out: 0,
        lost_out: 0,
        retrans_out: 0,
        peer_window_bytes: 4 << 20,
        max_peer_window_bytes: 4 << 20,
        receive_window_bytes: 65_535,
        send_wscale: 7,
        receive_wscale: 7,
        retransmits: 0,
        backoff: 0,
        delivery_rate_bytes_per_s: None,
        delivery_rate_is_app_limited: false,
        is_app_limited: false,
        is_cwnd_limited: false,
        waits_for_send_buffer: false,
        unsent_bytes: 0,
        unread_bytes: 0,
        send_buffer_bytes: 4 << 20,
        receive_buffer_bytes: 131_072,
        send_buffer_is_locked: false,
        receive_buffer_is_locked: false,
        cwnd_clamp_pkts: u32::MAX,
        window_clamp_bytes: 65_535,
        pacing_rate_bytes_per_s: 0,
        is_rude: false,
        buffer_is_withheld: false,
        bbr: None,
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
