// SPDX-License-Identifier: MIT OR Apache-2.0
//! RACK (RFC 8985): of all segments that arrived, the one sent last, and how much reordering in time
//! is borne with before an earlier one counts as lost.

/// Rounds of recovery after which the reordering window falls back (RFC 8985, 6.2, step 4).
const REO_WND_PERSIST: u8 = 16;

/// What RACK remembers.
#[derive(Debug)]
pub(super) struct Rack {
    sent_ns: u64,
    number: u64,
    rtt_ns: u64,
    has_news: bool,
    reo_wnd_mult: u32,
    reo_wnd_persist: u8,
    saw_duplicate: bool,
    adjusted_until: u64,
}

/// What bounds the reordering window.
pub(super) struct Bounds {
    pub(super) min_rtt_ns: u64,
    pub(super) srtt_ns: u64,
    /// Nothing has ever been reordered, and either recovery goes on or `dupthresh` segments are SACKed.
    pub(super) is_impatient: bool,
}

impl Rack {
    pub(super) fn new() -> Rack {
        Rack {
            sent_ns: 0,
            number: 0,
            rtt_ns: 0,
            has_news: false,
            reo_wnd_mult: 1,
            reo_wnd_persist: 0,
            saw_duplicate: false,
            adjusted_until: 0,
        }
    }

    /// A segment that was sent at `sent_ns` has arrived (6.2, step 2).
    pub(super) fn advance(
        &mut self,
        rtt_ns: u64,
        min_rtt_ns: u64,
        (sent_ns, number, was_resent): (u64, u64, bool),
    ) {
        if was_resent && rtt_ns < min_rtt_ns {
            return; // it was the first transmission that arrived
        }
        self.has_news = true;
        self.rtt_ns = rtt_ns;
        if (sent_ns, number) > (self.sent_ns, self.number) {
            (self.sent_ns, self.number) = (sent_ns, number);
        }
    }

    /// Whether losses are to be looked for again; asked once.
    pub(super) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    /// Losses are to be looked for again.
    pub(super) fn look_again(&mut self) {
        self.has_news = true;
    }

    /// Whether that segment was sent before the one that arrived.
    pub(super) fn sent_after(&self, sent_ns: u64, number: u64) -> bool {
        (self.sent_ns, self.number) > (sent_ns, number)
    }

    /// When a segment that was sent at `sent_ns` counts as lost.
    pub(super) fn lost_at_ns(&self, sent_ns: u64, reo_wnd_ns: u64) -> u64 {
        sent_ns + self.rtt_ns + reo_wnd_ns
    }

    /// When the last segment that was sent before the one that arrived counts as lost, at the latest.
    pub(super) fn last_lost_at_ns(&self, reo_wnd_ns: u64) -> u64 {
        self.lost_at_ns(self.sent_ns, reo_wnd_ns)
    }

    /// How long a segment may be late (6.2, step 4).
    pub(super) fn reo_wnd_ns(&self, bounds: &Bounds) -> u64 {
        if bounds.is_impatient {
            return 0;
        }
        (bounds.min_rtt_ns / 4 * u64::from(self.reo_wnd_mult)).min(bounds.srtt_ns)
    }

    /// A retransmission was needless, though segments may come reordered.
    pub(super) fn note_duplicate(&mut self) {
        self.saw_duplicate = true;
    }

    /// The reordering window grows once a round trip with a needless retransmission.
    pub(super) fn adjust(&mut self, una: u64, next: u64) {
        if una < self.adjusted_until {
            self.saw_duplicate = false;
        }
        if std::mem::take(&mut self.saw_duplicate) {
            self.reo_wnd_mult = (self.reo_wnd_mult + 1).min(0xff);
            self.reo_wnd_persist = REO_WND_PERSIST;
            self.adjusted_until = next;
        } else if self.reo_wnd_persist == 0 {
            self.reo_wnd_mult = 1;
        }
    }

    /// A recovery ended, and its retransmissions were needed or not.
    pub(super) fn recovered(&mut self, was_needed: bool) {
        self.reo_wnd_persist = if was_needed {
            self.reo_wnd_persist.saturating_sub(1)
        } else {
            (self.reo_wnd_persist + 1).min(REO_WND_PERSIST)
        };
    }
}
