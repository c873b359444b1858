// SPDX-License-Identifier: MIT OR Apache-2.0
//! The application gives too little to send, or waits for its peer's application.

use super::{Finding, HOLDS, HOLDS_MOST, Severity, by_share, gain};
use crate::span::Span;

/// A flow that sends less in a span is idle, not slow.
const LEAST_SEGMENTS: f64 = 100.0;

/// A window of an application moves in steps of up to half of it (OpenSSH), so what is in flight varies by less than
/// this; bursts with pauses vary by more.
const STEADY: f64 = 0.5;

/// The congestion window leaves at least this much more.
const LEAVES: f64 = 1.25;

/// So few in flight are a message, no stream.
const MESSAGE_PKTS: f64 = 3.0;

/// The peer's application tells how far it is at least once in so many round trips.
const TELLS_EACH_RTTS: f64 = 20.0;

/// A web client's requests are a few; a window is told of all the time.
const LEAST_TOLD: u64 = 10;

/// What it says is short beside what it gets.
const SHORT: f64 = 0.02;

/// FP-APP-WINDOW: the application keeps a fixed number of bytes in flight and waits for its peer's application.
pub(super) fn window(span: &Span) -> Option<Finding> {
    let in_flight_bytes = span.mean_in_flight_pkts() * span.mss_bytes();
    let is_steady = span.in_flight_variation() < STEADY;
    let leaves = span.mean_cwnd_pkts() >= LEAVES * span.mean_in_flight_pkts();
    let is_stream = span.mean_in_flight_pkts() > MESSAGE_PKTS;
    // The last, short segment of the window waits by Nagle's rule.
    let share = span.shares().application + span.of_busy(span.passed.seen.nagle_us);
    if share < HOLDS || !is_stream || !is_steady || !leaves || !is_told_how_far(span) {
        return None;
    }
    let allows_bps = in_flight_bytes * 8e6 / span.base_rtt_us().max(1.0);
    let title =
        "The application waits for its peer after a fixed number of bytes: a window of its own";
    let found = Finding::new("FP-APP-WINDOW", by_share(share), title)
        .with("in flight, mean", in_flight_bytes, "bytes")
        .with("rate that this allows over MinRTT", allows_bps / 1e6, "Mb/s")
        .with("MinRTT", span.base_rtt_us() / 1000.0, "ms")
        .with(
            "CurCwnd, mean",
            span.mean_cwnd_pkts() * span.mss_bytes(),
            "bytes",
        )
        .gaining(gain(span.known_gain()))
        .cured_by(
            "# several transfers at once, or the program's own option for its window; no setting of TCP helps",
        );
    Some(found)
}

/// The peer sends short messages all the time: its application says what it has taken.
fn is_told_how_far(span: &Span) -> bool {
    let p = &span.passed;
    let round_trips = span.seconds() * 1e6 / span.base_rtt_us().max(1.0);
    let are_short = (p.bytes_received as f64) < SHORT * p.bytes_sent as f64;
    let are_many = p.data_segs_in >= LEAST_TOLD;
    are_short && are_many && p.data_segs_in as f64 * TELLS_EACH_RTTS >= round_trips
}

/// FP-APP-LIMITED. Only where nothing else was found: whoever waits for a slow path sends little, too.
pub(super) fn limited(span: &Span) -> Option<Finding> {
    let share = span.shares().application;
    let sends = span.passed.bytes_sent as f64 >= LEAST_SEGMENTS * span.mss_bytes();
    if !sends || share < HOLDS_MOST {
        return None;
    }
    let title = "The application sends less than the path could carry";
    let found = Finding::new("FP-APP-LIMITED", Severity::Info, title)
        .with("time without data to send", share * 100.0, "%")
        .with("goodput", span.goodput_bps() / 1e6, "Mb/s")
        .with(
            "rate of the window over MinRTT",
            span.window_allows_bps() / 1e6,
            "Mb/s",
        );
    Some(found)
}
