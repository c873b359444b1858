// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which segments of the scoreboard are lost: by time, by count, by a timeout; and that none was.
//!
//! Start with [`Scoreboard::lose_by_time`].

use std::cmp::Reverse;

use super::{EVER_RESENT, LOST, RESENT, Resent, SACKED, Scoreboard};
use crate::rack::Rack;

impl Scoreboard {
    /// Marks as lost what was sent so long before the segment that arrived that it must be (RFC 8985,
    /// 6.2, step 5). Whether some were sent before it and are not lost yet.
    pub(crate) fn lose_by_time(&mut self, rack: &Rack, reo_wnd_ns: u64, now_ns: u64) -> bool {
        let mut waits = false;
        let mut is_lost = |sent_ns, number| {
            let is_before = rack.sent_after(sent_ns, number);
            let is_late = is_before && rack.lost_at_ns(sent_ns, reo_wnd_ns) <= now_ns;
            waits |= is_before && !is_late;
            is_late
        };
        while let Some(sent) = self.get(self.first_sent_from).copied() {
            if !sent.is(SACKED | LOST | EVER_RESENT) {
                if !is_lost(sent.sent_ns, self.first_sent_from) {
                    break;
                }
                self.lose(self.first_sent_from);
            }
            self.first_sent_from += 1;
            self.count_step();
        }
        while let Some(resent) = self.resent.front().copied() {
            if self.is_on_its_way(resent) {
                if !is_lost(resent.sent_ns, resent.number) {
                    break;
                }
                self.lose(resent.number);
            }
            self.resent.pop_front();
            self.count_step();
        }
        waits
    }

    fn is_on_its_way(&self, resent: Resent) -> bool {
        self.get(resent.number).is_some_and(|sent| {
            sent.sent_ns == resent.sent_ns
                && !sent.is(SACKED)
                && (sent.is(RESENT) || !sent.is(LOST))
        })
    }

    /// Marks as lost every segment beyond which `dupthresh` are SACKed (`IsLost` of RFC 6675).
    pub(crate) fn lose_by_count(&mut self, dupthresh: u32) {
        let Some(most_below) = self.counts.sacked.checked_sub(dupthresh) else {
            return;
        };
        while let Some(sent) = self.get(self.counted_until).copied() {
            let below = self.sacked_below + u32::from(sent.is(SACKED));
            if below > most_below {
                break;
            }
            self.sacked_below = below;
            if !sent.is(LOST) {
                self.lose(self.counted_until);
            }
            self.counted_until += 1;
            self.count_step();
        }
    }

    /// Marks as lost every segment that is `dupthresh` or more below the highest that was SACKed (`snd.fack` of Mathis
    /// and Mahdavi).
    pub(crate) fn lose_by_highest(&mut self, dupthresh: u32) {
        let end = self.highest_arrived().saturating_sub(dupthresh.into());
        while self.counted_until < end
            && let Some(sent) = self.get(self.counted_until).copied()
        {
            self.sacked_below += u32::from(sent.is(SACKED));
            if !sent.is(LOST) {
                self.lose(self.counted_until);
            }
            self.counted_until += 1;
            self.count_step();
        }
    }

    /// After a timeout: the oldest is lost, and all others for which `is_lost` of the time they were
    /// sent at. It walks over the whole window.
    pub(crate) fn lose_all(&mut self, is_lost: impl Fn(u64) -> bool) {
        for number in self.una..self.next() {
            if number == self.una || is_lost(self.queue[(number - self.una) as usize].sent_ns) {
                self.lose(number);
            }
        }
    }

    /// Marks a segment as lost, or its retransmission.
    pub(super) fn lose(&mut self, number: u64) {
        let sent = &mut self.queue[(number - self.una) as usize];
        if sent.is(SACKED) || (sent.is(LOST) && !sent.is(RESENT)) {
            return;
        }
        self.ever_lost += 1;
        self.counts.lost += u32::from(!sent.is(LOST));
        self.counts.resent -= u32::from(sent.is(RESENT));
        sent.marks = sent.marks & !RESENT | LOST;
        self.lost.push(Reverse(number));
    }

    /// Nothing counts as lost any more: what was so was late. All is judged again. It walks over the
    /// whole window.
    pub(crate) fn find_all(&mut self) {
        self.queue.iter_mut().for_each(|sent| sent.marks &= !LOST);
        self.counts.lost = 0;
        self.lost.clear();
        self.first_sent_from = self.una;
        (self.counted_until, self.sacked_below) = (self.una, 0);
        let numbered = (self.una..).zip(&self.queue);
        let resent = numbered.filter(|(_, sent)| sent.is(EVER_RESENT) && !sent.is(SACKED));
        self.resent = resent
            .map(|(number, sent)| Resent {
                number,
                sent_ns: sent.sent_ns,
            })
            .collect();
        self.resent
            .make_contiguous()
            .sort_by_key(|resent| resent.sent_ns);
    }
}
