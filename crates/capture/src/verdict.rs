// SPDX-License-Identifier: MIT OR Apache-2.0
//! What one segment was, judged by what came before it.

use serde::Serialize;

/// Why a segment was sent again. docs/capture.md has the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Retransmission {
    /// ACKs told of the loss (RFC 5681, RFC 6675, RFC 8985).
    Fast,
    /// The timer expired (RFC 6298).
    Timeout,
    /// Sent after a timeout, up to what had been sent before it.
    AfterTimeout,
    /// The last segment, to draw an ACK (RFC 8985, section 7).
    TailLossProbe,
    /// Neither ACKs nor silence tell why.
    Unclear,
}

/// What a segment was; all is false of one in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Data or FIN that was sent before.
    pub retransmission: Option<Retransmission>,
    /// A SYN that was sent before.
    pub is_syn_again: bool,
    /// All of it had been acknowledged already.
    pub is_already_acked: bool,
    /// Sent once, and overtaken by what was sent after it.
    pub is_out_of_order: bool,
    /// A copy that the network, or the capture, made.
    pub is_copy: bool,
    /// It begins above what was seen before: segments before it were lost, are late, or were not captured.
    pub is_after_hole: bool,
    /// As RFC 5681, section 2 defines it.
    pub is_duplicate_ack: bool,
    /// The round trip from the capture to this ACK's sender and back, by data that it acknowledges (Karn).
    pub rtt_ns: Option<i64>,
    /// It offers no window.
    pub is_zero_window: bool,
    /// Nothing new, one number below what is next: asks whether the peer lives.
    pub is_keep_alive: bool,
    /// The same, into a closed window.
    pub is_window_probe: bool,
}
