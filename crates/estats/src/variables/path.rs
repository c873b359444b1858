// SPDX-License-Identifier: MIT OR Apache-2.0
//! tcpEStatsPathTable: what is known of the path.

use super::Group::Path as G;
use super::{KEPT, NO_COUNTER, Variable, absent, given};

pub(super) const ALL: &[Variable] = &[
    given(
        ("RetranThresh", G),
        "segments",
        "distance that counts as reordering, no longer as loss",
        ("reordering", "2.6"),
        |s| Some(s.reordering_pkts.into()),
    ),
    absent(
        ("NonRecovDAEpisodes", G),
        "duplicate acknowledgements without a retransmission, in episodes",
        NO_COUNTER,
    ),
    absent(
        ("SumOctetsReordered", G),
        "bytes of such episodes",
        NO_COUNTER,
    ),
    absent(
        ("NonRecovDA", G),
        "such duplicate acknowledgements",
        NO_COUNTER,
    ),
    given(
        ("SampleRTT", G),
        "us",
        "latest measurement",
        ("argument of the RTT callback", "5.4"),
        |s| s.rtt_us.map(f64::from),
    ),
    given(
        ("RTTVar", G),
        "us",
        "variation of the round-trip time",
        ("mdev_us", "3.15"),
        |s| Some(s.rttvar_us.into()),
    ),
    given(
        ("MaxRTT", G),
        "us",
        "largest measurement",
        ("counted by fatpath", ""),
        |s| Some(s.max_rtt_us.into()),
    ),
    given(
        ("MinRTT", G),
        "us",
        "least measurement of the last minutes (tcp_min_rtt_wlen)",
        ("rtt_min", "4.9"),
        |s| s.min_rtt_us.map(f64::from),
    ),
    given(
        ("SumRTT", G),
        "us",
        "sum of the measurements, modulo 2^32",
        ("counted by fatpath", ""),
        |s| Some((s.sum_rtt_us as u32).into()),
    ),
    given(
        ("HCSumRTT", G),
        "us",
        "sum of the measurements",
        ("counted by fatpath", ""),
        |s| Some(s.sum_rtt_us as f64),
    ),
    given(
        ("CountRTT", G),
        "",
        "measurements in the sum",
        ("counted by fatpath", ""),
        |s| Some(s.count_rtt.into()),
    ),
    given(("MaxRTO", G), "us", "largest CurRTO", KEPT, |s| {
        s.extremes.map(|x| x.max_rto_us.into())
    }),
    given(("MinRTO", G), "us", "least CurRTO", KEPT, |s| {
        s.extremes.map(|x| x.min_rto_us.into())
    }),
    absent(
        ("IpTtl", G),
        "TTL of the packets that came",
        "the socket does not keep it",
    ),
    absent(
        ("IpTosIn", G),
        "TOS of the packets that came",
        "the socket keeps it only where a program asked for it",
    ),
    absent(
        ("IpTosOut", G),
        "TOS of the packets that go",
        "not read: it decides nothing here",
    ),
    given(
        ("PreCongSumCwnd", G),
        "segments",
        "sum of the windows just before each reduction",
        ("counted by fatpath", ""),
        |s| Some(s.pre_cong_sum_cwnd_pkts as f64),
    ),
    given(
        ("PreCongSumRTT", G),
        "us",
        "sum of the round trips just before each reduction",
        ("counted by fatpath", ""),
        |s| Some(s.pre_cong_sum_rtt_us as f64),
    ),
    absent(
        ("PostCongSumRTT", G),
        "sum of the round trips just after each reduction",
        "no hook at the first acknowledgement after it",
    ),
    absent(
        ("PostCongCountRTT", G),
        "measurements in that sum",
        "no hook at the first acknowledgement after it",
    ),
    given(
        ("ECNsignals", G),
        "segments",
        "segments delivered by acknowledgements that echo a mark of congestion",
        ("delivered_ce", "4.18"),
        |s| Some(s.delivered_ce_pkts as f64),
    ),
    absent(
        ("DupAckEpisodes", G),
        "series of duplicate acknowledgements",
        NO_COUNTER,
    ),
    given(
        ("RcvRTT", G),
        "us",
        "round-trip time as the receiving side estimates it",
        ("rcv_rtt_est.rtt_us", "4.13"),
        |s| Some(s.rcv_rtt_us.into()),
    ),
    absent(
        ("DupAcksOut", G),
        "duplicate acknowledgements sent",
        NO_COUNTER,
    ),
    absent(
        ("CERcvd", G),
        "marks of congestion received",
        "counted only by Accurate ECN",
    ),
    absent(("ECESent", G), "ECE bits sent", NO_COUNTER),
];
