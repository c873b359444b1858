// SPDX-License-Identifier: MIT OR Apache-2.0
//! The congestion-control laws of bpf/cc, compiled for the host: the very files that the
//! kernel runs, behind a safe face. Pure: no clock, no randomness, no I/O.
//!
//! Start at [`Control`].
#![allow(unsafe_code)] // calls into the laws' C, which touches only what it is given

mod control;
mod start;

pub use control::Control;
pub use start::{Idle, Start};

/// A law with its parameters.
pub type Law = Aimd;

/// The window of one flow, `struct cc_window`. Windows in segments.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Congestion window.
    pub cwnd_pkts: u32,
    /// Slow-start threshold.
    pub ssthresh_pkts: u32,
    /// The window never grows past it.
    pub clamp_pkts: u32,
    /// Growth that is earned but not yet a whole segment, in the law's own unit.
    pub credit: u64,
}

/// Parameters of AIMD(a, b), `struct cc_aimd`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aimd {
    a_milli: u32,
    b_milli: u32,
}

unsafe extern "C" {
    fn fatpath_aimd_acked(window: *mut Window, params: *const Aimd, acked_pkts: u32);
    fn fatpath_aimd_ssthresh(window: *mut Window, params: *const Aimd) -> u32;
    fn fatpath_aimd_is_valid(params: *const Aimd) -> i32;
}

impl Window {
    /// A window in slow start with no bound.
    pub fn new(cwnd_pkts: u32) -> Window {
        Window {
            cwnd_pkts,
            ssthresh_pkts: u32::MAX,
            clamp_pkts: u32::MAX,
            credit: 0,
        }
    }
}

impl Aimd {
    /// RFC 5681: one segment a round trip, half of the window.
    pub const RENO: Aimd = Aimd {
        a_milli: 1000,
        b_milli: 500,
    };

    /// `a` from 10 to 10,000,000 thousandths of a segment, `b` from 1 to 999 thousandths of the window;
    /// `None` outside.
    pub fn new(a_milli: u32, b_milli: u32) -> Option<Aimd> {
        let params = Aimd { a_milli, b_milli };
        // SAFETY: reads the two fields.
        let is_valid = unsafe { fatpath_aimd_is_valid(&params) } != 0;
        is_valid.then_some(params)
    }

    /// `acked_pkts` segments left the network while the window was in full use.
    pub fn acked(&self, window: &mut Window, acked_pkts: u32) {
        // SAFETY: both live for the call; the law writes the window only.
        unsafe { fatpath_aimd_acked(window, self, acked_pkts) }
    }

    /// A congestion event: the slow-start threshold after it, segments. The window itself is the host
    /// stack's to reduce.
    pub fn ssthresh(&self, window: &mut Window) -> u32 {
        // SAFETY: both live for the call; the law writes the window's credit only.
        unsafe { fatpath_aimd_ssthresh(window, self) }
    }
}
