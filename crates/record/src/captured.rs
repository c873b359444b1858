// SPDX-License-Identifier: MIT OR Apache-2.0
//! The columns of a capture's connections. A row is one direction of a connection: the data of one end and the ACKs of
//! it. What a capture cannot tell is null.

use crate::column::{Column, Table, Value, word};
use fatpath_capture::{Connection, Direction};
use std::rc::Rc;

/// One direction of a connection.
#[derive(Clone, Debug)]
pub struct CapturedRow {
    connection: Rc<Connection>,
    is_from_client: bool,
}

impl CapturedRow {
    /// Both directions, the client's first.
    pub fn both(connection: Connection) -> [CapturedRow; 2] {
        let connection = Rc::new(connection);
        [true, false].map(|is_from_client| CapturedRow {
            connection: connection.clone(),
            is_from_client,
        })
    }

    fn from(&self) -> &'static str {
        match self.is_from_client {
            true => "client",
            false => "server",
        }
    }

    fn way(&self) -> &Direction {
        match self.is_from_client {
            true => &self.connection.from_client,
            false => &self.connection.from_server,
        }
    }

    /// Identifiers of the findings about this direction's data.
    fn findings(&self) -> String {
        let found = self.connection.findings.iter();
        let found = found.filter(|found| found.from == self.from());
        found.map(|found| found.id).collect::<Vec<_>>().join(" ")
    }
}

macro_rules! columns {
    (@time $row:ident $value:expr) => { Value::Time(|$row| $value) };
    (@whole $row:ident $value:expr) => { Value::Whole(|$row| $value as i64) };
    (@maybe $row:ident $value:expr) => { Value::Maybe(|$row| $value.map(|value| value as i64)) };
    (@real $row:ident $value:expr) => { Value::Real(|$row| $value) };
    (@maybe_real $row:ident $value:expr) => { Value::MaybeReal(|$row| $value) };
    (@flag $row:ident $value:expr) => { Value::Flag(|$row| $value) };
    (@text $row:ident $value:expr) => { Value::Text(|$row| $value) };
    ($row:ident; $($kind:ident $name:ident, $unit:literal, $value:expr;)*) => {
        impl Table for CapturedRow {
            const NAME: &str = "direction";
            /// Named as in `fatpath analyse --json`.
            const COLUMNS: &'static [Column<CapturedRow>] = &[$(Column {
                name: stringify!($name),
                unit: $unit,
                variable: "",
                value: columns!(@$kind $row $value),
            },)*];
        }
    };
}

