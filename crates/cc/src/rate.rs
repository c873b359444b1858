// SPDX-License-Identifier: MIT OR Apache-2.0
//! One flow under a law that goes by samples of the delivery rate.

use crate::raw::{self, KnownPath, RateFlow, RateSample};
use crate::{Bbr, Kind, Law};

impl RateSample {
    /// The program had little to send when the segment left.
    pub const APP_LIMITED: u32 = raw::CC_RATE_APP_LIMITED;
    /// The window held the flow back.
    pub const CWND_LIMITED: u32 = raw::CC_RATE_CWND_LIMITED;
    /// In fast recovery.
    pub const RECOVERS: u32 = raw::CC_RATE_RECOVERS;
    /// In recovery after a timeout.
    pub const TIMED_OUT: u32 = raw::CC_RATE_TIMED_OUT;
    /// The peer sends no selective acknowledgements.
    pub const NO_SACK: u32 = raw::CC_RATE_NO_SACK;
    /// The flow has sent under another law.
    pub const HAD_LAW: u32 = raw::CC_RATE_HAD_LAW;
}

/// One flow's window and pacing rate. The host stack samples the delivery rate, decides what was lost, and asks
/// here how fast and how much to send.
#[derive(Clone, Debug)]
pub struct RateControl {
    law: Law,
    flow: Box<RateFlow>,
}

// SAFETY of all calls below: the pointers live for the call; the C writes the flow and the sample only, and reads as
// many values as the law has parameters.
impl RateControl {
    /// For a flow that has this law from here on, with the window that it has.
    ///
    /// # Panics
    /// When the law is none of [`Kind::Rate`].
    pub fn new(law: Law, cwnd_pkts: u32, clamp_pkts: u32, now: &RateSample) -> RateControl {
        assert_eq!(law.spec().kind, Kind::Rate);
        let mut flow = Box::new(RateFlow {
            cwnd_pkts,
            clamp_pkts,
            ..RateFlow::default()
        });
        unsafe { raw::fatpath_rate_begin(law.number, &mut *flow, now) };
        RateControl { law, flow }
    }

    /// Nothing was sent, and the path is known to carry this, bits of data a second: the flow starts at that rate, where a start
    /// by the law would be slower.
    pub fn start_at(&mut self, rate_bps: u64, now: &RateSample) {
        unsafe { raw::fatpath_rate_start_at(self.law.number, &mut *self.flow, now, rate_bps) }
    }

    /// Nothing was sent under this law. Whether the flow makes way for others, who fill a path that is known, as a handshake tells that met a
    /// queue, or may fill it, where the flow had another law ([`RateSample::HAD_LAW`]): then it does not start at a rate.
    pub fn makes_way(&mut self, known: &KnownPath, now: &RateSample) -> bool {
        unsafe { raw::fatpath_rate_makes_way(self.law.number, &mut *self.flow, now, known) != 0 }
    }

    /// What of such a start was not tried counts no longer.
    pub fn end_start(&mut self) {
        unsafe { raw::fatpath_rate_start_ends(self.law.number, &mut *self.flow) }
    }

    /// A flow as the kernel half keeps it.
    pub fn from_flow(law: Law, flow: RateFlow) -> RateControl {
        let flow = Box::new(flow);
        RateControl { law, flow }
    }

    /// The flow as the kernel half keeps it.
    pub fn flow(&self) -> &RateFlow {
        &self.flow
    }

    /// The law in use.
    pub fn law(&self) -> Law {
        self.law
    }

    /// The window, segments.
    pub fn cwnd_pkts(&self) -> u32 {
        self.flow.cwnd_pkts
    }

    /// The window is no more than this, segments.
    pub fn clamp_pkts(&self) -> u32 {
        self.flow.clamp_pkts
    }

    /// The host lowered the window by itself, as after a timeout.
    pub fn set_cwnd_pkts(&mut self, cwnd_pkts: u32) {
        self.flow.cwnd_pkts = cwnd_pkts;
    }

    /// Bytes of data a second at which to send.
    pub fn pacing_bytes_per_s(&self) -> u64 {
        self.flow.pacing_bytes_per_s
    }

    /// An acknowledgement, after the host has looked for losses.
    pub fn acked(&mut self, sample: &RateSample) {
        let Law { number, values } = &self.law;
        let mut sample = *sample;
        unsafe {
            raw::fatpath_rate_acked(*number, values.as_ptr(), &mut *self.flow, &mut sample);
        }
    }

    /// Fast recovery or a timeout begins, before the host lowers the window.
    pub fn recovery_begins(&mut self) {
        unsafe { raw::fatpath_rate_recovery_begins(self.law.number, &mut *self.flow) }
    }

    /// The losses were spurious.
    pub fn undone(&mut self) {
        unsafe { raw::fatpath_rate_undone(self.law.number, &mut *self.flow) }
    }

    /// A segment is about to leave with nothing in flight.
    pub fn transmission_starts(&mut self, now: &RateSample) {
        let Law { number, values } = &self.law;
        unsafe {
            raw::fatpath_rate_transmission_starts(*number, values.as_ptr(), &mut *self.flow, now);
        }
    }

    /// What BBR knows of the path; `None` under another law.
    pub fn bbr(&self) -> Option<Bbr> {
        (self.law.spec().name == "bbr").then(|| Bbr::of(&self.flow))
    }
}
