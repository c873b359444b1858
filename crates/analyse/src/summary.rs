// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of connections, and what is to be said of the capture as a whole.

use super::Analysed;
use super::chosen::{busier, is_from_client};
use fatpath_capture::{About, Connection, Counts};
use fatpath_table::write_table;
use fatpath_units::{show_bytes, show_time};
use std::io::{self, Write};

/// Where to say no more of one capture: a comment may be anything.
const MOST_COMMENTS: usize = 10;

pub fn print(analysed: &Analysed, out: &mut impl Write) -> io::Result<()> {
    let connections = &analysed.chosen.connections;
    let header = ["FLOW", "DATA", "MB/S", "RTT", "RETR", "CONNECTION"];
    let header = header.map(|name| name.replace("MB/S", "Mb/s"));
    write_table(out, header, connections.iter().map(row))?;
    if analysed.chosen.left_out > 0 {
        writeln!(out, "and {} more: use --filter", analysed.chosen.left_out)?;
    }
    for connection in connections {
        for found in &connection.findings {
            writeln!(
                out,
                "flow {}: {} (data of the {}): {}",
                connection.flow, found.id, found.from, found.evidence
            )?;
        }
    }
    counts(&analysed.counts, out)?;
    about(&analysed.about, out)
}

fn row(connection: &Connection) -> [String; 6] {
    let way = busier(connection);
    let arrow = if is_from_client(connection) { ">" } else { "<" };
    [
        connection.flow.to_string(),
        rounded(way.acked_bytes.max(way.unique_bytes)),
        format!("{:.1}", way.goodput_bps / 1e6),
        way.rtt
            .map_or("-".to_owned(), |rtt| rtt_text(rtt.median_us)),
        way.retransmitted_packets.to_string(),
        format!("{} {arrow} {}", connection.client, connection.server),
    ]
}

/// Three digits are enough in a column.
fn rounded(bytes: u64) -> String {
    let magnitude = 10_u64.pow(bytes.max(1).ilog10().saturating_sub(2));
    show_bytes(bytes / magnitude * magnitude)
}

fn rtt_text(us: f64) -> String {
    let us = us.round() as u64;
    let magnitude = 10_u64.pow(us.max(1).ilog10().saturating_sub(2));
    show_time((us + magnitude / 2) / magnitude * magnitude)
}

fn counts(counts: &Counts, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "{} frames, {} segments of TCP, {} connections, {:.3} s",
        counts.frames,
        counts.segments,
        counts.connections,
        counts.last_ns.saturating_sub(counts.first_ns) as f64 / 1e9
    )?;
    let others = [
        (counts.not_tcp, "of other protocols"),
        (counts.tunnelled, "in tunnels (--tunnels looks into them)"),
        (counts.encrypted, "of WireGuard"),
        (counts.not_ip, "without IP"),
        (
            counts.fragments,
            "are fragments, which are not put together",
        ),
        (
            counts.unknown_link,
            "have a link layer that is not read here",
        ),
        (
            counts.cut_short,
            "were captured too short: use tcpdump -s 128",
        ),
        (counts.malformed, "have malformed headers"),
        (
            counts.backward_times,
            "are earlier than the frame before them",
        ),
    ];
    for (count, what) in others.into_iter().filter(|(count, _)| *count > 0) {
        writeln!(out, "  {count} {what}")?;
    }
    if counts.evicted > 0 {
        let evicted = counts.evicted;
        writeln!(
            out,
            "  {evicted} connections were taken as ended: too many at once, or too much of them to remember"
        )?;
    }
    Ok(())
}

/// Texts of the file are somebody else's.
fn about(about: &About, out: &mut impl Write) -> io::Result<()> {
    if let Some(dropped) = about.dropped_packets.filter(|dropped| *dropped > 0) {
        writeln!(
            out,
            "the capture dropped {dropped} packets: figures are too low"
        )?;
    }
    for comment in about.comments.iter().take(MOST_COMMENTS) {
        writeln!(out, "comment: {}", escaped(comment))?;
    }
    Ok(())
}

/// Nothing of it steers the terminal, nor turns the direction of writing.
fn escaped(text: &str) -> String {
    let is_plain = |c: char| !c.is_control() && !is_invisible(c);
    text.chars()
        .map(|c| match is_plain(c) {
            true => c.to_string(),
            false => c.escape_default().to_string(),
        })
        .collect()
}

/// Marks of direction and characters without width (Unicode, general category Cf), of which text needs none here.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0001}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::super::chosen::{Chosen, Sort};
    use super::*;
    use fatpath_capture::{Analysis, Ecn, End, Limits, Options, Segment, flag};

    /// From port 4000 to port 80, or back.
    fn segment(is_from_client: bool, time_ms: i64, seq: u32, ack: u32, bytes: u32) -> Segment {
        let [client, server] = [("10.0.0.1", 4000), ("10.0.0.2", 80)]
            .map(|(address, port)| End::new(address.parse().unwrap(), port));
        let (source, destination) = match is_from_client {
            true => (client, server),
            false => (server, client),
        };
        Segment {
            time_ns: time_ms * 1_000_000,
            source,
            destination,
            seq,
            ack,
            flags: flag::ACK,
            window: 0,
            payload_bytes: bytes,
            ip_id: None,
            ecn: Ecn::NotCapable,
            options: Options::default(),
        }
    }

    #[test]
    fn the_table() {
        let mut analysis = Analysis::new(Limits::default());
        // The receiver's window is closed for most of the time, and the last segment is sent again after a second.
        for (i, time_ms) in [0, 40, 80].into_iter().enumerate() {
            let seq = 1 + 50_000 * i as u32;
            analysis.take_segment(&segment(true, time_ms, seq, 1, 50_000));
            analysis.take_segment(&segment(false, time_ms + 35, 1, seq + 50_000, 0));
        }
        analysis.take_segment(&segment(true, 120, 150_001, 1, 2000));
        analysis.take_segment(&segment(true, 1120, 150_001, 1, 2000));
        analysis.take_segment(&segment(false, 1155, 1, 152_001, 0));
        let (connections, counts) = analysis.finish();
        let mut chosen = Chosen::new(Sort::Flow, Vec::new(), &[]);
        chosen.extend(connections).unwrap();
        let about = About {
            comments: vec!["made \u{1b}[31mhere".to_owned()],
            ..About::default()
        };
        let stopped = None;
        let analysed = Analysed {
            about,
            counts,
            chosen,
            stopped,
            histories: Vec::new(),
            traced: Vec::new(),
        };
        let mut text = Vec::new();
        print(&analysed, &mut text).unwrap();
        let expected = "\
FLOW  DATA    Mb/s  RTT    RETR  CONNECTION
1     152 kB  1.1   35 ms  1     10.0.0.1:4000 > 10.0.0.2:80
flow 1: FP-READER (data of the client): the receiver's window was closed for 97 % of the time, 1 times
0 frames, 9 segments of TCP, 1 connections, 0.000 s
comment: made \\u{1b}[31mhere
";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }

    #[test]
    fn a_comment_cannot_steer_the_terminal() {
        assert_eq!(escaped("plain µ"), "plain µ");
        let hostile = escaped("\u{1b}[2J\r\u{202e}\u{9b}x");
        assert!(
            hostile.is_ascii() && !hostile.contains(char::is_control),
            "{hostile}"
        );
    }
}
