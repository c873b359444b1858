// SPDX-License-Identifier: MIT OR Apache-2.0
//! What Linux has and RFC 4898 has not.

use super::Group::Linux as G;
use super::{Variable, given};

pub(super) const ALL: &[Variable] = &[
    given(
        ("now", G),
        "s",
        "time of the sample: CLOCK_MONOTONIC",
        ("counted by fatpath", ""),
        |s| Some(s.now_ns as f64 / 1e9),
    ),
    given(
        ("BusyTime", G),
        "us",
        "something to send or in flight",
        ("chrono_stat[BUSY]", "4.10"),
        |s| Some(s.busy_us as f64),
    ),
    given(
        ("Delivered", G),
        "segments",
        "segments delivered",
        ("delivered", "4.6"),
        |s| Some(s.delivered_pkts as f64),
    ),
    given(
        ("Lost", G),
        "segments",
        "segments marked lost",
        ("lost", "4.9"),
        |s| Some(s.lost_pkts as f64),
    ),
    given(
        ("SackedOut", G),
        "segments",
        "sent, and selectively acknowledged",
        ("sacked_out", "2.6"),
        |s| Some(s.sacked_out.into()),
    ),
    given(
        ("LostOut", G),
        "segments",
        "sent, and taken for lost",
        ("lost_out", "2.6"),
        |s| Some(s.lost_out.into()),
    ),
    given(
        ("RetransOut", G),
        "segments",
        "retransmitted, and in flight",
        ("retrans_out", "2.6"),
        |s| Some(s.retrans_out.into()),
    ),
    given(
        ("ReordSeen", G),
        "",
        "times that reordering was seen",
        ("reord_seen", "4.19"),
        |s| Some(s.reord_seen.into()),
    ),
    given(
        ("OutOfOrderIn", G),
        "segments",
        "segments received out of order",
        ("rcv_ooopack", "5.4"),
        |s| Some(s.rcv_ooopack.into()),
    ),
    given(
        ("DeliveryRate", G),
        "bytes/s",
        "latest sample of the delivery rate",
        ("rate_delivered / rate_interval_us", "4.9"),
        |s| s.delivery_rate_bytes_per_s.map(|rate| rate as f64),
    ),
    given(
        ("IsAppLimited", G),
        "",
        "the application limited that sample",
        ("rate_app_limited", "4.9"),
        |s| Some(f64::from(u8::from(s.delivery_rate_is_app_limited))),
    ),
    given(
        ("IsCwndLimited", G),
        "",
        "the congestion window was full",
        ("is_cwnd_limited", "3.11"),
        |s| Some(f64::from(u8::from(s.is_cwnd_limited))),
    ),
    given(
        ("PacingRate", G),
        "bytes/s",
        "rate of pacing",
        ("sk_pacing_rate", "3.12"),
        |s| Some(s.pacing_rate_bytes_per_s as f64),
    ),
    given(
        ("PathMTU", G),
        "bytes",
        "largest packet",
        ("icsk_pmtu_cookie", "2.6"),
        |s| Some(s.pmtu_bytes.into()),
    ),
    given(
        ("SendBuffer", G),
        "bytes",
        "send buffer with its overhead",
        ("sk_sndbuf", "2.6"),
        |s| Some(s.send_buffer_bytes.into()),
    ),
    given(
        ("ReceiveBuffer", G),
        "bytes",
        "receive buffer with its overhead",
        ("sk_rcvbuf", "2.6"),
        |s| Some(s.receive_buffer_bytes.into()),
    ),
    given(
        ("PostCongSumSsthresh", G),
        "segments",
        "sum of the thresholds just after each reduction",
        ("counted by fatpath", ""),
        |s| Some(s.post_cong_sum_ssthresh_pkts as f64),
    ),
];
