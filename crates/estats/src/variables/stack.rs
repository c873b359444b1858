// SPDX-License-Identifier: MIT OR Apache-2.0
//! tcpEStatsStackTable: the state of TCP itself.

use super::Group::Stack as G;
use super::{KEPT, NO_COUNTER, Variable, absent, given};
use fatpath_api::CaState;

pub(super) const ALL: &[Variable] = &[
    given(
        ("ActiveOpen", G),
        "",
        "this host opened it",
        ("callback of sockops", "4.13"),
        |s| Some(f64::from(u8::from(!s.flow.is_passive))),
    ),
    given(
        ("MSSSent", G),
        "bytes",
        "MSS announced to the peer",
        ("advmss", "2.6"),
        |s| Some(s.adv_mss_bytes.into()),
    ),
    absent(
        ("MSSRcvd", G),
        "MSS that the peer announced",
        "only the smaller of it and the own limit is kept",
    ),
    given(
        ("WinScaleSent", G),
        "",
        "window scale announced",
        ("rx_opt.rcv_wscale", "2.6"),
        |s| Some(s.receive_wscale.into()),
    ),
    given(
        ("WinScaleRcvd", G),
        "",
        "window scale that the peer announced",
        ("rx_opt.snd_wscale", "2.6"),
        |s| Some(s.send_wscale.into()),
    ),
    given(
        ("TimeStamps", G),
        "",
        "time stamps are on",
        ("rx_opt.tstamp_ok", "2.6"),
        |s| Some(f64::from(u8::from(s.timestamps_are_on))),
    ),
    given(("ECN", G), "", "ECN is on", ("ecn_flags", "2.6"), |s| {
        Some(f64::from(u8::from(s.ecn_is_on)))
    }),
    given(
        ("WillSendSACK", G),
        "",
        "selective acknowledgements were agreed on",
        ("rx_opt.sack_ok", "2.6"),
        |s| Some(f64::from(u8::from(s.sack_is_on))),
    ),
    given(
        ("WillUseSACK", G),
        "",
        "the same: Linux uses what it agreed on",
        ("rx_opt.sack_ok", "2.6"),
        |s| Some(f64::from(u8::from(s.sack_is_on))),
    ),
    given(
        ("State", G),
        "",
        "TCP_ESTABLISHED = 1 and so on, as Linux numbers them",
        ("sk_state", "2.6"),
        |s| Some(s.state.into()),
    ),
    absent(
        ("Nagle", G),
        "the algorithm of RFC 896 is on",
        "not read: programs switch it at will",
    ),
    given(
        ("MaxSsCwnd", G),
        "segments",
        "largest window in slow start",
        KEPT,
        |s| s.extremes.and_then(|x| x.max_ss_cwnd_pkts).map(f64::from),
    ),
    given(
        ("MaxCaCwnd", G),
        "segments",
        "largest window in congestion avoidance",
        KEPT,
        |s| s.extremes.and_then(|x| x.max_ca_cwnd_pkts).map(f64::from),
    ),
    given(
        ("MaxSsthresh", G),
        "segments",
        "largest threshold",
        KEPT,
        |s| s.extremes.and_then(|x| x.max_ssthresh_pkts).map(f64::from),
    ),
    given(
        ("MinSsthresh", G),
        "segments",
        "least threshold",
        KEPT,
        |s| s.extremes.and_then(|x| x.min_ssthresh_pkts).map(f64::from),
    ),
    given(
        ("InRecovery", G),
        "",
        "loss recovery is under way",
        ("icsk_ca_state", "2.6"),
        |s| {
            Some(f64::from(u8::from(matches!(
                s.ca_state,
                CaState::Recovery | CaState::Loss
            ))))
        },
    ),
    absent(
        ("DupAcksIn", G),
        "duplicate acknowledgements received",
        NO_COUNTER,
    ),
    absent(
        ("SpuriousFrDetected", G),
        "fast retransmissions found spurious",
        "counted for the host alone (TCPFullUndo)",
    ),
    absent(
        ("SpuriousRtoDetected", G),
        "timeouts found spurious",
        "counted for the host alone (TCPSpuriousRTOs)",
    ),
    absent(
        ("SoftErrors", G),
        "bad segments",
        "counted for the host alone",
    ),
    absent(("SoftErrorReason", G), "reason of the last one", NO_COUNTER),
    given(
        ("SlowStart", G),
        "",
        "acknowledgements that enlarged the window in slow start",
        ("counted by fatpath", ""),
        |s| s.slow_start_acks.map(f64::from),
    ),
    given(
        ("CongAvoid", G),
        "",
        "acknowledgements that enlarged it in congestion avoidance",
        ("counted by fatpath", ""),
        |s| s.cong_avoid_acks.map(f64::from),
    ),
    absent(
        ("OtherReductions", G),
        "reductions without a congestion signal",
        NO_COUNTER,
    ),
    absent(
        ("CongOverCount", G),
        "congestion signals that a later one proved wrong",
        NO_COUNTER,
    ),
    absent(
        ("FastRetran", G),
        "fast retransmissions",
        "the kernel counts them with all others",
    ),
    given(
        ("SubsequentTimeouts", G),
        "",
        "timeouts after the first of a series",
        ("counted by fatpath", ""),
        |s| Some(s.subsequent_timeouts.into()),
    ),
    given(
        ("CurTimeoutCount", G),
        "",
        "timeouts in a row until now",
        ("icsk_retransmits", "2.6"),
        |s| Some(s.retransmits.into()),
    ),
    absent(
        ("AbruptTimeouts", G),
        "timeouts without a duplicate acknowledgement before",
        NO_COUNTER,
    ),
    absent(
        ("SACKsRcvd", G),
        "segments with SACK blocks received",
        NO_COUNTER,
    ),
    absent(("SACKBlocksRcvd", G), "SACK blocks received", NO_COUNTER),
    absent(
        ("SendStall", G),
        "full queues of the interface",
        "counted for the host alone",
    ),
    given(
        ("DSACKDups", G),
        "",
        "duplicates that the peer reported",
        ("dsack_dups", "4.19"),
        |s| Some(s.dsack_dups.into()),
    ),
    given(("MaxMSS", G), "bytes", "largest CurMSS", KEPT, |s| {
        s.extremes.map(|x| x.max_mss_bytes.into())
    }),
    given(("MinMSS", G), "bytes", "least CurMSS", KEPT, |s| {
        s.extremes.map(|x| x.min_mss_bytes.into())
    }),
    absent(("SndInitial", G), "first sequence number sent", "not kept"),
    absent(
        ("RecInitial", G),
        "first sequence number received",
        "not kept",
    ),
    given(
        ("CurRetxQueue", G),
        "segments",
        "sent and not acknowledged",
        ("packets_out", "2.6"),
        |s| Some(s.packets_out.into()),
    ),
    given(
        ("MaxRetxQueue", G),
        "segments",
        "largest CurRetxQueue",
        KEPT,
        |s| s.extremes.map(|x| x.max_retx_queue_pkts.into()),
    ),
    given(
        ("CurReasmQueue", G),
        "bytes",
        "sequence space from RcvNxt to the farthest segment out of order",
        ("ooo_last_skb", "4.9"),
        |s| Some(s.reasm_queue_bytes.into()),
    ),
    given(
        ("MaxReasmQueue", G),
        "bytes",
        "largest CurReasmQueue",
        KEPT,
        |s| s.extremes.map(|x| x.max_reasm_queue_bytes.into()),
    ),
    absent(
        ("EarlyRetrans", G),
        "early retransmissions (RFC 5827)",
        "taken out of Linux in 4.14",
    ),
    absent(
        ("EarlyRetransDelay", G),
        "such that waited",
        "taken out of Linux in 4.14",
    ),
];