columns! { row;
    whole flow, "", row.connection.flow;
    text client_address, "", row.connection.client.socket().ip().to_string();
    whole client_port, "", row.connection.client.socket().port();
    text server_address, "", row.connection.server.socket().ip().to_string();
    whole server_port, "", row.connection.server.socket().port();
    time first_us, "µs since 1970 (UTC)", row.connection.first_ns.div_euclid(1000);
    real duration_us, "µs", row.connection.duration_us;
    maybe_real handshake_rtt_us, "µs", row.connection.handshake.and_then(|one| one.rtt_us);
    maybe_real handshake_server_rtt_us, "µs", row.connection.handshake.and_then(|one| one.server_rtt_us);
    maybe_real handshake_client_rtt_us, "µs", row.connection.handshake.and_then(|one| one.client_rtt_us);
    text ended, "", word(&row.connection.ended);
    text near, "", word(&row.connection.near);
    text from, "", row.from().to_owned();
    text findings, "", row.findings();
    whole packets, "segments", row.way().packets;
    whole data_packets, "segments", row.way().data_packets;
    whole pure_acks, "segments", row.way().pure_acks;
    whole payload_bytes, "bytes", row.way().payload_bytes;
    whole unique_bytes, "bytes", row.way().unique_bytes;
    whole acked_bytes, "bytes", row.way().acked_bytes;
    whole unseen_bytes, "bytes", row.way().unseen_bytes;
    real data_time_us, "µs", row.way().data_time_us;
    real goodput_bps, "bits/s", row.way().goodput_bps;
    whole retransmitted_packets, "segments", row.way().retransmitted_packets;
    whole retransmitted_bytes, "bytes", row.way().retransmitted_bytes;
    whole retransmissions_fast, "segments", row.way().retransmissions.fast;
    whole retransmissions_timeout, "segments", row.way().retransmissions.timeout;
    whole retransmissions_after_timeout, "segments", row.way().retransmissions.after_timeout;
    whole retransmissions_tail_loss_probe, "segments", row.way().retransmissions.tail_loss_probe;
    whole retransmissions_unclear, "segments", row.way().retransmissions.unclear;
    whole tail_timeouts, "timeouts", row.way().tail_timeouts;
    real timeout_wait_us, "µs", row.way().timeout_wait_us;
    flag is_heard_after_timeout, "", row.way().is_heard_after_timeout;
    whole spurious_by_dsack, "segments", row.way().spurious_by_dsack;
    whole spurious_by_timestamp, "segments", row.way().spurious_by_timestamp;
    whole already_acked, "segments", row.way().already_acked;
    whole syn_retransmissions, "segments", row.way().syn_retransmissions;
    whole copies, "segments", row.way().copies;
    whole dsack_of_copies, "segments", row.way().dsack_of_copies;
    whole out_of_order, "segments", row.way().out_of_order;
    whole late_arrivals, "times", row.way().late_arrivals;
    whole reordering_packets, "segments", row.way().reordering_packets;
    whole reordering_bytes, "bytes", row.way().reordering_bytes;
    real reordering_us, "µs", row.way().reordering_us;
    whole duplicate_acks, "segments", row.way().duplicate_acks;
    whole dsacks, "segments", row.way().dsacks;
    whole zero_window_packets, "segments", row.way().zero_window_packets;
    whole zero_windows, "times", row.way().zero_windows;
    real zero_window_us, "µs", row.way().zero_window_us;
    whole window_max_bytes, "bytes", row.way().window_max_bytes;
    maybe window_min_bytes, "bytes", row.way().window_min_bytes;
    real window_limited_us, "µs", row.way().window_limited_us;
    whole window_probes, "segments", row.way().window_probes;
    whole keep_alives, "segments", row.way().keep_alives;
    whole rtt_samples, "measurements", row.way().rtt.map_or(0, |s| s.samples);
    maybe_real rtt_min_us, "µs", row.way().rtt.map(|s| s.min_us);
    maybe_real rtt_median_us, "µs", row.way().rtt.map(|s| s.median_us);
    maybe_real rtt_mean_us, "µs", row.way().rtt.map(|s| s.mean_us);
    maybe_real rtt_deviation_us, "µs", row.way().rtt.map(|s| s.deviation_us);
    maybe_real rtt_max_us, "µs", row.way().rtt.map(|s| s.max_us);
    whole rtt_by_timestamps_samples, "measurements", row.way().rtt_by_timestamps.map_or(0, |s| s.samples);
    maybe_real rtt_by_timestamps_min_us, "µs", row.way().rtt_by_timestamps.map(|s| s.min_us);
    maybe_real rtt_by_timestamps_median_us, "µs", row.way().rtt_by_timestamps.map(|s| s.median_us);
    maybe_real rtt_by_timestamps_mean_us, "µs", row.way().rtt_by_timestamps.map(|s| s.mean_us);
    maybe_real rtt_by_timestamps_deviation_us, "µs", row.way().rtt_by_timestamps.map(|s| s.deviation_us);
    maybe_real rtt_by_timestamps_max_us, "µs", row.way().rtt_by_timestamps.map(|s| s.max_us);
    whole outstanding_max_bytes, "bytes", row.way().outstanding_max_bytes;
    real outstanding_mean_bytes, "bytes", row.way().outstanding_mean_bytes;
    whole cwnd_estimate_max_bytes, "bytes", row.way().cwnd_estimate_max_bytes;
    real cwnd_estimate_mean_bytes, "bytes", row.way().cwnd_estimate_mean_bytes;
    maybe_real slow_start_us, "µs", row.way().slow_start_us;
    maybe slow_start_bytes, "bytes", row.way().slow_start_bytes;
    whole held_segments, "segments", row.way().held_segments;
    real idle_us, "µs", row.way().idle_us;
    real gap_max_us, "µs", row.way().gap_max_us;
    whole ect0_packets, "segments", row.way().ect0_packets;
    whole ect1_packets, "segments", row.way().ect1_packets;
    whole ce_packets, "segments", row.way().ce_packets;
    whole ece_packets, "segments", row.way().ece_packets;
    whole cwr_packets, "segments", row.way().cwr_packets;
    whole push_packets, "segments", row.way().push_packets;
    whole fins, "segments", row.way().fins;
    whole resets, "segments", row.way().resets;
    maybe mss_bytes, "bytes", row.way().mss_bytes;
    maybe window_scale, "bits", row.way().window_scale;
    flag is_sack_permitted, "", row.way().is_sack_permitted;
    flag has_timestamps, "", row.way().has_timestamps;
    whole segment_max_bytes, "bytes", row.way().segment_max_bytes;
    whole acked_segment_max_bytes, "bytes", row.way().acked_segment_max_bytes;
    whole super_packets, "segments", row.way().super_packets;
    whole cut_options, "segments", row.way().cut_options;
    whole malformed_options, "segments", row.way().malformed_options;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_field_of_a_direction_has_its_column() {
        let columns: BTreeSet<&str> = CapturedRow::COLUMNS.iter().map(|c| c.name).collect();
        assert_eq!(columns.len(), CapturedRow::COLUMNS.len(), "a name twice");
        let direction = serde_json::to_value(Direction::default()).unwrap();
        for (field, value) in direction.as_object().unwrap() {
            let names: Vec<String> = match field.as_str() {
                "rtt" | "rtt_by_timestamps" => vec![format!("{field}_median_us")],
                _ => match value.as_object() {
                    Some(parts) => parts.keys().map(|part| format!("{field}_{part}")).collect(),
                    None => vec![field.clone()],
                },
            };
            for name in names {
                assert!(columns.contains(name.as_str()), "no column {name}");
            }
        }
    }
}
