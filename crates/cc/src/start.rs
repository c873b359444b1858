// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a flow starts and goes on after a pause, whatever its law.

use crate::raw::KnownPath;

/// How a flow starts and goes on after a pause. The default is what Linux does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// Limited slow start (RFC 3742): beyond this window slow start adds at most half of it a round
    /// trip, segments; 0: it doubles.
    pub max_ssthresh_pkts: u32,
    /// The first slow-start threshold, segments; 0: none.
    pub initial_ssthresh_pkts: u32,
    /// The rate at which a flow starts that knows no threshold yet, bits a second (Matsuda et al., 3.2);
    /// 0: it starts by slow start.
    pub initial_rate_bps: u64,
    /// What becomes of the window in a pause longer than the RTO.
    pub idle: Idle,
    /// Slow start ends when the round-trip time rises (RFC 9406).
    pub hystart: bool,
    /// What was learned of the path: a flow that meets others there makes way.
    pub known: KnownPath,
}

/// What becomes of the window in a pause longer than the RTO.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Idle {
    /// It decays to the initial window (RFC 2861, `tcp_slow_start_after_idle`), and slow start follows.
    #[default]
    Restart,
    /// It stays.
    Keep,
    /// The flow goes on at ssthresh × MSS / RTT until the first ACK (Matsuda et al., 2.2 and 3.2).
    Pace,
}
