// SPDX-License-Identifier: MIT OR Apache-2.0
//! All that is known of one connection: the two directions beside each other.

use fatpath_capture::{Connection, Direction, Ended, Handshake, Near, Summary};
use fatpath_table::write_table;
use fatpath_units::{show_rate, show_time};
use std::io::{self, Write};

pub fn print(connection: &Connection, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "flow {}: client {}, server {}",
        connection.flow, connection.client, connection.server
    )?;
    writeln!(
        out,
        "{} from first to last segment; {}; captured {}",
        time(connection.duration_us),
        ended(connection.ended),
        near(connection.near)
    )?;
    handshake(connection.handshake.as_ref(), out)?;
    writeln!(out)?;
    let header = ["", "FROM CLIENT", "FROM SERVER"].map(str::to_owned);
    let (client, server) = (rows(&connection.from_client), rows(&connection.from_server));
    let both = client.into_iter().zip(server);
    let both = both.map(|((name, client), (_, server))| [name.to_owned(), client, server]);
    write_table(out, header, both)?;
    for found in &connection.findings {
        writeln!(
            out,
            "\n{} (data of the {}): {}",
            found.id, found.from, found.evidence
        )?;
    }
    for unknown in &connection.unknown {
        writeln!(out, "\nnot known: {unknown}")?;
    }
    Ok(())
}

fn handshake(handshake: Option<&Handshake>, out: &mut impl Write) -> io::Result<()> {
    let Some(one) = handshake else {
        return writeln!(out, "the handshake was not captured");
    };
    let of = |us: Option<f64>| us.map_or("-".to_owned(), time);
    writeln!(
        out,
        "handshake: round trip {} (capture to server {}, capture to client {}), took {}{}",
        of(one.rtt_us),
        of(one.server_rtt_us),
        of(one.client_rtt_us),
        of(one.took_us),
        if one.is_ecn_agreed { ", ECN" } else { "" }
    )
}

fn ended(ended: Ended) -> &'static str {
    match ended {
        Ended::No => "still open",
        Ended::Closed => "closed by both",
        Ended::HalfClosed => "closed by one end",
        Ended::Refused => "refused by the server",
        Ended::ResetByClient => "reset by the client",
        Ended::ResetByServer => "reset by the server",
        Ended::ResetAfterClose => "closed by both, then reset",
    }
}

fn near(near: Near) -> &'static str {
    match near {
        Near::Client => "near the client",
        Near::Server => "near the server",
        Near::Middle => "between client and server",
        Near::Unknown => "at an unknown place",
    }
}

