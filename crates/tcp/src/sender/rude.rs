// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sender without congestion control (`fp_rude`), and how it goes back to it: its window is what the
//! peer's holds, nothing reduces it, and all that leaves is paced unless it is unlimited. Its fair window is kept by
//! bpf/cc/rude.h, as in the kernel.

use fatpath_cc::{RttSample, Rude, RudeNow, Window};

use super::Sender;
use crate::arrivals::Arrivals;
use crate::{RudeRate, RudeSpec, TcpSpec};

/// A flow that is rude, or going polite.
#[derive(Debug)]
pub(super) struct Rudeness {
    spec: RudeSpec,
    rude: Rude,
    /// RUDE_OFF_NICELY: its window is R, and the law's hooks move both R and F.
    is_going_polite: bool,
    /// What this acknowledgement measured.
    rtt: RttSample,
}

impl Rudeness {
    pub(super) fn new(spec: &TcpSpec, window: &Window) -> Option<Box<Rudeness>> {
        let rude = spec.rude?;
        Some(Box::new(Rudeness {
            spec: rude,
            rude: Rude::new(spec.law, spec.start, window, &RudeNow::default()),
            is_going_polite: false,
            rtt: RttSample::default(),
        }))
    }

    /// Segments of the fair window.
    pub(super) fn fair_pkts(&self) -> u32 {
        self.rude.fair().cwnd_pkts
    }

    /// Bytes a second; `None`: it is not paced.
    fn pace(&self, now: &RudeNow) -> Option<u64> {
        let share = match self.spec.rate {
            RudeRate::Estimated => None,
            RudeRate::Share(bits) => Some((bits / 8).max(1)),
            RudeRate::Unlimited => return None,
        };
        Some(self.rude.pacing_bytes_per_s(now, share))
    }

    /// R, of which so much is in use, and F are close enough.
    fn has_converged(&self, used_pkts: u32) -> bool {
        let milli = self.spec.converged_milli;
        self.is_going_polite && self.rude.has_converged(used_pkts, milli)
    }
}

impl Sender {
    /// Without congestion control now.
    pub fn is_rude(&self) -> bool {
        let rudeness = self.rudeness.as_ref();
        rudeness.is_some_and(|flow| !flow.is_going_polite)
    }

    /// It goes on with R, and towards F.
    pub(super) fn is_going_polite(&self) -> bool {
        self.rudeness.is_some() && !self.is_rude()
    }

    /// An acknowledgement has measured a round trip, or nothing.
    pub(super) fn note_rtt(&mut self, sample: RttSample) {
        match (&mut self.rate_flow, &mut self.rudeness) {
            (Some(flow), _) => flow.note_rtt(sample.rtt_us),
            (None, Some(flow)) => flow.rtt = sample,
            (None, None) => self.note_rtt_by_law(&sample),
        }
    }

    fn note_rtt_by_law(&mut self, sample: &RttSample) {
        match &mut self.kernel_cubic {
            Some(kernel) => kernel.note_rtt(&mut self.window, sample),
            None => self.control.rtt_sample(&mut self.window, sample),
        }
    }

    /// What the law may ask at this acknowledgement.
    pub(super) fn set_clock(&mut self, now_ns: u64) {
        let (now_us, srtt_us) = (now_ns / 1000, self.rtt.srtt_us() as u32);
        self.window.now_us = now_us;
        self.window.srtt_us = srtt_us;
        if let Some(flow) = self.rudeness.as_mut().filter(|flow| flow.is_going_polite) {
            flow.rude.set_clock(now_us, srtt_us);
        }
    }

    /// An acknowledgement of a rude flow, in the place of `tcp_cong_control`.
    pub(super) fn steer_rudely(&mut self, arrivals: &Arrivals) {
        self.sample_rate(arrivals);
        let now = self.rude_now(arrivals.now_ns);
        if let Some(flow) = &mut self.rudeness {
            flow.rude.acked(&now, &flow.rtt);
        }
        self.open_rude_window(arrivals.now_ns);
        self.end_rudeness_in_time(arrivals.now_ns);
    }

    /// Its window and its pace.
    pub(super) fn open_rude_window(&mut self, now_ns: u64) {
        let now = self.rude_now(now_ns);
        if let Some(flow) = &self.rudeness {
            self.window.cwnd_pkts = Rude::cwnd_pkts(&now);
            self.window.ssthresh_pkts = Window::NO_SSTHRESH;
            self.pacer.set_rate(flow.pace(&now));
        }
    }

    fn rude_now(&self, now_ns: u64) -> RudeNow {
        let room_bytes = self.peer_window_end - self.figures.acked_bytes;
        let latest = self.delivery_rate.as_ref().map(|rate| rate.latest());
        let (pkts_per_s, is_app_limited) = latest.unwrap_or_default();
        RudeNow {
            now_us: now_ns / 1000,
            rate_bytes_per_s: (pkts_per_s * f64::from(self.mss_bytes)) as u64,
            rate_is_app_limited: is_app_limited.into(),
            delivered_pkts: self.figures.delivered_pkts as u32,
            lost_pkts: self.board.ever_lost_pkts() as u32,
            in_flight_pkts: self.board.in_flight(),
            peer_window_pkts: u32::try_from(room_bytes / u64::from(self.mss_bytes))
                .unwrap_or(u32::MAX),
            max_window_pkts: self.window.clamp_pkts,
            srtt_us: self.rtt.srtt_us() as u32,
            min_rtt_us: (self.rtt.min_rtt_ns() / 1000) as u32,
            mss_bytes: self.mss_bytes,
            wire_bytes: self.mss_bytes, // the pacer counts data, as Linux
        }
    }

