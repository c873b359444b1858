// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows as a bulk transfer over 100 ms gives them.

use fatpath_record::Row;
use serde_json::json;

/// 2026-11-22T00:00:00Z.
pub const BEGIN_US: i64 = 1_795_305_600_000_000;

/// The nth row of a flow, each 100 ms; its counters follow from `n` alone.
pub fn row(cookie: u64, n: u64) -> Row {
    let sample = json!({
        "kind": if n == 0 { "begin" } else { "interval" },
        "flow": {
            "cookie": cookie, "local": "10.0.0.1:40000", "remote": format!("[2001:db8::{cookie}]:5201"),
            "netns": 4_026_531_840u32, "cgroup_id": 1, "rule_id": null, "is_passive": false, "is_adopted": false,
        },
        "now_ns": 5_000_000_000 + n * 100_000_000, "begin_ns": 5_000_000_000u64,
        "state": 1, "ca_state": "open", "law": "fp_scalable",
        "segs_out": n * 100, "data_segs_out": n * 100, "bytes_sent": n * 144_800, "segs_retrans": n / 10,
        "bytes_retrans": n / 10 * 1448, "segs_in": n * 50, "data_segs_in": 0, "bytes_received": 0,
        "bytes_acked": n * 125_000, "delivered_pkts": n * 100, "delivered_ce_pkts": 0, "lost_pkts": 0,
        "snd_una": 1, "snd_nxt": 2, "rcv_nxt": 3, "busy_us": n * 100_000, "rwnd_limited_us": 0,
        "sndbuf_limited_us": 0, "limited_by": "network", "lim_trans_rwin": 0, "lim_trans_cwnd": 1,
        "lim_trans_snd": 0, "cong_signals": n / 10, "timeouts": 0, "subsequent_timeouts": 0, "is_tracked": true, "slow_start_acks": 10, "cong_avoid_acks": n,
        "pre_cong_sum_cwnd_pkts": 0, "post_cong_sum_ssthresh_pkts": 0, "pre_cong_sum_rtt_us": 0,
        "rtt_us": if n % 2 == 0 { json!(100_000 + n) } else { json!(null) }, "srtt_us": 100_500, "rttvar_us": 200,
        "min_rtt_us": 100_000, "max_rtt_us": 101_000, "sum_rtt_us": n * 100_000, "count_rtt": n,
        "rto_us": 300_000, "rcv_rtt_us": 0, "mss_bytes": 1448, "adv_mss_bytes": 1448, "pmtu_bytes": 1500,
        "dsack_dups": 0, "reord_seen": 0, "reordering_pkts": 3, "rcv_ooopack": 0, "ecn_is_on": false,
        "sack_is_on": true, "timestamps_are_on": true, "cwnd_pkts": 100 + n % 7,
        "ssthresh_pkts": if n < 10 { json!(null) } else { json!(50) }, "packets_out": 90, "sacked_out": 4,
        "lost_out": 1, "retrans_out": 1, "peer_window_bytes": 1 << 20, "max_peer_window_bytes": 1 << 20,
        "receive_window_bytes": 65_535, "send_wscale": 7, "receive_wscale": 7, "retransmits": 0, "backoff": 0,
        "delivery_rate_bytes_per_s": 1_250_000, "delivery_rate_is_app_limited": false, "is_cwnd_limited": true, "waits_for_send_buffer": false,
        "unsent_bytes": 4096, "unread_bytes": 0, "send_buffer_bytes": 1 << 20, "receive_buffer_bytes": 1 << 20,
        "send_buffer_is_locked": false, "receive_buffer_is_locked": false, "cwnd_clamp_pkts": u32::MAX,
        "window_clamp_bytes": 0, "pacing_rate_bytes_per_s": 1_u64 << 40, "is_rude": false,
    });
    Row {
        time_us: BEGIN_US + n as i64 * 100_000,
        sample: serde_json::from_value(sample).expect("the fields are those of a sample"),
    }
}
