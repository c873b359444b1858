// SPDX-License-Identifier: MIT OR Apache-2.0
//! UDP at a constant rate, and what of it arrives.

use crate::outcome::DatagramOutcome;
use crate::packet::{Body, SimPacket};

/// IPv4 and UDP.
pub(crate) const HEADER_BYTES: u32 = 28;

/// A sender of datagrams and its receiver.
#[derive(Debug)]
pub(crate) struct Datagrams {
    start_ns: u64,
    rate_bps: u64,
    payload_bytes: u32,
    sent: u64,
    seen: Seen,
}

impl Datagrams {
    pub(crate) fn new(start_ns: u64, rate_bps: u64, payload_bytes: u32) -> Datagrams {
        Datagrams {
            start_ns,
            rate_bps,
            payload_bytes,
            sent: 0,
            seen: Seen::default(),
        }
    }

    /// When the next one leaves: of all, not from the one before, so that no rounding adds up.
    pub(crate) fn next_ns(&self) -> u64 {
        let bits = u128::from(self.payload_bytes + HEADER_BYTES) * 8;
        let after_ns = u128::from(self.sent) * bits * 1_000_000_000 / u128::from(self.rate_bps);
        u64::try_from(after_ns).map_or(u64::MAX, |after_ns| self.start_ns.saturating_add(after_ns))
    }

    /// The datagram that is due.
    pub(crate) fn poll_transmit(&mut self, now_ns: u64, session: u32) -> Option<SimPacket> {
        if self.next_ns() > now_ns {
            return None;
        }
        let body = Body::Datagram {
            len_bytes: (self.payload_bytes + HEADER_BYTES) as u16,
            payload_bytes: self.payload_bytes as u16,
            number: self.sent,
            sent_ns: now_ns,
        };
        self.sent += 1;
        Some(SimPacket {
            session,
            connection: 0,
            body,
        })
    }

    /// One arrives.
    pub(crate) fn receive(&mut self, now_ns: u64, number: u64, sent_ns: u64) {
        self.seen.add(number, now_ns - sent_ns);
    }

    pub(crate) fn delivered_bytes(&self) -> u64 {
        self.seen.received * u64::from(self.payload_bytes)
    }

    pub(crate) fn outcome(&self) -> DatagramOutcome {
        let seen = &self.seen;
        DatagramOutcome {
            sent: self.sent,
            received: seen.received,
            lost: seen.next.saturating_sub(seen.received),
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