type Row = (&'static str, String);

fn rows(way: &Direction) -> Vec<Row> {
    [
        amounts(way),
        repairs(way),
        windows(way),
        times(way),
        marks(way),
    ]
    .concat()
}

fn amounts(way: &Direction) -> Vec<Row> {
    vec![
        ("segments", way.packets.to_string()),
        ("  with data", way.data_packets.to_string()),
        ("  pure ACKs", way.pure_acks.to_string()),
        ("data, each byte once", bytes(way.unique_bytes)),
        ("  acknowledged", bytes(way.acked_bytes)),
        ("  all that was sent", bytes(way.payload_bytes)),
        ("  acknowledged, not captured", bytes(way.unseen_bytes)),
        ("goodput", show_rate(way.goodput_bps as u64)),
        ("largest segment", bytes(way.segment_max_bytes)),
        ("  above the MSS (offload)", way.super_packets.to_string()),
    ]
}

fn repairs(way: &Direction) -> Vec<Row> {
    let kinds = &way.retransmissions;
    vec![
        (
            "retransmitted segments",
            way.retransmitted_packets.to_string(),
        ),
        ("  fast", kinds.fast.to_string()),
        ("  timeout", kinds.timeout.to_string()),
        ("  after a timeout", kinds.after_timeout.to_string()),
        ("  tail-loss probe", kinds.tail_loss_probe.to_string()),
        ("  unclear", kinds.unclear.to_string()),
        ("retransmitted data", bytes(way.retransmitted_bytes)),
        ("not needed, by DSACK", way.spurious_by_dsack.to_string()),
        (
            "not needed, by timestamp",
            way.spurious_by_timestamp.to_string(),
        ),
        ("not needed, ACK was seen", way.already_acked.to_string()),
        ("SYNs sent again", way.syn_retransmissions.to_string()),
        ("copies made on the way", way.copies.to_string()),
        ("DSACKs of other copies", way.dsack_of_copies.to_string()),
        ("out of order", way.out_of_order.to_string()),
        ("  by at most, segments", way.reordering_packets.to_string()),
        ("  by at most, data", bytes(way.reordering_bytes)),
        ("  by at most, time", time(way.reordering_us)),
        ("duplicate ACKs sent", way.duplicate_acks.to_string()),
        ("DSACKs sent", way.dsacks.to_string()),
    ]
}

fn windows(way: &Direction) -> Vec<Row> {
    let scale = way
        .window_scale
        .map_or("-".to_owned(), |shift| shift.to_string());
    vec![
        ("window offered, greatest", bytes(way.window_max_bytes)),
        (
            "  least",
            way.window_min_bytes.map_or("-".to_owned(), bytes),
        ),
        ("  closed, times", way.zero_windows.to_string()),
        ("  closed, segments", way.zero_window_packets.to_string()),
        ("  closed for", time(way.zero_window_us)),
        ("window scale", scale),
        (
            "MSS",
            way.mss_bytes
                .map_or("-".to_owned(), |mss| bytes(mss.into())),
        ),
        ("SACK permitted", yes(way.is_sack_permitted)),
        ("timestamps", yes(way.has_timestamps)),
        ("limited by the peer's window", time(way.window_limited_us)),
        ("probes of a closed window", way.window_probes.to_string()),
        ("keep-alives", way.keep_alives.to_string()),
        ("outstanding, most", bytes(way.outstanding_max_bytes)),
        ("  mean", bytes(way.outstanding_mean_bytes.round() as u64)),
        (
            "congestion window, estimated, most",
            bytes(way.cwnd_estimate_max_bytes),
        ),
        ("  mean", bytes(way.cwnd_estimate_mean_bytes.round() as u64)),
        (
            "slow start, estimated, until",
            way.slow_start_us.map_or("-".to_owned(), time),
        ),
        (
            "  in flight then",
            way.slow_start_bytes.map_or("-".to_owned(), bytes),
        ),
    ]
}

fn times(way: &Direction) -> Vec<Row> {
    let of = |summary: Option<Summary>, value: fn(&Summary) -> f64| {
        summary.map_or("-".to_owned(), |summary| time(value(&summary)))
    };
    vec![
        ("first data to last ACK", time(way.data_time_us)),
        ("nothing outstanding for", time(way.idle_us)),
        ("longest pause", time(way.gap_max_us)),
        ("RTT, capture to peer", of(way.rtt, |rtt| rtt.median_us)),
        ("  least", of(way.rtt, |rtt| rtt.min_us)),
        ("  mean", of(way.rtt, |rtt| rtt.mean_us)),
        ("  deviation", of(way.rtt, |rtt| rtt.deviation_us)),
        ("  greatest", of(way.rtt, |rtt| rtt.max_us)),
        (
            "  samples",
            way.rtt.map_or(0, |rtt| rtt.samples).to_string(),
        ),
        (
            "RTT by timestamps",
            of(way.rtt_by_timestamps, |rtt| rtt.median_us),
        ),
        ("  least", of(way.rtt_by_timestamps, |rtt| rtt.min_us)),
    ]
}

fn marks(way: &Direction) -> Vec<Row> {
    vec![
        ("ECT(0)", way.ect0_packets.to_string()),
        ("ECT(1)", way.ect1_packets.to_string()),
        ("congestion experienced", way.ce_packets.to_string()),
        ("ECE", way.ece_packets.to_string()),
        ("CWR", way.cwr_packets.to_string()),
        ("PSH", way.push_packets.to_string()),
        ("FIN", way.fins.to_string()),
        ("RST", way.resets.to_string()),
        ("options cut off", way.cut_options.to_string()),
        ("options malformed", way.malformed_options.to_string()),
    ]
}

fn yes(is: bool) -> String {
    if is { "yes" } else { "no" }.to_owned()
}

fn bytes(bytes: u64) -> String {
    format!("{bytes} B")
}

fn time(us: f64) -> String {
    show_time(us.round() as u64)
}
