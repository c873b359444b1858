// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known of a connection, as `fatpath analyse --json` prints it. Times are those of the capture.

use crate::distribution::Summary;
use crate::segment::End;
use serde::Serialize;

/// One TCP connection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Connection {
    /// From 1, in the order of first segments.
    pub flow: u64,
    /// Who connected; where the handshake was not captured, who sent the first segment.
    pub client: End,
    /// The other end.
    pub server: End,
    /// Time of the first segment, since 1970.
    pub first_ns: i64,
    /// From the first to the last segment, µs.
    pub duration_us: f64,
    /// None where the first SYN was not captured.
    pub handshake: Option<Handshake>,
    /// How it ended.
    pub ended: Ended,
    /// Where the capture was made.
    pub near: Near,
    /// What this capture cannot tell.
    pub unknown: Vec<&'static str>,
    /// Data of the client, and ACKs of it.
    pub from_client: Direction,
    /// Data of the server, and ACKs of it.
    pub from_server: Direction,
    /// What holds the connection back, as far as a capture tells.
    pub findings: Vec<Finding>,
}

/// How a connection began.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Handshake {
    /// From the SYN to the ACK of the SYN-ACK, µs. None when SYN or SYN-ACK was sent again, or one is missing.
    pub rtt_us: Option<f64>,
    /// From the SYN to the SYN-ACK: from the capture to the server and back, µs. None as above.
    pub server_rtt_us: Option<f64>,
    /// From the SYN-ACK to its ACK: from the capture to the client and back, µs. None when the SYN-ACK was sent again.
    pub client_rtt_us: Option<f64>,
    /// From the first SYN to the end of the handshake, µs.
    pub took_us: Option<f64>,
    /// Both agreed on ECN (RFC 3168, section 6.1.1).
    pub is_ecn_agreed: bool,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// Not within the capture.
    No,
    /// Both ends sent FIN.
    Closed,
    /// One end sent FIN.
    HalfClosed,
    /// The server answered the SYN with a reset.
    Refused,
    /// The client sent a reset.
    ResetByClient,
    /// The server did.
    ResetByServer,
    /// A reset came after both had sent FIN.
    ResetAfterClose,
}

/// Where a capture was made, seen from a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Near {
    /// At the client, or next to it.
    Client,
    /// At the server, or next to it.
    Server,
    /// Between them.
    Middle,
    /// The two are so near to each other that it makes no difference, or nothing tells.
    Unknown,
}

/// Retransmitted segments by kind. The kinds exclude one another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Retransmissions {
    /// ACKs told of the loss.
    pub fast: u64,
    /// The timer expired.
    pub timeout: u64,
    /// Sent after a timeout, up to what had been sent before it.
    pub after_timeout: u64,
    /// The last segment, to draw an ACK.
    pub tail_loss_probe: u64,
    /// Neither ACKs nor silence tell why.
    pub unclear: u64,
}