    fn end_rudeness_in_time(&mut self, now_ns: u64) {
        let off = self.rudeness.as_ref().and_then(|flow| flow.spec.off);
        if let Some(off) = off.filter(|off| off.at_ns <= now_ns) {
            self.end_rudeness(off.nicely);
        }
    }

    /// RUDE_OFF_NOW, at any time: from now on the flow has congestion control, and its fair window. One that has is left as it
    /// is.
    pub fn be_polite_now(&mut self) {
        if self.is_rude() {
            self.end_rudeness(false);
        } else {
            self.be_polite(); // it was on the way there
        }
    }

    fn end_rudeness(&mut self, nicely: bool) {
        self.undo.prior_ssthresh_pkts = 0; // the window before is none of the law's
        self.pacer.set_rate(None);
        let in_flight = self.board.in_flight();
        let Some(flow) = &mut self.rudeness else {
            return;
        };
        if nicely {
            let r_pkts = flow.rude.off_nicely(in_flight);
            flow.is_going_polite = true;
            self.window.cwnd_pkts = r_pkts;
            self.window.ssthresh_pkts = r_pkts;
            self.be_polite_if_converged(r_pkts);
        } else {
            flow.rude.off_now(in_flight);
            self.be_polite();
        }
    }

    /// From now on the fair window is the flow's, also at the end of recovery, which makes it the
    /// threshold.
    fn be_polite(&mut self) {
        if let Some(flow) = self.rudeness.take() {
            self.window = *flow.rude.fair();
            self.delivery_rate = None;
            if self.is_reducing() {
                self.window.ssthresh_pkts = self.window.cwnd_pkts;
            }
        }
    }

    fn be_polite_if_converged(&mut self, used_pkts: u32) {
        let flow = self.rudeness.as_ref();
        if flow.is_some_and(|flow| flow.has_converged(used_pkts)) {
            self.be_polite();
        }
    }

    /// Segments were acknowledged outside of recovery; a polite flow's window is in full use.
    pub(super) fn grow(&mut self, acked_pkts: u32) {
        let used_pkts = self.usage.used_pkts(&self.window);
        match &mut self.rudeness {
            Some(flow) => {
                let r_pkts = self.window.cwnd_pkts;
                let grown_pkts = flow
                    .rude
                    .shadow_acked(&flow.rtt, r_pkts, used_pkts, acked_pkts);
                self.window.cwnd_pkts = grown_pkts;
                self.be_polite_if_converged(used_pkts + grown_pkts.saturating_sub(r_pkts));
            }
            None => self.grow_by_law(acked_pkts),
        }
    }

    fn grow_by_law(&mut self, acked_pkts: u32) {
        let before_pkts = self.window.cwnd_pkts;
        self.control.acked(&mut self.window, acked_pkts);
        if let Some(kernel) = &mut self.kernel_cubic {
            kernel.acked(&mut self.window, before_pkts, acked_pkts);
        }
    }

    /// A congestion event: the slow-start threshold after it.
    pub(super) fn ssthresh_of_event(&mut self) -> u32 {
        if self.rate_flow.is_some() {
            return self.begin_rate_recovery();
        }
        let unacked_pkts = (self.board.next() - self.board.una()) as u32;
        if let Some(kernel) = &mut self.kernel_cubic {
            kernel.met_congestion();
        }
        match &mut self.rudeness {
            Some(flow) if flow.is_going_polite => flow.rude.shadow_ssthresh(self.window.cwnd_pkts),
            Some(flow) => {
                flow.rude.recovery_begins();
                Window::NO_SSTHRESH
            }
            None => self.control.ssthresh(&mut self.window, unacked_pkts),
        }
    }

    /// The last reduction was needless: the window of before.
    pub(super) fn undone_cwnd_pkts(&mut self, prior_pkts: u32) -> u32 {
        if self.rate_flow.is_some() {
            return self.undone_rate_cwnd_pkts();
        }
        match &mut self.rudeness {
            Some(flow) => {
                flow.rude.undone();
                self.window.cwnd_pkts.max(prior_pkts)
            }
            None => self.control.undo_cwnd(&mut self.window, prior_pkts),
        }
    }

    /// After a retransmission timeout, which has left next to no window: a rude flow goes on, one that
    /// was going polite is so, for nothing is left of R.
    pub(super) fn time_out_rudely(&mut self, now_ns: u64) {
        if self.is_rude() {
            let now = self.rude_now(now_ns);
            if let Some(flow) = &mut self.rudeness {
                flow.rude.timed_out(&now);
            }
            self.open_rude_window(now_ns);
        } else if self.rudeness.is_some() {
            let cwnd_pkts = self.window.cwnd_pkts;
            self.be_polite();
            self.window.cwnd_pkts = cwnd_pkts;
        }
    }

    /// The network, or the host itself, asks for less, and no loss was counted: an echo of congestion, or a tail
    /// loss probe that was needed.
    pub(super) fn note_rude_congestion(&mut self, now_ns: u64) {
        if !self.is_rude() {
            return;
        }
        let now = self.rude_now(now_ns);
        if let Some(flow) = &mut self.rudeness {
            flow.rude.congested(&now);
        }
    }

    /// Nothing is on its way, and something is about to leave after a pause.
    pub(super) fn begin_rude_transmission(&mut self, idle_ns: u64) {
        let (rto_us, initial_pkts) = (self.rtt.rto_us() as u32, self.initial_window_pkts);
        if let Some(flow) = &mut self.rudeness {
            flow.rude.idle_restart(idle_ns / 1000, rto_us, initial_pkts);
        }
    }
}
