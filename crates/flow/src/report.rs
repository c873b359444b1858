// SPDX-License-Identifier: MIT OR Apache-2.0
//! What became of a flow: what `fatpath flow send --json` prints.
//!
//! Plain values. Start with [`Report`].

use std::fmt;

use fatpath_tcp::SenderFigures;
use serde::{Deserialize, Serialize};

/// A flow, all its connections together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// From the beginning to `--lasts`, or until the sender knew that all had arrived.
    pub seconds: f64,
    /// Bytes that arrived in order.
    pub bytes: u64,
    /// The same a second, bits.
    pub goodput_bps: f64,
    /// Connections.
    pub streams: u32,
    /// UDP payload of a full datagram.
    pub datagram_bytes: u16,
    /// Segments that left, retransmissions among them.
    pub sent_pkts: u64,
    /// Retransmissions.
    pub retransmits: u64,
    /// Times the retransmission timer ran out.
    pub timeouts: u64,
    /// Times the window was reduced; `None`: the kernel's TCP does not tell.
    pub congestion_events: Option<u64>,
    /// Of these, those taken back; likewise.
    pub undone_events: Option<u64>,
    /// Least round-trip time of all connections.
    pub min_rtt_us: u32,
    /// How long each chunk took until all of it was known to have arrived; the whole, where there are none.
    pub chunks_s: Vec<f64>,
    /// From the beginning on, the last one may be shorter.
    pub intervals: Vec<Interval>,
}

/// A stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Begin, seconds since the flow began.
    pub start: f64,
    /// End, likewise.
    pub end: f64,
    /// What arrived in order.
    pub bits_per_second: f64,
    /// Retransmissions.
    pub retransmits: u64,
    /// Smoothed round-trip time at its end, the longest of all connections.
    pub srtt_us: u32,
    /// Congestion windows at its end, together.
    pub cwnd_pkts: u64,
}

impl Report {
    /// With what a connection has done.
    pub(crate) fn add(&mut self, figures: &SenderFigures) {
        self.sent_pkts += figures.sent_pkts;
        self.retransmits += figures.retransmits;
        self.timeouts += figures.timeouts;
        let sum = |of_all: Option<u64>, one| of_all.map(|all| all + one);
        self.congestion_events = sum(self.congestion_events, figures.congestion_events);
        self.undone_events = sum(self.undone_events, figures.undone_events);
        self.min_rtt_us = match self.min_rtt_us {
            0 => figures.min_rtt_us,
            least => least.min(figures.min_rtt_us),
        };
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:6.2} to {:6.2} s  {:>9.2} Mb/s  {:>6} sent again  srtt {:>8.2} ms  cwnd {:>6}",
            self.start,
            self.end,
            self.bits_per_second / 1e6,
            self.retransmits,
            f64::from(self.srtt_us) / 1e3,
            self.cwnd_pkts
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for interval in &self.intervals {
            writeln!(f, "{interval}")?;
        }
        write!(
            f,
            "{:.2} s: {} bytes, {:.2} Mb/s; {} of {} segments sent again, {} timeouts, ",
            self.seconds,
            self.bytes,
            self.goodput_bps / 1e6,
            self.retransmits,
            self.sent_pkts,
            self.timeouts
        )?;
        if let (Some(events), Some(undone)) = (self.congestion_events, self.undone_events) {
            write!(
                f,
                "{events} reductions of the window ({undone} taken back), "
            )?;
        }
        let least_ms = f64::from(self.min_rtt_us) / 1e3;
        write!(f, "least round-trip time {least_ms:.2} ms")
    }
}