/// What one end sent, and what the other one answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Direction {
    /// Segments, all kinds.
    pub packets: u64,
    /// Segments with data.
    pub data_packets: u64,
    /// Segments without data, SYN, FIN and RST.
    pub pure_acks: u64,
    /// Data, with what was sent again.
    pub payload_bytes: u64,
    /// Sequence numbers of data that were sent, each once.
    pub unique_bytes: u64,
    /// Of them, how many the peer acknowledged.
    pub acked_bytes: u64,
    /// Acknowledged, but not in the capture: the capture missed them.
    pub unseen_bytes: u64,
    /// From the first data to its last ACK, µs.
    pub data_time_us: f64,
    /// Acknowledged data by that time, b/s.
    pub goodput_bps: f64,

    /// Segments sent again (SYNs are counted in `syn_retransmissions`).
    pub retransmitted_packets: u64,
    /// Data sent again.
    pub retransmitted_bytes: u64,
    /// Why they were.
    pub retransmissions: Retransmissions,
    /// Timeouts with three segments or fewer outstanding.
    pub tail_timeouts: u64,
    /// From the last data or ACK to each timeout's retransmission, together, µs.
    pub timeout_wait_us: f64,
    /// The peer sent something after the first timeout.
    pub is_heard_after_timeout: bool,
    /// Retransmissions that the peer reported as unneeded (DSACK, RFC 2883).
    pub spurious_by_dsack: u64,
    /// Retransmissions whose ACK echoes the time of the original (Eifel, RFC 3522).
    pub spurious_by_timestamp: u64,
    /// Retransmissions of data whose ACK had passed the capture.
    pub already_acked: u64,
    /// SYNs, or SYN-ACKs, sent again.
    pub syn_retransmissions: u64,
    /// Copies that the network, or the capture, made.
    pub copies: u64,
    /// DSACKs by the peer for data that was not seen to be sent again.
    pub dsack_of_copies: u64,

    /// Segments that were sent once and overtaken.
    pub out_of_order: u64,
    /// Times at which the peer got what it had reported missing (SACK), and nobody had sent that again: it was late.
    pub late_arrivals: u64,
    /// By how many segments with data at most (RFC 4737, section 4.2).
    pub reordering_packets: u64,
    /// By how many bytes at most.
    pub reordering_bytes: u64,
    /// How late at most, µs.
    pub reordering_us: f64,

    /// Duplicate ACKs that this end sent (RFC 5681, section 2).
    pub duplicate_acks: u64,
    /// ACKs with a DSACK that this end sent.
    pub dsacks: u64,
    /// Segments by which this end offered no window.
    pub zero_window_packets: u64,
    /// How often its window closed.
    pub zero_windows: u64,
    /// How long it was closed in all, µs.
    pub zero_window_us: f64,
    /// Greatest window that this end offered, bytes.
    pub window_max_bytes: u64,
    /// Least, of segments without SYN and RST.
    pub window_min_bytes: Option<u64>,
    /// How long the peer's window had no room for one more segment, µs.
    pub window_limited_us: f64,
    /// Probes into a closed window.
    pub window_probes: u64,
    /// Keep-alives.
    pub keep_alives: u64,

    /// From the capture to the peer and back, by data and its ACK; never of data sent again (Karn).
    pub rtt: Option<Summary>,
    /// The same by timestamps and their echo (RFC 7323): it includes the time in which the peer had nothing to send.
    pub rtt_by_timestamps: Option<Summary>,
    /// Most data sent and not acknowledged, seen at the capture.
    pub outstanding_max_bytes: u64,
    /// Mean over `data_time_us`.
    pub outstanding_mean_bytes: f64,
    /// Estimated congestion window: most data in flight of a round trip. Too small where something else limits the sender.
    pub cwnd_estimate_max_bytes: u64,
    /// Mean over round trips.
    pub cwnd_estimate_mean_bytes: f64,
    /// From the first data to the estimated end of slow start, µs; none where it did not end.
    pub slow_start_us: Option<f64>,
    /// Most data in flight of the round trip in which it ended.
    pub slow_start_bytes: Option<u64>,
    /// Segments sent within 1 ms after the ACK of all before them, which took 10 ms longer than the least: the sender had
    /// waited for it.
    pub held_segments: u64,
    /// How long all data was acknowledged, between the first data and the last, µs.
    pub idle_us: f64,
    /// Longest time between two segments of this end, µs.
    pub gap_max_us: f64,

    /// Segments by the ECN bits of their IP header: ECT(0).
    pub ect0_packets: u64,
    /// ECT(1).
    pub ect1_packets: u64,
    /// Congestion experienced.
    pub ce_packets: u64,
    /// Segments with ECE, after the handshake.
    pub ece_packets: u64,
    /// Segments with CWR, after the handshake.
    pub cwr_packets: u64,
    /// Segments with PSH.
    pub push_packets: u64,
    /// Segments with FIN.
    pub fins: u64,
    /// Segments with RST.
    pub resets: u64,

    /// Option of the SYN: the largest segment that this end receives.
    pub mss_bytes: Option<u16>,
    /// Option of the SYN: shift of its windows.
    pub window_scale: Option<u8>,
    /// Option of the SYN.
    pub is_sack_permitted: bool,
    /// Whether segments carry timestamps.
    pub has_timestamps: bool,
    /// Longest segment, bytes of data.
    pub segment_max_bytes: u64,
    /// Longest segment that the peer acknowledged, of the newest of each ACK.
    pub acked_segment_max_bytes: u64,
    /// Segments above the peer's MSS: what an interface with offload is handed, or hands over, at once.
    pub super_packets: u64,
    /// Segments whose options the snaplen cut.
    pub cut_options: u64,
    /// Segments with malformed options.
    pub malformed_options: u64,
}

/// What holds a connection back, by the identifiers of `fatpath why`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// `FP-…`, of docs/why.md.
    pub id: &'static str,
    /// Whose data it concerns.
    pub from: &'static str,
    /// What was seen, with figures.
    pub evidence: String,
}
