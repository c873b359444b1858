// SPDX-License-Identifier: MIT OR Apache-2.0
//! The congestion window and the queue of the bottleneck.

use super::{Finding, HOLDS, HOLDS_MOST, Severity, by_share, gain, loss, rate, timers};
use crate::span::Span;

/// A queue of one bandwidth-delay product doubles the round trip, and is what routers are built with
/// (Villamizar and Song 1994); from three round trips on it is more.
const BLOATED: f64 = 3.0;

/// Below this a queue disturbs nobody (RFC 8290 aims at 5 ms; speech stands 150 ms, ITU-T G.114).
const BLOATED_US: f64 = 40_000.0;

/// The best delivery rate of a path with one rate is no further above the mean than this.
const STEADY: f64 = 1.25;

/// So few in flight fill no queue.
const LEAST_IN_FLIGHT_PKTS: f64 = 4.0;

/// A flow that has just left slow start is not held back by its window's growth; it is after so many round trips.
const GROWS_RTTS: f64 = 50.0;

/// FP-BUFFERBLOAT: the queue is much larger than the path. Not told where the timer is waited for: what is
/// acknowledged after a silence has a round trip as long as the silence.
pub(super) fn bufferbloat(span: &Span) -> Option<Finding> {
    let (mean_us, base_us) = (span.mean_rtt_us(), span.base_rtt_us());
    let is_long = mean_us >= BLOATED * base_us && span.queue_us() >= BLOATED_US;
    let fills_it = span.mean_in_flight_pkts() >= LEAST_IN_FLIGHT_PKTS;
    let is_held = span.shares().network >= HOLDS && !timers::is_waited_for(span);
    if !is_long || !fills_it || !is_held {
        return None;
    }
    let title = "The flow keeps a queue that is much longer than the path";
    let found = Finding::new("FP-BUFFERBLOAT", Severity::Warning, title)
        .with("round trip, mean", mean_us / 1000.0, "ms")
        .with("MinRTT", base_us / 1000.0, "ms")
        .with("queueing delay, mean", span.queue_us() / 1000.0, "ms");
    // A rate that is fixed today would waste what a path carries tomorrow whose rate varies.
    Some(match span.best_rate_bps <= STEADY * span.goodput_bps() {
        true => found.cured_by(format!(
            "pacing_rate = \"{}\"",
            rate(0.95 * span.goodput_bps())
        )),
        false => found,
    })
}

/// FP-CWND: the window holds the flow back, and the path shows no sign of being full.
pub(super) fn congestion_window(span: &Span) -> Option<Finding> {
    let share = span.shares().network;
    let is_full = span.of_busy(span.passed.seen.cwnd_limited_us) >= HOLDS_MOST;
    let has_queue = span.queue_us() >= span.queue_threshold_us();
    if share < HOLDS_MOST || !is_full || has_queue || loss::explains(span) {
        return None;
    }
    let found = match is_clamped(span) {
        true => clamped(span, share),
        false => grows_slowly(span, share)?,
    };
    let found = found
        .with("SndLimTimeCwnd", share * 100.0, "% of the time")
        .with("CurCwnd, mean", span.mean_cwnd_pkts(), "segments")
        .with("queueing delay, mean", span.queue_us() / 1000.0, "ms");
    Some(found)
}

fn is_clamped(span: &Span) -> bool {
    span.last.cwnd_pkts >= span.last.cwnd_clamp_pkts
}

fn clamped(span: &Span, share: f64) -> Finding {
    let clamp = f64::from(span.last.cwnd_clamp_pkts);
    let title = "The congestion window is clamped below what the path carries";
    Finding::new("FP-CWND", by_share(share), title)
        .with("LimCwnd", clamp, "segments")
        .cured_by(format!("cwnd_clamp = {}", 2.0 * clamp))
}

/// Past slow start, with a path that is not full: about a segment a round trip is won.
fn grows_slowly(span: &Span, share: f64) -> Option<Finding> {
    let ssthresh = span.last.ssthresh_pkts?;
    let is_young = span.seconds() * 1e6 < GROWS_RTTS * span.base_rtt_us();
    if is_young || span.last.cwnd_pkts < ssthresh || span.best_rate_bps < 1.5 * span.goodput_bps() {
        return None;
    }
    let title = "The congestion window grows too slowly for the path";
    let found = Finding::new("FP-CWND", by_share(share), title)
        .with("CurSsthresh", f64::from(ssthresh), "segments")
        .with("best rate of delivery", span.best_rate_bps / 1e6, "Mb/s")
        .gaining(gain(span.best_gain()))
        .cured_by("congestion_control = \"fp_scalable\"");
    Some(found)
}
