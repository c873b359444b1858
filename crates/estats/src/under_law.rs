// SPDX-License-Identifier: MIT OR Apache-2.0
//! Since when a flow has its law, and since when it is past that law's start: what a law that looks for the path's rate
//! loses meanwhile says nothing of the path.

use crate::diagnosis::loss::answers_to_loss;
use crate::totals::Totals;
use fatpath_api::Sample;

/// A start is over after so long, and so many round trips.
const START_NS: u64 = 5_000_000_000;
const START_ROUND_TRIPS: u64 = 20;

/// So many round trips after a change of the law what the one before had in flight, and the losses of it, are over.
const PAST_ROUND_TRIPS: u64 = 10;

/// The counters at these moments. Of laws that answer to losses one takes the place of another without a start: losses
/// tell the same under each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnderLaw {
    /// When it got the law.
    pub(crate) since: Totals,
    /// When nothing of the law before was left; none before.
    pub(crate) alone: Option<Totals>,
    /// When the start was over; none before.
    pub(crate) settled: Option<Totals>,
    /// Whether a window has closed since then that began after it, and that nothing but the path held back.
    pub(crate) has_shown_rate: bool,
    is_paced: bool,
}

impl UnderLaw {
    pub(crate) fn new(at: Totals) -> UnderLaw {
        UnderLaw {
            since: at,
            alone: None,
            settled: None,
            has_shown_rate: false,
            is_paced: false,
        }
    }

    /// `is_paced`: by its rule. A pace is like another law.
    pub(crate) fn follow(&mut self, before: &Sample, last: &Sample, is_paced: bool, now: &Totals) {
        let both_answer = answers_to_loss(&before.law) && answers_to_loss(&last.law);
        let is_other = last.law != before.law && !both_answer;
        if is_other || is_paced != self.is_paced {
            *self = UnderLaw::new(*now);
        }
        self.is_paced = is_paced;
        let srtt_us = u64::from(last.srtt_us);
        let start_us = (START_NS / 1000).max(START_ROUND_TRIPS * srtt_us);
        // A pause is no part of a start.
        let busy_us = now.busy_us.saturating_sub(self.since.busy_us);
        if self.alone.is_none() && busy_us >= PAST_ROUND_TRIPS * srtt_us {
            self.alone = Some(*now);
        }
        if self.settled.is_none() && busy_us >= start_us {
            self.settled = Some(*now);
        }
    }

    /// A window has closed that began then, and that nothing but the path held back.
    pub(crate) fn close_window(&mut self, began: &Totals) {
        let is_past_start = |settled: &Totals| began.now_ns >= settled.now_ns;
        self.has_shown_rate |= self.settled.as_ref().is_some_and(is_past_start);
    }
}
