// SPDX-License-Identifier: MIT OR Apache-2.0
//! A window of a flow: its rate, and what held the flow back then. The best one of its life says what its path carries.

use crate::diagnosis::buffers::{is_receive_buffer_programs, is_send_buffer_programs};
use crate::span::Span;
use fatpath_api::Sample;
use fatpath_path::Limit;

/// A window lasts at least this long, and so many round trips: shorter ones tell of bursts.
const LEAST_WINDOW_NS: u64 = 1_000_000_000;
const LEAST_ROUNDS: u64 = 10;

/// What held a flow back for this share of the window decided its rate.
const DECIDES: f64 = 0.25;

/// A receive window that is less than so many times what the rate fills is what bounds the rate.
const FILLED_WINDOWS: f64 = 1.3;

/// A window of a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub bps: f64,
    pub limit: Option<Limit>,
}

/// How long a window of a flow lasts at least.
pub(crate) fn window_ns(last: &Sample) -> u64 {
    let round_ns = u64::from(last.srtt_us.max(last.rcv_rtt_us)) * 1000;
    LEAST_WINDOW_NS.max(LEAST_ROUNDS * round_ns)
}

impl Window {
    pub(crate) fn of(span: &Span) -> Window {
        let sent_bps = span.goodput_bps().min(span.delivered_bps());
        Window {
            bps: sent_bps.max(span.received_bps()),
            limit: limit_of(span),
        }
    }

    /// The better one of a window so far and the span of another.
    pub(crate) fn better(best: Option<Window>, span: &Span) -> Option<Window> {
        let other = Window::of(span);
        let is_better = other.bps > best.map_or(0.0, |best| best.bps);
        match is_better {
            true => Some(other),
            false => best,
        }
    }
}

fn limit_of(span: &Span) -> Option<Limit> {
    if span.received_bps() > span.goodput_bps() {
        return Some(limit_of_receiver(span));
    }
    let shares = span.shares();
    let of_buffer = own_buffer(is_send_buffer_programs(span));
    let limits = [
        (shares.application, Limit::Application),
        (shares.send_buffer, of_buffer),
        (shares.receiver, Limit::PeerWindow),
    ];
    let most = limits
        .into_iter()
        .max_by(|(one, _), (other, _)| one.total_cmp(other));
    most.filter(|(share, _)| *share >= DECIDES)
        .map(|(_, limit)| limit)
}

/// What held the sender back is not known here, but for the window that it was given.
fn limit_of_receiver(span: &Span) -> Limit {
    let rtt_us = f64::from(span.last.rcv_rtt_us);
    let filled_bytes = span.received_bps() * rtt_us / 8e6;
    let window_bytes = f64::from(span.last.receive_window_bytes);
    match rtt_us > 0.0 && window_bytes < FILLED_WINDOWS * filled_bytes {
        true => own_buffer(is_receive_buffer_programs(span)),
        false => Limit::Application,
    }
}

fn own_buffer(is_programs: bool) -> Limit {
    match is_programs {
        true => Limit::ProgramBuffer,
        false => Limit::OwnBuffer,
    }
}
