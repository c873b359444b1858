// SPDX-License-Identifier: MIT OR Apache-2.0
//! The columns of a trace: one line each, and nothing else names them.
//!
//! All integers are signed and 64 bits wide, for not every reader of Parquet knows others; no counter of a
//! connection comes near 2^63. What the kernel does not have is null.

use crate::Row;
use crate::column::{Column, Table, Value, word};

macro_rules! columns {
    (@time $row:ident $s:ident $value:expr) => { Value::Time(|$row| $value) };
    (@whole $row:ident $s:ident $value:expr) => {
        Value::Whole(|$row| { let $s = &$row.sample; $value as i64 })
    };
    (@maybe $row:ident $s:ident $value:expr) => {
        Value::Maybe(|$row| { let $s = &$row.sample; $value.map(|value| value as i64) })
    };
    (@flag $row:ident $s:ident $value:expr) => {
        Value::Flag(|$row| { let $s = &$row.sample; $value })
    };
    (@text $row:ident $s:ident $value:expr) => {
        Value::Text(|$row| { let $s = &$row.sample; $value })
    };
    (@maybe_text $row:ident $s:ident $value:expr) => {
        Value::MaybeText(|$row| { let $s = &$row.sample; $value })
    };
    ($row:ident, $s:ident; $($kind:ident $name:ident, $unit:literal, $variable:literal, $value:expr;)*) => {
        impl Table for Row {
            const NAME: &str = "sample";
            /// Named as in [`fatpath_estats::Sample`].
            const COLUMNS: &'static [Column<Row>] = &[$(Column {
                name: stringify!($name),
                unit: $unit,
                variable: $variable,
                value: columns!(@$kind $row $s $value),
            },)*];
        }
    };
}

