// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the two ends tell of themselves.

/// A sender at one moment; counters since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderFigures {
    /// Congestion window.
    pub cwnd_pkts: u32,
    /// Slow-start threshold.
    pub ssthresh_pkts: u32,
    /// Smoothed round-trip time.
    pub srtt_us: u32,
    /// Least round-trip time.
    pub min_rtt_us: u32,
    /// The fair window of a flow without congestion control; `None`: the flow is polite.
    pub fair_pkts: Option<u32>,
    /// Retransmission timeout, with its backoff.
    pub rto_us: u64,
    /// Segments in the network, by what the sender knows (`pipe` of RFC 6675).
    pub in_flight_pkts: u32,
    /// The degree of reordering that is reckoned with.
    pub reordering_pkts: u32,
    /// The window that the receiver offers, from the oldest unacknowledged byte.
    pub peer_window_bytes: u64,
    /// Data acknowledged in order.
    pub acked_bytes: u64,
    /// Segments acknowledged or SACKed.
    pub delivered_pkts: u64,
    /// Of these, by acknowledgements that echo a mark of congestion.
    pub marked_pkts: u64,
    /// Segments sent, retransmissions among them.
    pub sent_pkts: u64,
    /// Retransmissions.
    pub retransmits: u64,
    /// Segments of which DSACKs told that they arrived twice.
    pub duplicates_told: u64,
    /// Times the retransmission timer ran out.
    pub timeouts: u64,
    /// Tail loss probes.
    pub tail_probes: u64,
    /// Times the window was reduced.
    pub congestion_events: u64,
    /// Reductions taken back, for nothing was lost.
    pub undone_events: u64,
}

/// A receiver at one moment; counters since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverFigures {
    /// Data handed to the program.
    pub delivered_bytes: u64,
    /// Segments that arrived, duplicates among them.
    pub arrived_pkts: u64,
    /// Segments that had arrived before.
    pub duplicate_pkts: u64,
    /// Segments that arrived beyond a hole.
    pub out_of_order_pkts: u64,
    /// Acknowledgements sent.
    pub acks: u64,
    /// The receive buffer, bytes of data.
    pub buffer_bytes: u64,
}
