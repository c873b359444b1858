// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiting for timers: retransmission, delayed acknowledgement, a path MTU that nobody tells.

use super::{Finding, HOLDS, Severity, by_share, gain};
use crate::span::{Span, ratio};
use fatpath_api::Sample;

/// A single end of the timer is an accident.
const LEAST_TIMEOUTS: u64 = 2;

/// From this share of the time on, waiting for the timer is a cause.
const WAITS: f64 = 0.1;

/// Smaller segments pass every path (RFC 9293, section 3.7.1: 536 bytes; RFC 8201: IPv6's 1280 less headers).
const SMALL_MSS_BYTES: u32 = 1220;

/// Delayed acknowledgements wait 40 ms in Linux (TCP_DELACK_MIN), up to 500 elsewhere (RFC 9293); every
/// second one is not delayed, for it comes with the answer.
const DELAYED_US: f64 = 10_000.0;

/// So few in flight are a message, no stream.
const MESSAGE_PKTS: f64 = 2.0;

/// Above the 40 ms by which Linux delays an acknowledgement.
const CURED_RTO_MIN_US: f64 = 50_000.0;

/// The least delay that the kernel takes over its own 40 ms: two ticks, and half of the one in which its timer ends, 10 ms
/// at 250 Hz.
const CURED_DELAY: f64 = 0.25;

/// FP-PMTU-BLACKHOLE: full segments vanish, and no full one was ever acknowledged.
pub(super) fn path_mtu(span: &Span) -> Option<Finding> {
    is_black_hole(span).then(|| {
        let s = span.last;
        let title = "Full segments are lost on the path, small ones pass: the path MTU is smaller, and no ICMP message says so";
        Finding::new("FP-PMTU-BLACKHOLE", Severity::Problem, title)
            .with("CurTimeoutCount", f64::from(s.retransmits), "")
            .with("CurMSS", f64::from(s.mss_bytes), "bytes")
            .with("ThruOctetsAcked", s.bytes_acked as f64, "bytes")
            .with("PipeSize", sent_bytes(s), "bytes")
            .cured_by("# on this host: sysctl net.ipv4.tcp_mtu_probing=1\n# or let ICMP \"packet too big\" pass")
    })
}

fn is_black_hole(span: &Span) -> bool {
    let s = span.last;
    let is_stuck = s.backoff >= 2 && s.packets_out > 0 && s.mss_bytes > SMALL_MSS_BYTES;
    // bytes_acked counts the SYN, too.
    let was_full = s.delivered_pkts > 0 && s.bytes_acked > u64::from(s.mss_bytes);
    let waiting_bytes = f64::from(s.unsent_bytes) + sent_bytes(s);
    is_stuck && !was_full && is_heard(span) && waiting_bytes > 2.0 * f64::from(s.mss_bytes)
}

/// The peer is there: it acknowledged a later segment, or sent something after the first timeout. One that vanished,
/// as phones and scanners do, leaves full segments unanswered, too.
fn is_heard(span: &Span) -> bool {
    span.last.sacked_out > 0 || span.passed.seen.segs_in_stalled > 0
}

/// Sent and not acknowledged.
fn sent_bytes(s: &Sample) -> f64 {
    f64::from(s.packets_out) * f64::from(s.mss_bytes)
}

/// FP-RTO: everything waits for the retransmission timer.
pub(super) fn timeouts(span: &Span) -> Option<Finding> {
    match is_black_hole(span) || is_tail_loss(span) {
        true => None,
        false => waits(
            span,
            "FP-RTO",
            "The flow waits for the retransmission timer",
        ),
    }
}

/// FP-TAIL-LOSS: the last segments of a message are lost, and nothing follows that would say so.
pub(super) fn tail_loss(span: &Span) -> Option<Finding> {
    if !is_tail_loss(span) || is_black_hole(span) {
        return None;
    }
    let title =
        "The last segments of messages are lost, and only the retransmission timer detects it";
    waits(span, "FP-TAIL-LOSS", title)
}

fn is_tail_loss(span: &Span) -> bool {
    let p = &span.passed;
    p.seen.tail_timeouts >= LEAST_TIMEOUTS && 2 * p.seen.tail_timeouts > p.timeouts
}

fn waits(span: &Span, id: &str, title: &str) -> Option<Finding> {
    let p = &span.passed;
    let share = span.shares().timeout;
    let gained = gain(1.0 / (1.0 - shorter_by(span) * share.min(0.99)));
    let found = Finding::new(id, by_share(share), title)
        .with("Timeouts", p.timeouts as f64, "")
        .with("SubsequentTimeouts", p.subsequent_timeouts as f64, "")
        .with("time waited", share * 100.0, "%")
        .with("CurRTO", f64::from(span.last.rto_us) / 1000.0, "ms")
        .with("SmoothedRTT", f64::from(span.last.srtt_us) / 1000.0, "ms")
        .gaining(gained);
    let found = match gained {
        Some(_) => found.cured_by("rto_min = \"50ms\""),
        None => found,
    };
    is_waited_for(span).then_some(found)
}

/// The part of the waits for the timer that the cure ends: the timer is then the round trip and `rto_min`.
fn shorter_by(span: &Span) -> f64 {
    let s = span.last;
    let cured_us = f64::from(s.srtt_us) + CURED_RTO_MIN_US;
    let first_us = f64::from(s.rto_us) / f64::from(1u32 << s.backoff.min(31));
    ended_by_one(span) * (1.0 - cured_us / first_us.max(1.0)).max(0.0)
}

/// The part of the timeouts that no other followed. Where several follow each other the path was gone, and it is not back
/// sooner for a shorter timer, which doubles as the longer one does.
fn ended_by_one(span: &Span) -> f64 {
    let p = &span.passed;
    1.0 - ratio(p.subsequent_timeouts, p.timeouts).min(1.0)
}

pub(super) fn is_waited_for(span: &Span) -> bool {
    span.passed.timer_ends() >= LEAST_TIMEOUTS && span.shares().timeout >= WAITS
}

/// FP-DELACK: a short segment waits for an acknowledgement that the peer delays (RFC 896 meets RFC 1122).
pub(super) fn delayed_ack(span: &Span) -> Option<Finding> {
    let share = span.shares().network;
    if share < HOLDS || span.queue_us() < DELAYED_US || !alternates(span) {
        return None;
    }
    let title = "Short segments wait for acknowledgements that the peer delays";
    let cured_us = span.base_rtt_us() + CURED_DELAY * span.queue_us();
    let found = Finding::new("FP-DELACK", by_share(share), title)
        .with("time waited", share * 100.0, "%")
        .with("round trip, mean", span.mean_rtt_us() / 1000.0, "ms")
        .with("MinRTT", span.base_rtt_us() / 1000.0, "ms")
        .gaining(gain(span.mean_rtt_us() / cured_us.max(1.0)))
        .cured_by("# on the receiving host:\ndelayed_ack_max = \"1ms\"");
    Some(found)
}

/// Short messages whose round trips swing between the path's and the delay. Samples keep step with the
/// messages, so a waiting part segment is seen always or never: it does not count alone.
fn alternates(span: &Span) -> bool {
    let p = &span.passed;
    let payload_bytes = ratio(p.bytes_sent, p.data_segs_out);
    let are_short =
        payload_bytes < 0.5 * span.mss_bytes() && span.mean_in_flight_pkts() <= MESSAGE_PKTS;
    let swing_us = f64::from(span.last.rttvar_us);
    are_short && (swing_us >= 0.25 * span.queue_us() || span.of_busy(p.seen.nagle_us) >= HOLDS)
}
