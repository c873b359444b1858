// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receiver's window is too small for the path.

use super::{Finding, HOLDS, buffer, by_share, gain};
use crate::span::Span;

/// Largest window without scaling (RFC 7323).
const UNSCALED_BYTES: u32 = 65_535;

/// The announced window counts as the largest possible from this part of it on: it is a multiple of the MSS.
const NEARLY: f64 = 0.9;

/// A window that is on average below this part of its largest shrinks again and again.
const SHRUNK: f64 = 0.6;

/// FP-RWND-SCALE: the field of the header cannot say more.
pub(super) fn scale(span: &Span) -> Option<Finding> {
    if !is_out_of_scale(span) {
        return None;
    }
    let title = "The window scale of the peer is too small for the path";
    let cure = "# on the receiving host, before the connection begins:\n\
        # sysctl net.ipv4.tcp_window_scaling=1\n\
        [host.sysctl]\n'net.core.rmem_max' = 'auto'";
    let found = held_back(span, "FP-RWND-SCALE", title)?;
    let shift = f64::from(span.last.send_wscale);
    Some(found.with("WinScaleRcvd", shift, "").cured_by(cure))
}

/// FP-READER: the window closes because the program at the other end does not read.
pub(super) fn reader(span: &Span) -> Option<Finding> {
    if is_out_of_scale(span) || !is_shrunk(span) {
        return None;
    }
    let title = "The receiving program reads more slowly than the path delivers";
    held_back(span, "FP-READER", title).map(|found| Finding {
        gain: None,
        ..found
    })
}

/// FP-RWND: the receiver's buffer is too small.
pub(super) fn receiver(span: &Span) -> Option<Finding> {
    if is_out_of_scale(span) || is_shrunk(span) {
        return None;
    }
    let bytes = span.wanted_buffer_bytes(f64::from(span.last.max_peer_window_bytes));
    let line = format!(
        "# on the receiving host:\nreceive_buffer = \"{}\"\noverride_application = true",
        buffer(bytes)
    );
    let title = "The receiver's window is too small for the path";
    Some(held_back(span, "FP-RWND", title)?.cured_by(line))
}

fn is_out_of_scale(span: &Span) -> bool {
    let largest = f64::from(UNSCALED_BYTES) * f64::from(1u32 << span.last.send_wscale.min(14));
    f64::from(span.last.max_peer_window_bytes) >= NEARLY * largest
}

fn is_shrunk(span: &Span) -> bool {
    span.mean_peer_window_bytes() < SHRUNK * f64::from(span.last.max_peer_window_bytes)
}

fn held_back(span: &Span, id: &str, title: &str) -> Option<Finding> {
    let share = span.shares().receiver;
    let found = Finding::new(id, by_share(share), title)
        .with("SndLimTimeRwin", share * 100.0, "% of the time")
        .with("CurRwinRcvd, mean", span.mean_peer_window_bytes(), "bytes")
        .with(
            "MaxRwinRcvd",
            f64::from(span.last.max_peer_window_bytes),
            "bytes",
        )
        .with(
            "CurCwnd, mean",
            span.mean_cwnd_pkts() * span.mss_bytes(),
            "bytes",
        )
        .with("MinRTT", span.base_rtt_us() / 1000.0, "ms")
        .gaining(gain(span.known_gain()));
    (share >= HOLDS).then_some(found)
}
