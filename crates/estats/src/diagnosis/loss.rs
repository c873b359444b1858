// SPDX-License-Identifier: MIT OR Apache-2.0
//! Segments lost by congestion, lost without it, or not lost at all but late.

use super::{Finding, HOLDS_MOST, Severity, by_share, gain, rate, timers};
use crate::span::Span;
use fatpath_model::mathis;

/// Fewer events are chance.
const LEAST_EVENTS: u64 = 3;
const LEAST_EVENTS_OF_PATH: u64 = 2;

/// One event is enough of a flow that lasted so long, and so many round trips, and was mostly held back by the path: slow
/// start, which ends at a full queue where there is one, ended with an empty one, and a small window makes a second event
/// rare.
const ONE_EVENT_S: f64 = 3.0;
const ONE_EVENT_RTTS: f64 = 20.0;

/// Losses by congestion below this share are how a loss-based law finds the path's rate.
const MUCH: f64 = 0.01;

/// The delivery rate at a loss varies with the window where each segment is as likely lost as any other, and hardly
/// where a rate decides (figures: docs/why.md).
const STEADY: f64 = 0.25;

/// On a shorter path another law gains little, and may harm its neighbours (a switch whose buffer many senders fill at
/// once).
const LONG_US: f64 = 5_000.0;

/// Up to this share of segments lost, on average, fp_bbr has the path's rate (draft-ietf-ccwg-bbr-06, 3.1); in a single
/// round trip it bears twice as much.
const BBR_BEARS: f64 = 0.01;

/// Losses or reordering decide how large the window is.
pub(super) fn explains(span: &Span) -> bool {
    span.passed.cong_signals >= LEAST_EVENTS || is_reordered(span)
}

/// FP-REORDERING: what was retransmitted had not been lost.
pub(super) fn reordering(span: &Span) -> Option<Finding> {
    if !is_reordered(span) {
        return None;
    }
    let p = &span.passed;
    let severity = match (p.cong_signals, span.retransmitted_share() >= MUCH) {
        (0, false) => Severity::Info,
        (_, false) => Severity::Warning,
        (_, true) => Severity::Problem,
    };
    let threshold = (2 * span.last.reordering_pkts).clamp(6, 300);
    let title = "The path reorders segments, and late ones are taken for lost";
    let found = Finding::new("FP-REORDERING", severity, title)
        .with("reordering seen", p.reord_seen as f64, "times")
        .with("DSACKDups", p.dsack_dups as f64, "segments")
        .with("SegsRetrans", p.segs_retrans as f64, "segments")
        .with(
            "RetranThresh",
            f64::from(span.last.reordering_pkts),
            "segments",
        )
        .gaining(gain(span.known_gain()))
        .cured_by(format!("reordering = {threshold}"));
    Some(found)
}

/// The kernel saw late originals, or the peer got most of what was retransmitted twice.
fn is_reordered(span: &Span) -> bool {
    let p = &span.passed;
    let were_spurious = p.dsack_dups >= LEAST_EVENTS && 2 * p.dsack_dups >= p.segs_retrans;
    p.reord_seen >= LEAST_EVENTS || p.reord_seen > 0 && were_spurious
}

/// FP-POLICED: segments are lost without a queue, whenever the flow exceeds one and the same rate.
pub(super) fn policed(span: &Span) -> Option<Finding> {
    let queue_us = empty_queue_us(span)?;
    let variation = span.loss_rate_variation()?;
    if variation > STEADY {
        return None;
    }
    let title =
        "The path drops what exceeds a rate, without a queue: a policer, or a very short queue";
    let found = Finding::new("FP-POLICED", by_share(span.shares().network), title)
        .with("CongSignals", span.passed.cong_signals as f64, "")
        .with("goodput", span.goodput_bps() / 1e6, "Mb/s")
        .with(
            "deviation of the delivery rate at a loss",
            variation * 100.0,
            "%",
        )
        .with(
            "queueing delay before a loss, mean",
            queue_us / 1000.0,
            "ms",
        )
        .cured_by(format!("pacing_rate = \"{}\"", rate(span.goodput_bps())));
    Some(found)
}

