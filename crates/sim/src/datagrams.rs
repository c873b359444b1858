// SPDX-License-Identifier: MIT OR Apache-2.0
//! UDP at a constant rate, and what of it arrives.

use std::rc::Rc;

use crate::outcome::DatagramOutcome;
use crate::packet::{Body, SimPacket};
use crate::{FlowSpec, Source};
use fatpath_link::headers::UDP_BYTES;

/// A sender of datagrams and its receiver.
#[derive(Debug)]
pub(crate) struct Datagrams {
    session: u32,
    start_ns: u64,
    stop_ns: u64,
    rate_bps: u64,
    payload_bytes: u32,
    sent: u64,
    seen: Seen,
    /// Every datagram under way has a part in it, so that their number is known whatever the links do.
    under_way: Rc<()>,
    /// Lost when the program stopped; `None`: it sends.
    lost_at_end: Option<u64>,
}

impl Datagrams {
    /// Of a flow of [`Source::ConstantRate`].
    pub(crate) fn new(spec: &FlowSpec, session: u32) -> Datagrams {
        let Source::ConstantRate {
            rate_bps,
            payload_bytes,
        } = spec.source
        else {
            unreachable!("other sources need TCP");
        };
        Datagrams {
            session,
            start_ns: spec.start_ns,
            stop_ns: spec.last_ns(),
            rate_bps,
            payload_bytes,
            sent: 0,
            seen: Seen::default(),
            under_way: Rc::new(()),
            lost_at_end: None,
        }
    }

    /// When the next one leaves, or the program stops.
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        let stop_ns = Some(self.stop_ns).filter(|stop_ns| *stop_ns < u64::MAX);
        match self.lost_at_end {
            Some(_) => None,
            None => self.next_leaves_ns().or(stop_ns),
        }
    }

    /// A time that [`Datagrams::next_due_ns`] named has come. What arrives after the stop is nobody's.
    pub(crate) fn handle_timeout(&mut self, now_ns: u64) {
        if now_ns >= self.stop_ns && self.lost_at_end.is_none() {
            self.lost_at_end = Some(self.lost());
        }
    }

    /// Counted from the start, so that no rounding adds up.
    fn next_leaves_ns(&self) -> Option<u64> {
        let bits = u128::from(self.payload_bytes + UDP_BYTES) * 8;
        let after_ns = u128::from(self.sent) * bits * 1_000_000_000 / u128::from(self.rate_bps);
        let at_ns = self.start_ns.checked_add(u64::try_from(after_ns).ok()?)?;
        (at_ns < self.stop_ns).then_some(at_ns)
    }

    /// The datagram that is due.
    pub(crate) fn poll_transmit(&mut self, now_ns: u64) -> Option<SimPacket> {
        self.next_leaves_ns().filter(|at_ns| *at_ns <= now_ns)?;
        let body = Body::Datagram {
            len_bytes: (self.payload_bytes + UDP_BYTES) as u16,
            number: self.sent,
            sent_ns: now_ns,
            _under_way: Rc::clone(&self.under_way),
        };
        self.sent += 1;
        Some(SimPacket {
            session: self.session,
            connection: 0,
            body,
        })
    }

    /// One arrives.
    pub(crate) fn receive(&mut self, now_ns: u64, number: u64, sent_ns: u64) {
        if self.lost_at_end.is_none() {
            self.seen.add(number, now_ns - sent_ns);
        }
    }

    /// When it was over, if it is by now.
    pub(crate) fn ended_ns(&self, now_ns: u64) -> Option<u64> {
        (self.stop_ns <= now_ns).then_some(self.stop_ns)
    }

    pub(crate) fn start_ns(&self) -> u64 {
        self.start_ns
    }

    fn lost(&self) -> u64 {
        let under_way = Rc::strong_count(&self.under_way) as u64 - 1;
        self.sent.saturating_sub(self.seen.received + under_way)
    }

    pub(crate) fn delivered_bytes(&self) -> u64 {
        self.seen.received * u64::from(self.payload_bytes)
    }

    pub(crate) fn outcome(&self) -> DatagramOutcome {
        let seen = &self.seen;
        DatagramOutcome {
            sent: self.sent,
            received: seen.received,
            lost: self.lost_at_end.unwrap_or_else(|| self.lost()),
            out_of_order: seen.out_of_order,
            jitter_ns: seen.jitter_ns as u64,
            mean_delay_ns: (seen.delay_sum_ns / u128::from(seen.received.max(1))) as u64,
            max_delay_ns: seen.max_delay_ns,
        }
    }
}

/// What arrived.
#[derive(Debug, Default)]
struct Seen {
    received: u64,
    out_of_order: u64,
    /// One past the latest number.
    next: u64,
    last_delay_ns: u64,
    max_delay_ns: u64,
    delay_sum_ns: u128,
    jitter_ns: f64,
}

impl Seen {
    fn add(&mut self, number: u64, delay_ns: u64) {
        if self.received > 0 {
            let difference_ns = delay_ns.abs_diff(self.last_delay_ns) as f64;
            // RFC 3550, section 6.4.1.
            self.jitter_ns += (difference_ns - self.jitter_ns) / 16.0;
        }
        self.received += 1;
        self.out_of_order += u64::from(number < self.next);
        self.next = self.next.max(number + 1);
        self.last_delay_ns = delay_ns;
        self.max_delay_ns = self.max_delay_ns.max(delay_ns);
        self.delay_sum_ns += u128::from(delay_ns);
    }
}
