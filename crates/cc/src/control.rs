// SPDX-License-Identifier: MIT OR Apache-2.0
//! One flow's congestion control: a law with its parameters, and the start-up that every law shares.

use crate::raw::{self, Kept, RawStart, RttSample, Window};
use crate::{Law, Start};

/// One flow's congestion control. The host stack owns the [`Window`], decides what was lost and when
/// recovery ends, and asks here how the window grows and what is left of it.
#[derive(Clone, Debug)]
pub struct Control {
    law: Law,
    start: RawStart,
}

/// The path as the flow knows it at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathNow {
    /// Smoothed round-trip time.
    pub srtt_us: u32,
    /// Bytes of data in a segment.
    pub mss_bytes: u32,
}

// SAFETY of all calls below: the pointers live for the call; the C writes the window only, and reads
// the start, and as many values as the law has parameters.
impl Control {
    /// For a flow that has not sent yet.
    pub fn new(law: Law, start: Start) -> Control {
        Control {
            law,
            start: start.into(),
        }
    }

    /// The law in use.
    pub fn law(&self) -> Law {
        self.law
    }

    /// The law's parameters change under way, as when a policy does.
    pub fn set_law(&mut self, law: Law) {
        self.law = law;
    }

    /// The connection is established: the window gets its initial threshold.
    pub fn begin(&mut self, window: &mut Window) {
        unsafe { raw::fatpath_begin(window, &self.start) }
    }

    /// `acked_pkts` segments left the network while the window was in full use, outside of recovery.
    pub fn acked(&mut self, window: &mut Window, acked_pkts: u32) {
        let Law { number, values } = &self.law;
        unsafe { raw::fatpath_acked(*number, values.as_ptr(), &self.start, window, acked_pkts) }
    }

    /// A congestion event: the slow-start threshold after it, segments; `in_flight_pkts` are sent and not
    /// acknowledged. The window itself is the host stack's to reduce.
    pub fn ssthresh(&mut self, window: &mut Window, in_flight_pkts: u32) -> u32 {
        let Law { number, values } = &self.law;
        unsafe { raw::fatpath_ssthresh(*number, values.as_ptr(), window, in_flight_pkts) }
    }

    /// The loss was spurious: the window to go back to; `prior_cwnd_pkts` is the one before the event.
    pub fn undo_cwnd(&mut self, window: &mut Window, prior_cwnd_pkts: u32) -> u32 {
        unsafe { raw::fatpath_undo_cwnd(self.law.number, window, prior_cwnd_pkts) }
    }

    /// A round-trip time was measured.
    pub fn rtt_sample(&mut self, window: &mut Window, sample: &RttSample) {
        let RttSample {
            rtt_us,
            acked_seq,
            next_seq,
        } = *sample;
        unsafe { raw::fatpath_rtt_sample(window, &self.start, rtt_us, acked_seq, next_seq) }
    }

    /// A segment is about to leave after a pause longer than the RTO, with nothing in flight.
    pub fn idle_restart(
        &mut self,
        window: &mut Window,
        idle_us: u64,
        rto_us: u32,
        initial_window_pkts: u32,
    ) {
        unsafe {
            raw::fatpath_idle_restart(window, &self.start, idle_us, rto_us, initial_window_pkts);
        }
    }

    /// A segment is about to leave with nothing in flight. Some: a paced start begins; the rate at which
    /// to send until [`Control::ack_arrived`] says that it ends, bytes a second.
    pub fn transmission_starts(&mut self, window: &mut Window, path: &PathNow) -> Option<u64> {
        let PathNow { srtt_us, mss_bytes } = *path;
        let rate =
            unsafe { raw::fatpath_transmission_starts(window, &self.start, srtt_us, mss_bytes) };
        (rate > 0).then_some(rate)
    }

    /// No more than `most_pkts` are to leave until the next acknowledgement; 0: no bound.
    pub fn bound_burst(&mut self, window: &mut Window, most_pkts: u32, in_flight_pkts: u32) {
        unsafe { raw::fatpath_bound_burst(window, most_pkts, in_flight_pkts) }
    }

    /// The next acknowledgement, or a congestion event, ends that bound. True: it held a part of the window back.
    pub fn end_burst_bound(&mut self, window: &mut Window) -> bool {
        unsafe { raw::fatpath_end_burst_bound(window) != 0 }
    }

    /// The program goes from one phase to another, outside of recovery. `kept` is what the flow had when it left that one,
    /// and afterwards what it has now. Of the window no more than `at_once_pkts`, 1 or more, opens at once; a phase
    /// without history begins with `initial_window_pkts` at most.
    pub fn change_phase(
        &self,
        window: &mut Window,
        kept: &mut Kept,
        in_flight_pkts: u32,
        at_once_pkts: u32,
        initial_window_pkts: u32,
    ) {
        let (now, next) = (in_flight_pkts, at_once_pkts);
        unsafe {
            raw::fatpath_change_phase(window, &self.start, kept, now, next, initial_window_pkts);
        }
    }

    /// An acknowledgement arrived; `in_flight_pkts` were in flight before it. True: the paced start ends.
    pub fn ack_arrived(&mut self, window: &mut Window, in_flight_pkts: u32) -> bool {
        unsafe { raw::fatpath_ack_arrived(window, in_flight_pkts) != 0 }
    }
}

impl From<Start> for RawStart {
    fn from(start: Start) -> RawStart {
        RawStart {
            initial_rate_bps: start.initial_rate_bps,
            max_ssthresh_pkts: start.max_ssthresh_pkts,
            initial_ssthresh_pkts: start.initial_ssthresh_pkts,
            idle: start.idle as u32,
            hystart: u32::from(start.hystart),
            known: start.known,
        }
    }
}
