// SPDX-License-Identifier: MIT OR Apache-2.0
//! One flow at one moment, as the kernel half gives it.
//!
//! Counters count since the connection began and wrap as the kernel's do not: they are widened. What this
//! kernel does not have is `None`, never 0. The name of RFC 4898 and the kernel's own stand in brackets.

use crate::{BbrState, Extremes, Flow};
use compact_str::CompactString;
#[cfg(feature = "document")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a sample was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub enum SampleKind {
    /// The connection is established, or fatpath saw it for the first time.
    Begin,
    /// The interval has passed, at an acknowledgement; of a flow that only receives, when its program read.
    Interval,
    /// The kernel's recovery state changed (Open, Disorder, CWR, Recovery, Loss).
    State,
    /// The congestion window was reduced (CongSignals).
    Congestion,
    /// The retransmission timer ended (Timeouts).
    Timeout,
    /// Segments were retransmitted since the last sample.
    Retransmission,
    /// The connection is closed.
    End,
    /// Read by a walk over all sockets, without an event of the flow's.
    Walk,
}

/// enum tcp_ca_state: where loss recovery stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub enum CaState {
    /// Nothing unusual.
    #[default]
    Open,
    /// Duplicate or selective acknowledgements, no loss declared yet.
    Disorder,
    /// The window was reduced by ECN or a local queue.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// After a timeout.
    Loss,
}

/// What held the sender back at that moment (`chrono_type`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub enum LimitedBy {
    /// Nothing to send and nothing in flight.
    #[default]
    Idle,
    /// Busy: the congestion window, or nothing but the path.
    Network,
    /// The receiver's window.
    Receiver,
    /// The sender's own buffer.
    SendBuffer,
}

/// One flow at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // each field's meaning is its variable's: see `variables`
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct Sample {
    pub kind: SampleKind,
    pub flow: Flow,
    /// CLOCK_MONOTONIC of the host, ns.
    pub now_ns: u64,
    /// When fatpath first saw the flow, same clock.
    pub begin_ns: u64,
    /// The flow is sampled. Else it was only walked by: what fatpath counts itself is 0, and counters
    /// that the kernel keeps in 32 bits have wrapped where they did.
    pub is_tracked: bool,
    pub state: u8,
    pub ca_state: CaState,
    /// Law in use (`icsk_ca_ops->name`).
    #[cfg_attr(feature = "document", schemars(with = "String"))]
    pub law: CompactString,

    // tcpEStatsPerf
    pub segs_out: u64,
    pub data_segs_out: u64,
    pub bytes_sent: u64,
    pub segs_retrans: u64,
    pub bytes_retrans: u64,
    pub segs_in: u64,
    pub data_segs_in: u64,
    pub bytes_received: u64,
    pub bytes_acked: u64,
    pub delivered_pkts: u64,
    pub delivered_ce_pkts: u64,
    pub lost_pkts: u64,
    pub snd_una: u32,
    pub snd_nxt: u32,
    pub rcv_nxt: u32,
    /// SndLimTimeRwin, SndLimTimeSnd; busy contains both.
    pub busy_us: u64,
    pub rwnd_limited_us: u64,
    pub sndbuf_limited_us: u64,
    /// What holds it back now; the transitions that samples saw (SndLimTrans*).
    pub limited_by: LimitedBy,
    pub lim_trans_rwin: u32,
    pub lim_trans_cwnd: u32,
    pub lim_trans_snd: u32,
    /// Counted by fatpath since it first saw the flow.
    pub cong_signals: u32,
    pub timeouts: u32,
    pub subsequent_timeouts: u32,
    /// Only laws of bpf/cc count acknowledgements; none under another.
    pub slow_start_acks: Option<u32>,
    pub cong_avoid_acks: Option<u32>,
    pub pre_cong_sum_cwnd_pkts: u64,
    pub post_cong_sum_ssthresh_pkts: u64,
    pub pre_cong_sum_rtt_us: u64,

    // tcpEStatsPath
    /// The latest measurement since the last sample; none without one.
    pub rtt_us: Option<u32>,
    pub srtt_us: u32,
    pub rttvar_us: u32,
    pub min_rtt_us: Option<u32>,
    /// This and the next two: of one measurement a round trip.
    pub max_rtt_us: u32,
    pub sum_rtt_us: u64,
    pub count_rtt: u32,
    pub rto_us: u32,
    pub rcv_rtt_us: u32,
    pub mss_bytes: u32,
    pub adv_mss_bytes: u32,
    pub pmtu_bytes: u32,
    pub dsack_dups: u32,
    pub reord_seen: u32,
    pub reordering_pkts: u32,
    pub rcv_ooopack: u32,
    pub ecn_is_on: bool,
    pub sack_is_on: bool,
    pub timestamps_are_on: bool,

    // tcpEStatsStack
    pub cwnd_pkts: u32,
    /// None while it was never set.
    pub ssthresh_pkts: Option<u32>,
    pub packets_out: u32,
    pub sacked_out: u32,
    pub lost_out: u32,
    pub retrans_out: u32,
    pub peer_window_bytes: u32,
    pub max_peer_window_bytes: u32,
    pub receive_window_bytes: u32,
    pub send_wscale: u8,
    pub receive_wscale: u8,
    pub retransmits: u8,
    pub backoff: u8,
    /// Latest delivery-rate sample, bytes a second; none without one.
    pub delivery_rate_bytes_per_s: Option<u64>,
    pub delivery_rate_is_app_limited: bool,
    /// The program has given less than could be sent, and what it gave is not all acknowledged.
    pub is_app_limited: bool,
    pub is_cwnd_limited: bool,
    /// The program waits for memory of the send buffer (SOCK_NOSPACE).
    pub waits_for_send_buffer: bool,

    // tcpEStatsApp
    pub unsent_bytes: u32,
    pub unread_bytes: u32,
    /// Sequence space from the next byte expected to the farthest segment out of order (CurReasmQueue).
    pub reasm_queue_bytes: u32,

    // tcpEStatsTune, and what fatpath or the program set
    pub send_buffer_bytes: u32,
    pub receive_buffer_bytes: u32,
    pub send_buffer_is_locked: bool,
    pub receive_buffer_is_locked: bool,
    pub cwnd_clamp_pkts: u32,
    pub window_clamp_bytes: u32,
    pub pacing_rate_bytes_per_s: u64,
    pub is_rude: bool,
    /// A buffer of the flow's rule was not given because the host's TCP memory was short.
    pub buffer_is_withheld: bool,
    /// What the flow's law knows of the path; none unless that is `fp_bbr`.
    pub bbr: Option<BbrState>,
    /// None of a flow that is not sampled.
    pub extremes: Option<Extremes>,
}

