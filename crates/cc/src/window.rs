// SPDX-License-Identifier: MIT OR Apache-2.0
//! The window of one flow.

use crate::raw::RawMemory;

/// The window of one flow, `struct cc_window`. Windows in segments.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Congestion window.
    pub cwnd_pkts: u32,
    /// Slow-start threshold; from [`Window::NO_SSTHRESH`] on there is none.
    pub ssthresh_pkts: u32,
    /// The window never grows past it.
    pub clamp_pkts: u32,
    /// What the law and the start-up remember between calls.
    pub memory: Memory,
}

/// What the law and the start-up remember between calls, `struct cc_memory`.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory(pub(crate) RawMemory);

impl Window {
    /// The threshold of a flow that has not met congestion, `TCP_INFINITE_SSTHRESH` of Linux.
    pub const NO_SSTHRESH: u32 = 0x7fff_ffff;

    /// A window in slow start with no bound.
    pub fn new(cwnd_pkts: u32) -> Window {
        Window {
            cwnd_pkts,
            ssthresh_pkts: Window::NO_SSTHRESH,
            clamp_pkts: u32::MAX,
            memory: Memory::default(),
        }
    }

    /// Slow start or its limited form, not congestion avoidance.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd_pkts < self.ssthresh_pkts
    }
}