columns! { row, s;
    time time_us, "µs since 1970 (UTC)", "", row.time_us;
    whole now_ns, "ns of CLOCK_MONOTONIC", "", s.now_ns;
    whole elapsed_us, "µs", "ElapsedMicroSecs", s.now_ns.saturating_sub(s.begin_ns) / 1000;
    text kind, "", "", word(&s.kind);
    whole cookie, "", "", s.flow.cookie;
    text local_address, "", "", s.flow.local.ip().to_string();
    whole local_port, "", "", s.flow.local.port();
    text remote_address, "", "", s.flow.remote.ip().to_string();
    whole remote_port, "", "", s.flow.remote.port();
    whole netns, "inode", "", s.flow.netns;
    whole cgroup_id, "inode", "", s.flow.cgroup_id;
    maybe rule_id, "", "", s.flow.rule_id;
    flag is_passive, "", "", s.flow.is_passive;
    flag is_adopted, "", "", s.flow.is_adopted;
    flag is_tracked, "", "", s.is_tracked;
    whole state, "tcp_states.h", "State", s.state;
    text ca_state, "", "", word(&s.ca_state);
    text law, "", "", s.law.to_string();
    whole segs_out, "segments", "SegsOut", s.segs_out;
    whole data_segs_out, "segments", "DataSegsOut", s.data_segs_out;
    whole bytes_sent, "bytes", "HCDataOctetsOut", s.bytes_sent;
    whole segs_retrans, "segments", "SegsRetrans", s.segs_retrans;
    whole bytes_retrans, "bytes", "OctetsRetrans", s.bytes_retrans;
    whole segs_in, "segments", "SegsIn", s.segs_in;
    whole data_segs_in, "segments", "DataSegsIn", s.data_segs_in;
    whole bytes_received, "bytes", "HCThruOctetsReceived", s.bytes_received;
    whole bytes_acked, "bytes", "HCThruOctetsAcked", s.bytes_acked;
    whole delivered_pkts, "segments", "", s.delivered_pkts;
    whole delivered_ce_pkts, "segments", "", s.delivered_ce_pkts;
    whole lost_pkts, "segments", "", s.lost_pkts;
    whole snd_una, "sequence number", "SndUna", s.snd_una;
    whole snd_nxt, "sequence number", "SndNxt", s.snd_nxt;
    whole rcv_nxt, "sequence number", "RcvNxt", s.rcv_nxt;
    whole busy_us, "µs", "", s.busy_us;
    whole rwnd_limited_us, "µs", "SndLimTimeRwin", s.rwnd_limited_us;
    whole sndbuf_limited_us, "µs", "SndLimTimeSnd", s.sndbuf_limited_us;
    text limited_by, "", "", word(&s.limited_by);
    whole lim_trans_rwin, "transitions", "SndLimTransRwin", s.lim_trans_rwin;
    whole lim_trans_cwnd, "transitions", "SndLimTransCwnd", s.lim_trans_cwnd;
    whole lim_trans_snd, "transitions", "SndLimTransSnd", s.lim_trans_snd;
    whole cong_signals, "signals", "CongSignals", s.cong_signals;
    whole timeouts, "timeouts", "Timeouts", s.timeouts;
    whole subsequent_timeouts, "timeouts", "SubsequentTimeouts", s.subsequent_timeouts;
    maybe slow_start_acks, "ACKs", "SlowStart", s.slow_start_acks;
    maybe cong_avoid_acks, "ACKs", "CongAvoid", s.cong_avoid_acks;
    whole pre_cong_sum_cwnd_pkts, "segments", "PreCongSumCwnd", s.pre_cong_sum_cwnd_pkts;
    whole post_cong_sum_ssthresh_pkts, "segments", "PostCongSumSsthresh", s.post_cong_sum_ssthresh_pkts;
    whole pre_cong_sum_rtt_us, "µs", "PreCongSumRTT", s.pre_cong_sum_rtt_us;
    maybe rtt_us, "µs", "SampleRTT", s.rtt_us;
    whole srtt_us, "µs", "SmoothedRTT", s.srtt_us;
    whole rttvar_us, "µs", "RTTVar", s.rttvar_us;
    maybe min_rtt_us, "µs", "MinRTT", s.min_rtt_us;
    whole max_rtt_us, "µs", "MaxRTT", s.max_rtt_us;
    whole sum_rtt_us, "µs", "SumRTT", s.sum_rtt_us;
    whole count_rtt, "measurements", "CountRTT", s.count_rtt;
    whole rto_us, "µs", "CurRTO", s.rto_us;
    whole rcv_rtt_us, "µs", "", s.rcv_rtt_us;
    whole mss_bytes, "bytes", "CurMSS", s.mss_bytes;
    whole adv_mss_bytes, "bytes", "", s.adv_mss_bytes;
    whole pmtu_bytes, "bytes", "", s.pmtu_bytes;
    whole dsack_dups, "segments", "DSACKDups", s.dsack_dups;
    whole reord_seen, "events", "", s.reord_seen;
    whole reordering_pkts, "segments", "", s.reordering_pkts;
    whole rcv_ooopack, "segments", "", s.rcv_ooopack;
    flag ecn_is_on, "", "ECN", s.ecn_is_on;
    flag sack_is_on, "", "WillSendSACK", s.sack_is_on;
    flag timestamps_are_on, "", "TimeStamps", s.timestamps_are_on;
    whole cwnd_pkts, "segments", "CurCwnd", s.cwnd_pkts;
    maybe ssthresh_pkts, "segments", "CurSsthresh", s.ssthresh_pkts;
    whole in_flight_pkts, "segments", "PipeSize", s.in_flight_pkts();
    whole packets_out, "segments", "", s.packets_out;
    whole sacked_out, "segments", "", s.sacked_out;
    whole lost_out, "segments", "", s.lost_out;
    whole retrans_out, "segments", "", s.retrans_out;
    whole peer_window_bytes, "bytes", "CurRwinRcvd", s.peer_window_bytes;
    whole max_peer_window_bytes, "bytes", "MaxRwinRcvd", s.max_peer_window_bytes;
    whole receive_window_bytes, "bytes", "CurRwinSent", s.receive_window_bytes;
    whole send_wscale, "bits", "WinScaleRcvd", s.send_wscale;
    whole receive_wscale, "bits", "WinScaleSent", s.receive_wscale;
    whole retransmits, "timeouts in a row", "CurTimeoutCount", s.retransmits;
    whole backoff, "doublings", "", s.backoff;
    maybe delivery_rate_bytes_per_s, "bytes/s", "", s.delivery_rate_bytes_per_s;
    flag delivery_rate_is_app_limited, "", "", s.delivery_rate_is_app_limited;
    flag is_app_limited, "", "", s.is_app_limited;
    flag is_cwnd_limited, "", "", s.is_cwnd_limited;
    flag waits_for_send_buffer, "", "", s.waits_for_send_buffer;
    whole unsent_bytes, "bytes", "CurAppWQueue", s.unsent_bytes;
    whole unread_bytes, "bytes", "CurAppRQueue", s.unread_bytes;
    whole reasm_queue_bytes, "bytes", "CurReasmQueue", s.reasm_queue_bytes;
    whole send_buffer_bytes, "bytes", "", s.send_buffer_bytes;
    whole receive_buffer_bytes, "bytes", "", s.receive_buffer_bytes;
    flag send_buffer_is_locked, "", "", s.send_buffer_is_locked;
    flag receive_buffer_is_locked, "", "", s.receive_buffer_is_locked;
    whole cwnd_clamp_pkts, "segments", "LimCwnd", s.cwnd_clamp_pkts;
    whole window_clamp_bytes, "bytes", "LimRwin", s.window_clamp_bytes;
    whole pacing_rate_bytes_per_s, "bytes/s", "", s.pacing_rate_bytes_per_s;
    flag is_rude, "", "", s.is_rude;
    flag buffer_is_withheld, "", "", s.buffer_is_withheld;
    maybe_text bbr_phase, "", "", s.bbr.map(|bbr| word(&bbr.phase));
    maybe bbr_bw_bytes_per_s, "bytes/s", "", s.bbr.map(|bbr| bbr.bw_bytes_per_s);
    maybe bbr_max_bw_bytes_per_s, "bytes/s", "", s.bbr.map(|bbr| bbr.max_bw_bytes_per_s);
    maybe bbr_bw_shortterm_bytes_per_s, "bytes/s", "", s.bbr.and_then(|bbr| bbr.bw_shortterm_bytes_per_s);
    maybe bbr_min_rtt_us, "µs", "", s.bbr.and_then(|bbr| bbr.min_rtt_us);
    maybe bbr_inflight_longterm_pkts, "segments", "", s.bbr.and_then(|bbr| bbr.inflight_longterm_pkts);
    maybe bbr_inflight_shortterm_pkts, "segments", "", s.bbr.and_then(|bbr| bbr.inflight_shortterm_pkts);
    maybe max_pipe_bytes, "bytes", "MaxPipeSize", s.extremes.map(|x| x.max_pipe_bytes);
    maybe max_retx_queue_pkts, "segments", "MaxRetxQueue", s.extremes.map(|x| x.max_retx_queue_pkts);
    maybe max_reasm_queue_bytes, "bytes", "MaxReasmQueue", s.extremes.map(|x| x.max_reasm_queue_bytes);
    maybe max_app_wqueue_bytes, "bytes", "MaxAppWQueue", s.extremes.map(|x| x.max_app_wqueue_bytes);
    maybe max_app_rqueue_bytes, "bytes", "MaxAppRQueue", s.extremes.map(|x| x.max_app_rqueue_bytes);
    maybe max_rwin_sent_bytes, "bytes", "MaxRwinSent", s.extremes.map(|x| x.max_rwin_sent_bytes);
    maybe max_rto_us, "µs", "MaxRTO", s.extremes.map(|x| x.max_rto_us);
    maybe min_rto_us, "µs", "MinRTO", s.extremes.map(|x| x.min_rto_us);
    maybe max_mss_bytes, "bytes", "MaxMSS", s.extremes.map(|x| x.max_mss_bytes);
    maybe min_mss_bytes, "bytes", "MinMSS", s.extremes.map(|x| x.min_mss_bytes);
    maybe max_ss_cwnd_pkts, "segments", "MaxSsCwnd", s.extremes.and_then(|x| x.max_ss_cwnd_pkts);
    maybe max_ca_cwnd_pkts, "segments", "MaxCaCwnd", s.extremes.and_then(|x| x.max_ca_cwnd_pkts);
    maybe max_ssthresh_pkts, "segments", "MaxSsthresh", s.extremes.and_then(|x| x.max_ssthresh_pkts);
    maybe min_ssthresh_pkts, "segments", "MinSsthresh", s.extremes.and_then(|x| x.min_ssthresh_pkts);
}

#[cfg(test)]
mod tests {
    use super::*;
    use fatpath_estats::variables;

    #[test]
    fn columns_have_one_name_each_and_variables_are_the_rfcs() {
        let mut names: Vec<&str> = Row::COLUMNS.iter().map(|column| column.name).collect();
        names.sort_unstable();
        assert!(names.is_sorted_by(|a, b| a < b));
        for column in Row::COLUMNS
            .iter()
            .filter(|column| !column.variable.is_empty())
        {
            let variable = variables::named(column.variable);
            let variable = variable.unwrap_or_else(|| panic!("no {}", column.variable));
            assert_eq!(variable.name, column.variable);
            assert!(variable.is_present(), "{}", variable.name);
        }
    }
}
