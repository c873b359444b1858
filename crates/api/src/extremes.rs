// SPDX-License-Identifier: MIT OR Apache-2.0
//! Maxima and minima of a flow.

#[cfg(feature = "document")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The maxima and minima of RFC 4898 that Linux does not keep, since fatpath first saw the flow: it is looked at once a round
/// trip, at each event, and whenever it is sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct Extremes {
    /// Most bytes in flight (MaxPipeSize).
    pub max_pipe_bytes: u64,
    /// Most segments sent and not acknowledged (MaxRetxQueue).
    pub max_retx_queue_pkts: u32,
    /// Most sequence space that segments out of order spanned, bytes (MaxReasmQueue).
    pub max_reasm_queue_bytes: u32,
    /// Most bytes written and not sent (MaxAppWQueue).
    pub max_app_wqueue_bytes: u32,
    /// Most bytes received and not read (MaxAppRQueue).
    pub max_app_rqueue_bytes: u32,
    /// Largest window announced to the peer, bytes (MaxRwinSent).
    pub max_rwin_sent_bytes: u32,
    /// Longest retransmission timeout, µs (MaxRTO).
    pub max_rto_us: u32,
    /// Shortest one, µs (MinRTO).
    pub min_rto_us: u32,
    /// Largest segment size, bytes (MaxMSS).
    pub max_mss_bytes: u32,
    /// Smallest one, bytes (MinMSS).
    pub min_mss_bytes: u32,
    /// Largest window in slow start, segments; none before it was seen in it (MaxSsCwnd).
    pub max_ss_cwnd_pkts: Option<u32>,
    /// Largest window in congestion avoidance, segments; none before it was seen in it (MaxCaCwnd).
    pub max_ca_cwnd_pkts: Option<u32>,
    /// Largest slow-start threshold, segments; none while it was never set (MaxSsthresh).
    pub max_ssthresh_pkts: Option<u32>,
    /// Least one, segments; none while it was never set (MinSsthresh).
    pub min_ssthresh_pkts: Option<u32>,
}
