// SPDX-License-Identifier: MIT OR Apache-2.0
//! tcpEStatsPerfTable: what decides throughput.

use super::Group::Perf as G;
use super::{KEPT, NO_COUNTER, Variable, absent, given};

pub(super) const ALL: &[Variable] = &[
    given(
        ("SegsOut", G),
        "segments",
        "segments sent",
        ("segs_out", "4.2"),
        |s| Some(s.segs_out as f64),
    ),
    given(
        ("DataSegsOut", G),
        "segments",
        "segments sent with payload",
        ("data_segs_out", "4.6"),
        |s| Some(s.data_segs_out as f64),
    ),
    given(
        ("DataOctetsOut", G),
        "bytes",
        "payload sent, retransmissions included, modulo 2^32",
        ("bytes_sent", "4.19"),
        |s| Some((s.bytes_sent as u32).into()),
    ),
    given(
        ("HCDataOctetsOut", G),
        "bytes",
        "payload sent, retransmissions included",
        ("bytes_sent", "4.19"),
        |s| Some(s.bytes_sent as f64),
    ),
    given(
        ("SegsRetrans", G),
        "segments",
        "segments retransmitted",
        ("total_retrans", "2.6"),
        |s| Some(s.segs_retrans as f64),
    ),
    given(
        ("OctetsRetrans", G),
        "bytes",
        "payload retransmitted",
        ("bytes_retrans", "4.19"),
        |s| Some(s.bytes_retrans as f64),
    ),
    given(
        ("SegsIn", G),
        "segments",
        "segments received",
        ("segs_in", "4.2"),
        |s| Some(s.segs_in as f64),
    ),
    given(
        ("DataSegsIn", G),
        "segments",
        "segments received with payload",
        ("data_segs_in", "4.6"),
        |s| Some(s.data_segs_in as f64),
    ),
    given(
        ("DataOctetsIn", G),
        "bytes",
        "payload received in order, modulo 2^32",
        ("bytes_received", "4.1"),
        |s| Some((s.bytes_received as u32).into()),
    ),
    given(
        ("HCDataOctetsIn", G),
        "bytes",
        "payload received in order; duplicates are not counted",
        ("bytes_received", "4.1"),
        |s| Some(s.bytes_received as f64),
    ),
    given(
        ("ElapsedSecs", G),
        "s",
        "whole seconds since fatpath first saw the flow",
        ("counted by fatpath", ""),
        |s| Some(s.elapsed_s().floor()),
    ),
    given(
        ("ElapsedMicroSecs", G),
        "us",
        "what ElapsedSecs leaves",
        ("counted by fatpath", ""),
        |s| Some((s.elapsed_s().fract() * 1e6).floor()),
    ),
    given(
        ("StartTimeStamp", G),
        "s",
        "when fatpath first saw the flow, on the clock of now",
        ("counted by fatpath", ""),
        |s| Some(s.begin_ns as f64 / 1e9),
    ),
    given(
        ("CurMSS", G),
        "bytes",
        "segment size",
        ("mss_cache", "2.6"),
        |s| Some(s.mss_bytes.into()),
    ),
    given(
        ("PipeSize", G),
        "bytes",
        "in flight, as the sender estimates it",
        ("tcp_packets_in_flight() x mss_cache", "2.6"),
        |s| Some(f64::from(s.in_flight_pkts()) * f64::from(s.mss_bytes)),
    ),
    given(("MaxPipeSize", G), "bytes", "largest PipeSize", KEPT, |s| {
        s.extremes.map(|x| x.max_pipe_bytes as f64)
    }),
    given(
        ("SmoothedRTT", G),
        "us",
        "smoothed round-trip time",
        ("srtt_us", "3.15"),
        |s| Some(s.srtt_us.into()),
    ),
    given(
        ("CurRTO", G),
        "us",
        "retransmission timeout",
        ("icsk_rto", "2.6"),
        |s| Some(s.rto_us.into()),
    ),
    given(
        ("CongSignals", G),
        "",
        "reductions of the congestion window",
        ("counted by fatpath", ""),
        |s| Some(s.cong_signals.into()),
    ),
    given(
        ("CurCwnd", G),
        "segments",
        "congestion window",
        ("snd_cwnd", "2.6"),
        |s| Some(s.cwnd_pkts.into()),
    ),
    given(
        ("CurSsthresh", G),
        "segments",
        "slow-start threshold; none while it was never set",
        ("snd_ssthresh", "2.6"),
        |s| s.ssthresh_pkts.map(f64::from),
    ),
    given(
        ("Timeouts", G),
        "",
        "ends of the retransmission timer with a backoff of one",
        ("counted by fatpath", ""),
        |s| Some(s.timeouts.into()),
    ),
    given(
        ("CurRwinSent", G),
        "bytes",
        "window announced to the peer",
        ("rcv_wnd", "2.6"),
        |s| Some(s.receive_window_bytes.into()),
    ),
    given(
        ("MaxRwinSent", G),
        "bytes",
        "largest CurRwinSent",
        KEPT,
        |s| s.extremes.map(|x| x.max_rwin_sent_bytes.into()),
    ),
    absent(
        ("ZeroRwinSent", G),
        "announcements of a window of 0",
        NO_COUNTER,
    ),
    given(
        ("CurRwinRcvd", G),
        "bytes",
        "window that the peer announced last",
        ("snd_wnd", "2.6"),
        |s| Some(s.peer_window_bytes.into()),
    ),
    given(
        ("MaxRwinRcvd", G),
        "bytes",
        "largest CurRwinRcvd",
        ("max_window", "2.6"),
        |s| Some(s.max_peer_window_bytes.into()),
    ),
    absent(
        ("ZeroRwinRcvd", G),
        "announcements of a window of 0 by the peer",
        NO_COUNTER,
    ),
    given(
        ("SndLimTransRwin", G),
        "",
        "changes to being limited by the peer, as samples saw them",
        ("chrono_type", "4.10"),
        |s| Some(s.lim_trans_rwin.into()),
    ),
    given(
        ("SndLimTransCwnd", G),
        "",
        "changes to being limited by the network, as samples saw them",
        ("chrono_type", "4.10"),
        |s| Some(s.lim_trans_cwnd.into()),
    ),
    given(
        ("SndLimTransSnd", G),
        "",
        "changes to being limited by the sender, as samples saw them",
        ("chrono_type", "4.10"),
        |s| Some(s.lim_trans_snd.into()),
    ),
    given(
        ("SndLimTimeRwin", G),
        "us",
        "limited by the window of the peer",
        ("chrono_stat[RWND_LIMITED]", "4.10"),
        |s| Some(s.rwnd_limited_us as f64),
    ),
    given(
        ("SndLimTimeCwnd", G),
        "us",
        "limited by the network: busy, and neither of the other two",
        ("chrono_stat[BUSY] less the others", "4.10"),
        |s| {
            Some(
                (s.busy_us
                    .saturating_sub(s.rwnd_limited_us + s.sndbuf_limited_us))
                    as f64,
            )
        },
    ),
    given(
        ("SndLimTimeSnd", G),
        "us",
        "limited by the send buffer; idle time is not counted",
        ("chrono_stat[SNDBUF_LIMITED]", "4.10"),
        |s| Some(s.sndbuf_limited_us as f64),
    ),
];
