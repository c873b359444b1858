// SPDX-License-Identifier: MIT OR Apache-2.0
//! Without SACK: a duplicate acknowledgement tells that one more segment arrived beyond a hole, not which
//! (`tcp_add_reno_sack` of Linux). What RFC 5681 adds to the window for each is here taken from what is in flight.

use super::{LOST, Scoreboard};

impl Scoreboard {
    /// One more arrived. Whether there is one of which that can be said: of those on their way one at least is missing.
    pub(crate) fn tell_unnamed(&mut self) -> bool {
        self.unnamed += 1;
        let told = self.unnamed;
        self.bound_unnamed();
        self.unnamed == told
    }

    /// `acked_pkts` were acknowledged: one filled the hole, the others had arrived before it
    /// (`tcp_remove_reno_sacks`). How many of them duplicate acknowledgements had told of.
    pub(crate) fn name_unnamed(&mut self, acked_pkts: u32) -> u32 {
        let told = self.unnamed.min(acked_pkts.saturating_sub(1));
        self.unnamed -= told;
        self.bound_unnamed();
        told
    }

    /// No hole is known any more.
    pub(crate) fn forget_unnamed(&mut self) {
        self.unnamed = 0;
    }

    fn bound_unnamed(&mut self) {
        let missing = self.counts.lost.max(1);
        let most = self.packets_out().saturating_sub(missing);
        self.unnamed = self.unnamed.min(most);
    }

    /// The oldest segment is lost, unless it is known to be.
    pub(crate) fn lose_oldest(&mut self) {
        if self.queue.front().is_some_and(|sent| !sent.is(LOST)) {
            self.lose(self.una);
        }
    }
}
