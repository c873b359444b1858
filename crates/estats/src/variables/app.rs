// SPDX-License-Identifier: MIT OR Apache-2.0
//! tcpEStatsAppTable and tcpEStatsTuneTable: what the application does, and limits that can be set.

use super::Group;
use super::Group::App as G;
use super::{KEPT, Variable, absent, given};

pub(super) const ALL: &[Variable] = &[
    given(
        ("SndUna", G),
        "",
        "oldest sequence number not acknowledged",
        ("snd_una", "2.6"),
        |s| Some(s.snd_una.into()),
    ),
    given(
        ("SndNxt", G),
        "",
        "next sequence number to send",
        ("snd_nxt", "2.6"),
        |s| Some(s.snd_nxt.into()),
    ),
    given(
        ("SndMax", G),
        "",
        "farthest sequence number sent: Linux never sets snd_nxt back",
        ("snd_nxt", "2.6"),
        |s| Some(s.snd_nxt.into()),
    ),
    given(
        ("ThruOctetsAcked", G),
        "bytes",
        "bytes that the peer acknowledged, modulo 2^32",
        ("bytes_acked", "4.1"),
        |s| Some((s.bytes_acked as u32).into()),
    ),
    given(
        ("HCThruOctetsAcked", G),
        "bytes",
        "bytes that the peer acknowledged",
        ("bytes_acked", "4.1"),
        |s| Some(s.bytes_acked as f64),
    ),
    given(
        ("RcvNxt", G),
        "",
        "next sequence number to receive",
        ("rcv_nxt", "2.6"),
        |s| Some(s.rcv_nxt.into()),
    ),
    given(
        ("ThruOctetsReceived", G),
        "bytes",
        "bytes received in order, modulo 2^32",
        ("bytes_received", "4.1"),
        |s| Some((s.bytes_received as u32).into()),
    ),
    given(
        ("HCThruOctetsReceived", G),
        "bytes",
        "bytes received in order",
        ("bytes_received", "4.1"),
        |s| Some(s.bytes_received as f64),
    ),
    given(
        ("CurAppWQueue", G),
        "bytes",
        "written and not sent",
        ("write_seq - snd_nxt", "2.6"),
        |s| Some(s.unsent_bytes.into()),
    ),
    given(
        ("MaxAppWQueue", G),
        "bytes",
        "largest CurAppWQueue",
        KEPT,
        |s| s.extremes.map(|x| x.max_app_wqueue_bytes.into()),
    ),
    given(
        ("CurAppRQueue", G),
        "bytes",
        "received and not read",
        ("rcv_nxt - copied_seq", "2.6"),
        |s| Some(s.unread_bytes.into()),
    ),
    given(
        ("MaxAppRQueue", G),
        "bytes",
        "largest CurAppRQueue",
        KEPT,
        |s| s.extremes.map(|x| x.max_app_rqueue_bytes.into()),
    ),
    given(
        ("LimCwnd", Group::Tune),
        "segments",
        "largest congestion window allowed",
        ("snd_cwnd_clamp", "2.6"),
        |s| Some(s.cwnd_clamp_pkts.into()),
    ),
    absent(
        ("LimSsthresh", Group::Tune),
        "largest threshold allowed",
        "Linux has no such limit",
    ),
    given(
        ("LimRwin", Group::Tune),
        "bytes",
        "largest window that may be announced",
        ("window_clamp", "2.6"),
        |s| Some(s.window_clamp_bytes.into()),
    ),
    absent(
        ("LimMSS", Group::Tune),
        "largest segment allowed",
        "set in the handshake, and not kept apart from CurMSS",
    ),
];