/// FP-LOSS-RANDOM: segments are lost while the path's queue is empty, at any rate.
pub(super) fn random(span: &Span) -> Option<Finding> {
    let queue_us = empty_queue_us(span)?;
    // Of few losses it is not known whether they have a rate in common.
    let variation = span.loss_rate_variation();
    if variation.is_some_and(|of| of <= STEADY) {
        return None;
    }
    let p = span.reductions_per_segment();
    let rtt_s = span.mean_rtt_us().max(1.0) / 1e6;
    let mathis_bps = mathis::rate_bps(mathis::C_REGULAR, span.mss_bytes() as u32, rtt_s, p);
    let lost = span.retransmitted_share();
    let expected = gain(span.best_gain()).filter(|_| lost <= BBR_BEARS);
    let title = "Segments are lost although the path's queue is empty: a bad line";
    let found = Finding::new("FP-LOSS-RANDOM", by_share(span.shares().network), title)
        .with("CongSignals", span.passed.cong_signals as f64, "")
        .with("of the segments", p * 100.0, "%")
        .with("retransmitted", lost * 100.0, "% of the bytes")
        .with(
            "queueing delay before a loss, mean",
            queue_us / 1000.0,
            "ms",
        )
        .with("rate by Mathis et al.", mathis_bps / 1e6, "Mb/s")
        .with("goodput", span.goodput_bps() / 1e6, "Mb/s")
        .gaining(expected);
    let found = match variation {
        Some(of) => found.with("deviation of the delivery rate at a loss", of * 100.0, "%"),
        None => found,
    };
    Some(match span.base_rtt_us() >= LONG_US && expected.is_some() {
        true => found.cured_by("congestion_control = \"fp_bbr\""),
        false => found,
    })
}

/// The queueing delay before losses that are the cause and meet no queue.
fn empty_queue_us(span: &Span) -> Option<f64> {
    let queue_us = span.queue_before_loss_us()?;
    let is_empty =
        queue_us < span.queue_threshold_us() && span.queue_us() < span.queue_threshold_us();
    let is_so = is_loss(span) && is_empty && span.passed.delivered_ce_pkts == 0;
    is_so.then_some(queue_us)
}

/// FP-LOSS-CONGESTION: the queue overflows again and again.
pub(super) fn congestion(span: &Span) -> Option<Finding> {
    let queue_us = span.queue_before_loss_us()?;
    let has_queue =
        queue_us >= span.queue_threshold_us() || span.queue_us() >= span.queue_threshold_us();
    let lost = span.retransmitted_later_share()?;
    if !is_loss(span) || !has_queue || lost < MUCH {
        return None;
    }
    let title = "The path is congested: its queue overflows again and again";
    let found = Finding::new("FP-LOSS-CONGESTION", Severity::Warning, title)
        .with("CongSignals", span.passed.cong_signals as f64, "")
        .with("retransmitted", lost * 100.0, "% of the bytes")
        .with(
            "queueing delay before a loss, mean",
            queue_us / 1000.0,
            "ms",
        )
        .cured_by("congestion_control = \"fp_reno\"\nhystart = true");
    Some(found)
}

/// Where the timer finds the losses, waiting for it is the cause, and it has its own findings. A law that does not
/// answer to losses is not held back by them.
fn is_loss(span: &Span) -> bool {
    let is_timers = timers::is_waited_for(span);
    span.passed.cong_signals >= LEAST_EVENTS && is_held(span) && !is_timers && are_losses(span)
}

/// The path, or losses that only the timer finds, hold the flow back.
fn is_held(span: &Span) -> bool {
    let shares = span.shares();
    shares.network + shares.timeout >= HOLDS_MOST
}

/// What reduced the window were losses, and neither the timer nor late segments.
fn are_losses(span: &Span) -> bool {
    let p = &span.passed;
    let are_timeouts = 2 * p.timeouts >= p.cong_signals;
    !are_timeouts && !is_reordered(span) && answers_to_loss(&span.last.law)
}

/// Whether what held the flow back are losses, by fewer than a finding rests on: what a path is like is asked of all its flows
/// together.
pub(crate) fn hold_back(span: &Span) -> bool {
    let long_s = ONE_EVENT_S.max(ONE_EVENT_RTTS * span.base_rtt_us() / 1e6);
    let is_long = span.seconds() >= long_s && is_held(span);
    let least = if is_long { 1 } else { LEAST_EVENTS_OF_PATH };
    let is_enough = span.passed.cong_signals >= least;
    is_enough && span.passed.delivered_ce_pkts == 0 && are_losses(span)
}

/// Whether a law takes a loss for congestion.
pub(crate) fn answers_to_loss(law: &str) -> bool {
    !law.contains("bbr") && law != "fp_rude"
}
