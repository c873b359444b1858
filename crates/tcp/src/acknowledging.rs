// SPDX-License-Identifier: MIT OR Apache-2.0
//! When the receiver acknowledges: every second segment or so many, at once where something is out of order, in
//! quick succession at the beginning, and compressed where much is out of order (RFC 5681, 4.2;
//! `__tcp_ack_snd_check` of Linux).

use super::rtt::RttEstimator;
use crate::{DelayedAcks, TcpSpec};

/// Acknowledgements in quick succession at most (`TCP_MAX_QUICKACKS`).
const QUICK_MAX: u64 = 16;

/// Acknowledgements of one hole that are not compressed: what fast retransmission needs.
const UNCOMPRESSED: u32 = 3;

/// Most segments that one acknowledgement waits for while there is a hole (`tcp_comp_sack_nr`).
const COMPRESSED_MAX: u32 = 44;

/// It waits no longer than this (`tcp_comp_sack_delay_ns`), or a twentieth of the round-trip time.
const COMPRESSED_MAX_NS: u64 = 1_000_000;

/// What is owed to the sender.
#[derive(Debug)]
pub(super) struct Acknowledging {
    policy: DelayedAcks,
    mss_bytes: u64,
    /// More in-order data than this are acknowledged at once.
    most_unacked_bytes: u64,
    /// Without SACK every segment beyond a hole is told of at once: the sender counts.
    compresses: bool,
    rtt_ns: u64,
    is_due: bool,
    /// In-order data since the last acknowledgement.
    unacked_bytes: u64,
    /// Acknowledgements yet to come in quick succession.
    quick: u64,
    /// When the last in-order data arrived.
    arrived_ns: Option<u64>,
    /// A pause that is longer makes acknowledgements quick again: this end's RTO, which the handshake
    /// alone has told (`tcp_event_data_recv`).
    pause_ns: u64,
    delayed_until_ns: Option<u64>,
    compressed: u32,
    compressed_until_ns: Option<u64>,
    /// Acknowledgements of the hole before this segment.
    hole: (u64, u32),
}

/// A segment that arrived, and how things stand after it.
pub(super) struct Arrival {
    pub(super) now_ns: u64,
    /// In-order data that it brought.
    pub(super) fresh_bytes: u64,
    /// The next segment in order.
    pub(super) next: u64,
    pub(super) has_hole: bool,
    /// The last hole was filled.
    pub(super) fills_last_hole: bool,
    pub(super) window_bytes: u64,
}

impl Acknowledging {
    pub(super) fn new(spec: &TcpSpec, rtt_ns: u64) -> Acknowledging {
        Acknowledging {
            policy: spec.delayed_acks,
            mss_bytes: u64::from(spec.mss_bytes),
            most_unacked_bytes: u64::from(spec.delayed_ack_pkts - 1) * u64::from(spec.mss_bytes),
            compresses: spec.detection.uses_sack(),
            rtt_ns,
            is_due: false,
            unacked_bytes: 0,
            quick: 0,
            arrived_ns: None,
            pause_ns: RttEstimator::new(rtt_ns, spec.rto_min_ns).rto_ns(),
            delayed_until_ns: None,
            compressed: 0,
            compressed_until_ns: None,
            hole: (u64::MAX, 0),
        }
    }

    /// A segment that had arrived before.
    pub(super) fn duplicate(&mut self, window_bytes: u64) {
        self.quicken(window_bytes, QUICK_MAX);
        self.is_due = true;
    }

    /// The next acknowledgement leaves at once.
    pub(super) fn hurry(&mut self) {
        self.is_due = true;
    }

    /// A segment arrived, in order or beyond a hole.
    pub(super) fn arrived(&mut self, arrival: &Arrival) {
        if arrival.fresh_bytes > 0 {
            self.note_pause(arrival);
        }
        self.unacked_bytes += arrival.fresh_bytes;
        let is_full =
            self.unacked_bytes > self.most_unacked_bytes || self.policy == DelayedAcks::Off;
        if is_full || self.quick > 0 || arrival.fills_last_hole {
            self.is_due = true;
        } else if arrival.has_hole {
            self.compress(arrival);
        } else {
            self.delay(arrival.now_ns);
        }
    }

    /// The block that it tells of stands where the next acknowledgement might drop it.
    pub(super) fn hurry_compressed(&mut self) {
        self.is_due |= self.compressed > 0;
    }

    fn note_pause(&mut self, arrival: &Arrival) {
        let before_ns = self.arrived_ns.replace(arrival.now_ns);
        if before_ns.is_none_or(|before_ns| arrival.now_ns - before_ns > self.pause_ns) {
            self.quicken(arrival.window_bytes, QUICK_MAX);
        }
    }

    /// The next acknowledgements, `most` of them at most, do not wait (`tcp_incr_quickack`).
    pub(super) fn quicken(&mut self, window_bytes: u64, most: u64) {
        if let DelayedAcks::QuickAtStart { .. } = self.policy {
            let wanted = (window_bytes / (2 * self.mss_bytes)).max(2);
            self.quick = self.quick.max(wanted.min(most));
        }
    }

    /// The sender is told of a window that grows (`tcp_grow_window`).
    pub(super) fn window_grows(&mut self) {
        if let DelayedAcks::QuickAtStart { .. } = self.policy {
            self.quick |= 1;
        }
    }

    fn delay(&mut self, now_ns: u64) {
        if let DelayedAcks::On { max_ns } | DelayedAcks::QuickAtStart { max_ns } = self.policy {
            self.delayed_until_ns.get_or_insert(now_ns + max_ns);
        }
    }

    fn compress(&mut self, arrival: &Arrival) {
        if self.hole.0 != arrival.next {
            self.hole = (arrival.next, 0);
        }
        if !self.compresses || self.compressed >= COMPRESSED_MAX || self.hole.1 < UNCOMPRESSED {
            self.hole.1 += 1;
            self.is_due = true;
            return;
        }
        self.compressed += 1;
        let wait_ns = COMPRESSED_MAX_NS.min(self.rtt_ns / 20);
        self.compressed_until_ns
            .get_or_insert(arrival.now_ns + wait_ns);
    }

    /// Whether an acknowledgement leaves now; it does.
    pub(super) fn take_due(&mut self) -> bool {
        if !std::mem::take(&mut self.is_due) {
            return false;
        }
        self.unacked_bytes = 0;
        self.quick = self.quick.saturating_sub(1);
        self.delayed_until_ns = None;
        self.compressed = 0;
        self.compressed_until_ns = None;
        true
    }

    pub(super) fn next_timeout_ns(&self) -> Option<u64> {
        match (self.delayed_until_ns, self.compressed_until_ns) {
            (Some(delayed), Some(compressed)) => Some(delayed.min(compressed)),
            (delayed, compressed) => delayed.or(compressed),
        }
    }

    pub(super) fn handle_timeout(&mut self, now_ns: u64) {
        self.is_due |= self.next_timeout_ns().is_some_and(|at| at <= now_ns);
    }
}