/// Segments in flight, as tcp_packets_in_flight() counts them. Of a connection that ends, the kernel forgets first what it
/// sent, and keeps the counts of what was selectively acknowledged or lost: then there are none.
pub fn packets_in_flight(out_pkts: u32, gone_pkts: u32, resent_pkts: u32) -> u32 {
    out_pkts
        .saturating_add(resent_pkts)
        .saturating_sub(gone_pkts)
}

impl Sample {
    /// Of a flow of which nothing is known.
    pub fn unknown(kind: SampleKind, flow: Flow) -> Sample {
        Sample {
            kind,
            flow,
            now_ns: 0,
            begin_ns: 0,
            is_tracked: false,
            state: 0,
            ca_state: CaState::Open,
            law: CompactString::default(),
            segs_out: 0,
            data_segs_out: 0,
            bytes_sent: 0,
            segs_retrans: 0,
            bytes_retrans: 0,
            segs_in: 0,
            data_segs_in: 0,
            bytes_received: 0,
            bytes_acked: 0,
            delivered_pkts: 0,
            delivered_ce_pkts: 0,
            lost_pkts: 0,
            snd_una: 0,
            snd_nxt: 0,
            rcv_nxt: 0,
            busy_us: 0,
            rwnd_limited_us: 0,
            sndbuf_limited_us: 0,
            limited_by: LimitedBy::Idle,
            lim_trans_rwin: 0,
            lim_trans_cwnd: 0,
            lim_trans_snd: 0,
            cong_signals: 0,
            timeouts: 0,
            subsequent_timeouts: 0,
            slow_start_acks: None,
            cong_avoid_acks: None,
            pre_cong_sum_cwnd_pkts: 0,
            post_cong_sum_ssthresh_pkts: 0,
            pre_cong_sum_rtt_us: 0,
            rtt_us: None,
            srtt_us: 0,
            rttvar_us: 0,
            min_rtt_us: None,
            max_rtt_us: 0,
            sum_rtt_us: 0,
            count_rtt: 0,
            rto_us: 0,
            rcv_rtt_us: 0,
            mss_bytes: 0,
            adv_mss_bytes: 0,
            pmtu_bytes: 0,
            dsack_dups: 0,
            reord_seen: 0,
            reordering_pkts: 0,
            rcv_ooopack: 0,
            ecn_is_on: false,
            sack_is_on: false,
            timestamps_are_on: false,
            cwnd_pkts: 0,
            ssthresh_pkts: None,
            packets_out: 0,
            sacked_out: 0,
            lost_out: 0,
            retrans_out: 0,
            peer_window_bytes: 0,
            max_peer_window_bytes: 0,
            receive_window_bytes: 0,
            send_wscale: 0,
            receive_wscale: 0,
            retransmits: 0,
            backoff: 0,
            delivery_rate_bytes_per_s: None,
            delivery_rate_is_app_limited: false,
            is_app_limited: false,
            is_cwnd_limited: false,
            waits_for_send_buffer: false,
            unsent_bytes: 0,
            unread_bytes: 0,
            reasm_queue_bytes: 0,
            send_buffer_bytes: 0,
            receive_buffer_bytes: 0,
            send_buffer_is_locked: false,
            receive_buffer_is_locked: false,
            cwnd_clamp_pkts: 0,
            window_clamp_bytes: 0,
            pacing_rate_bytes_per_s: 0,
            is_rude: false,
            buffer_is_withheld: false,
            bbr: None,
            extremes: None,
        }
    }

    /// Segments in flight.
    pub fn in_flight_pkts(&self) -> u32 {
        let gone_pkts = self.sacked_out + self.lost_out;
        packets_in_flight(self.packets_out, gone_pkts, self.retrans_out)
    }

    /// Seconds since fatpath first saw the flow (ElapsedSecs, ElapsedMicroSecs).
    pub fn elapsed_s(&self) -> f64 {
        self.now_ns.saturating_sub(self.begin_ns) as f64 / 1e9
    }
}

/// One line of `GET /v1/instruments/samples`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub enum SampleLine {
    /// A sample of a chosen flow.
    Sample(Box<Sample>),
    /// So many samples of any flows were missed.
    Lost(u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_ends_has_nothing_in_flight() {
        assert_eq!(packets_in_flight(10, 3, 2), 9);
        assert_eq!(packets_in_flight(0, 7, 0), 0);
    }
}
