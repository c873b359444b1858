// SPDX-License-Identifier: MIT OR Apache-2.0
//! A flow without congestion control, and the fair window that is tracked for it: bpf/cc/rude.h.

use crate::raw::{self, RawStart, RttSample, RudeNow, RudeState, Window};
use crate::{Law, Start};

/// What is remembered of a flow that is rude, or going polite.
#[derive(Clone, Debug)]
pub struct Rude {
    law: Law,
    start: RawStart,
    raw: RudeState,
}

// SAFETY of all calls below: as in control.rs; the C writes `raw` only.
impl Rude {
    /// The flow becomes rude; until now it had the window `polite`. `law` is that of its fair window.
    pub fn new(law: Law, start: Start, polite: &Window, now: &RudeNow) -> Rude {
        let mut raw = RudeState::default();
        unsafe { raw::fatpath_rude_begin(&mut raw, polite, now) }
        Rude {
            law,
            start: start.into(),
            raw,
        }
    }

    /// The flow is rude again on the way to being polite: what passed meanwhile is worked in.
    pub fn resume(&mut self, now: &RudeNow) {
        unsafe { raw::fatpath_rude_resume(&mut self.raw, now) }
    }

    /// All of it, as the kernel keeps it.
    pub fn state(&self) -> RudeState {
        self.raw
    }

    /// The fair window, F.
    pub fn fair(&self) -> &Window {
        &self.raw.fair
    }

    /// An acknowledgement of a rude flow, and the round-trip time that it measured.
    pub fn acked(&mut self, now: &RudeNow, rtt: &RttSample) {
        let Law { number, values } = &self.law;
        let values = values.as_ptr();
        unsafe { raw::fatpath_rude_acked(*number, values, &self.start, &mut self.raw, now, rtt) }
    }

    /// Congestion of which a rude flow is told otherwise than by loss: ECN, the host's own queue.
    pub fn congested(&mut self, now: &RudeNow) {
        let Law { number, values } = &self.law;
        unsafe { raw::fatpath_rude_congested(*number, values.as_ptr(), &mut self.raw, now) }
    }

    /// A retransmission timeout of a rude flow.
    pub fn timed_out(&mut self, now: &RudeNow) {
        let Law { number, values } = &self.law;
        unsafe { raw::fatpath_rude_timed_out(*number, values.as_ptr(), &mut self.raw, now) }
    }

    /// Recovery begins, or a timeout has come: what F gave up before cannot be undone with it.
    pub fn recovery_begins(&mut self) {
        unsafe { raw::fatpath_rude_recovery_begins(&mut self.raw) }
    }

    /// Nothing is in flight, and a segment is about to leave: F decays in a pause as a polite window.
    pub fn idle_restart(&mut self, idle_us: u64, rto_us: u32, initial_window_pkts: u32) {
        let (fair, start) = (&mut self.raw.fair, &self.start);
        unsafe { raw::fatpath_idle_restart(fair, start, idle_us, rto_us, initial_window_pkts) }
    }

    /// What was lost since recovery began was not: F is what it was then.
    pub fn undone(&mut self) {
        unsafe { raw::fatpath_rude_undone(self.law.number, &mut self.raw) }
    }

    /// The window of a rude flow.
    pub fn cwnd_pkts(now: &RudeNow) -> u32 {
        unsafe { raw::fatpath_rude_cwnd_pkts(now) }
    }

    /// Bytes a second at which a rude flow sends: its share, or what the path is found to carry.
    pub fn pacing_bytes_per_s(&self, now: &RudeNow, share_bytes_per_s: Option<u64>) -> u64 {
        let share = share_bytes_per_s.unwrap_or(0);
        unsafe { raw::fatpath_rude_pacing_bytes_per_s(&self.raw, now, share) }
    }

    /// Going polite, before [`Rude::shadow_acked`]: the time and the smoothed round-trip time.
    pub fn set_clock(&mut self, now_us: u64, srtt_us: u32) {
        self.raw.fair.now_us = now_us;
        self.raw.fair.srtt_us = srtt_us;
    }

    /// It ends being rude at once, and goes on with [`Rude::fair`].
    pub fn off_now(&mut self, in_flight_pkts: u32) {
        unsafe { raw::fatpath_rude_off_now(&mut self.raw, in_flight_pkts) }
    }

    /// It begins going polite: its window and threshold from now on, R.
    pub fn off_nicely(&mut self, in_flight_pkts: u32) -> u32 {
        unsafe { raw::fatpath_rude_off_nicely(&mut self.raw, in_flight_pkts) }
    }

    /// Going polite: R after an acknowledgement of new data outside of recovery. `used_pkts` of R are in
    /// use, R itself if it holds the flow back.
    pub fn shadow_acked(
        &mut self,
        rtt: &RttSample,
        r_pkts: u32,
        used_pkts: u32,
        acked_pkts: u32,
    ) -> u32 {
        let Law { number, values } = &self.law;
        let (law, values, start, raw) = (*number, values.as_ptr(), &self.start, &mut self.raw);
        unsafe {
            raw::fatpath_rude_shadow_acked(
                law, values, start, raw, rtt, r_pkts, used_pkts, acked_pkts,
            )
        }
    }

    /// Going polite: R's threshold after a congestion event; F has fallen too.
    pub fn shadow_ssthresh(&mut self, r_pkts: u32) -> u32 {
        let Law { number, values } = &self.law;
        let values = values.as_ptr();
        unsafe { raw::fatpath_rude_shadow_ssthresh(*number, values, &mut self.raw, r_pkts) }
    }

    /// What is in use of R is within `milli` / 1000 of F: the flow is polite, with [`Rude::fair`].
    pub fn has_converged(&self, used_pkts: u32, milli: u32) -> bool {
        let fair_pkts = self.raw.fair.cwnd_pkts;
        unsafe { raw::fatpath_rude_has_converged(used_pkts, fair_pkts, milli) != 0 }
    }
}
