// SPDX-License-Identifier: MIT OR Apache-2.0
//! What one acknowledgement tells: collected by the scoreboard, judged by the sender.

use super::rack::Rack;

/// What one acknowledgement tells.
#[derive(Debug)]
pub(super) struct Arrivals {
    /// When it arrived.
    pub(super) now_ns: u64,
    /// When that was sent which it echoes.
    pub(super) echo_ns: u64,
    /// The least round-trip time so far.
    pub(super) min_rtt_ns: u64,
    /// Where the recovery that goes on ends.
    pub(super) high: u64,
    /// Segments acknowledged in order.
    pub(super) acked_pkts: u32,
    /// Their data.
    pub(super) acked_bytes: u64,
    /// Segments SACKed for the first time.
    pub(super) sacked_pkts: u32,
    /// Segments that arrived, as far as this acknowledgement is the first to tell.
    pub(super) delivered_pkts: u32,
    /// One of the acknowledged had been sent more than once.
    pub(super) resent_acked: bool,
    /// One below `high` arrived that had been sent only once.
    pub(super) original_arrived: bool,
    /// It echoes a mark of congestion (ECE).
    pub(super) echoes_mark: bool,
    /// It carried a DSACK.
    pub(super) tells_duplicate: bool,
    /// That of the tail loss probe.
    pub(super) duplicate_is_probe: bool,
    /// The window changed.
    pub(super) window_changed: bool,
    /// Something was found lost.
    pub(super) found_lost: bool,
    /// A retransmission was found lost.
    pub(super) resent_lost: bool,
    /// RACK's timer is set, and is not to be replaced.
    pub(super) keeps_alarm: bool,
    /// The lowest segment, sent only once, that arrived after a higher one had: by SACK, in order.
    pub(super) late_sacked: Option<u64>,
    pub(super) late_acked: Option<u64>,
    /// When the first and the last were sent of those that arrived and were sent only once.
    pub(super) acked_sent_ns: Option<(u64, u64)>,
    pub(super) sacked_sent_ns: Option<(u64, u64)>,
    /// When that of all which arrived was sent that was sent last, and its number.
    pub(super) newest: Option<(u64, u64)>,
}

impl Arrivals {
    pub(super) fn new(now_ns: u64, echo_ns: u64, min_rtt_ns: u64, high: u64) -> Arrivals {
        Arrivals {
            now_ns,
            echo_ns,
            min_rtt_ns,
            high,
            acked_pkts: 0,
            acked_bytes: 0,
            sacked_pkts: 0,
            delivered_pkts: 0,
            resent_acked: false,
            original_arrived: false,
            echoes_mark: false,
            tells_duplicate: false,
            duplicate_is_probe: false,
            window_changed: false,
            found_lost: false,
            resent_lost: false,
            keeps_alarm: false,
            late_sacked: None,
            late_acked: None,
            acked_sent_ns: None,
            sacked_sent_ns: None,
            newest: None,
        }
    }

    /// RACK learns of a segment that arrived.
    pub(super) fn advance(&mut self, rack: &mut Rack, number: u64, sent_ns: u64, was_resent: bool) {
        let rtt_ns = self.now_ns - sent_ns;
        rack.advance(rtt_ns, self.min_rtt_ns, (sent_ns, number, was_resent));
        self.newest = self.newest.max(Some((sent_ns, number)));
    }

    /// A SACK tells of a segment that was sent once; `highest` had arrived before.
    pub(super) fn original_sacked(&mut self, number: u64, sent_ns: u64, highest: u64) {
        if number < highest {
            self.late_sacked = Some(self.late_sacked.map_or(number, |low| low.min(number)));
        }
        self.original_arrived |= number < self.high;
        let first = self.sacked_sent_ns.map_or(sent_ns, |(first, _)| first);
        self.sacked_sent_ns = Some((first, sent_ns));
    }

    /// A segment is acknowledged that was sent once and not SACKed.
    pub(super) fn original_acked(&mut self, number: u64, sent_ns: u64) {
        self.late_acked.get_or_insert(number);
        self.original_arrived |= number < self.high;
        let first = self.acked_sent_ns.map_or(sent_ns, |(first, _)| first);
        self.acked_sent_ns = Some((first, sent_ns));
    }

    /// The oldest unacknowledged segment changed.
    pub(super) fn advances(&self) -> bool {
        self.acked_pkts > 0
    }

    /// It is the first to tell that something arrived.
    pub(super) fn tells_arrival(&self) -> bool {
        self.advances() || self.sacked_pkts > 0
    }

    /// It starts the timeout anew: it acknowledges, or SACKs what was sent before the oldest segment
    /// was last (`tcp_clean_rtx_queue`). A SACK of what was sent after that shows that this is late.
    pub(super) fn restarts_timeout(&self, oldest_sent_ns: Option<u64>) -> bool {
        let sacked_first_ns = self.sacked_sent_ns.map(|(first_ns, _)| first_ns);
        self.advances() || sacked_first_ns.is_some_and(|at_ns| Some(at_ns) < oldest_sent_ns)
    }

    /// It may mean a loss (`tcp_ack_is_dubious`).
    pub(super) fn is_dubious(&self) -> bool {
        self.sacked_pkts > 0
            || self.echoes_mark
            || self.tells_duplicate
            || !(self.advances() || self.window_changed)
    }

    /// It tells nothing but that something arrived.
    pub(super) fn is_duplicate(&self) -> bool {
        !self.advances() && !self.window_changed && self.sacked_pkts == 0
    }
}
