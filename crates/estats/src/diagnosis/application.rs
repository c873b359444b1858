// SPDX-License-Identifier: MIT OR Apache-2.0
//! The application gives too little to send.

use super::{Finding, HOLDS_MOST, Severity};
use crate::span::Span;

/// A flow that sends less in a span is idle, not slow.
const LEAST_SEGMENTS: f64 = 100.0;

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
