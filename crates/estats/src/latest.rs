// SPDX-License-Identifier: MIT OR Apache-2.0
//! The window of a flow that closed last: how its path is now, which the best window of its life does not tell.

use crate::span::Span;
use crate::window::Window;
use fatpath_api::Sample;

/// Follows the windows of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Latest {
    /// Least round-trip time in the window that is open, µs.
    open_rtt_us: Option<u32>,
    pub closed: Option<Closed>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Closed {
    pub at_ns: u64,
    pub length_ns: u64,
    pub rtt_us: u32,
    pub mean_rtt_us: f64,
    pub lost: bool,
    pub window: Window,
    pub receives: bool,
}

impl Latest {
    pub(crate) fn take(&mut self, sample: &Sample) {
        let rtt_us = round_trip_us(sample);
        self.open_rtt_us = self.open_rtt_us.into_iter().chain(rtt_us).min();
    }

    /// A window has closed.
    pub(crate) fn close(&mut self, span: &Span) {
        let sample = span.last;
        let rtt_us = self.open_rtt_us.take();
        let closed = rtt_us.map(|rtt_us| Closed {
            at_ns: sample.now_ns,
            length_ns: span.passed.now_ns,
            rtt_us,
            mean_rtt_us: match receives(sample) {
                true => f64::from(sample.rcv_rtt_us),
                false => span.mean_rtt_us(),
            },
            lost: span.passed.segs_retrans > 0,
            window: Window::of(span),
            receives: receives(sample),
        });
        self.closed = closed.or(self.closed);
    }
}

/// Whether the flow received more than it sent.
fn receives(sample: &Sample) -> bool {
    sample.bytes_received > sample.bytes_acked
}

/// As this end measured it last.
fn round_trip_us(sample: &Sample) -> Option<u32> {
    let measured = match receives(sample) {
        true => Some(sample.rcv_rtt_us),
        false => sample.rtt_us.or(Some(sample.srtt_us)),
    };
    measured.filter(|us| *us > 0)
}
