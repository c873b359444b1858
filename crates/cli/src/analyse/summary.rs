// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of connections, and what is to be said of the capture as a whole.

use super::Analysed;
use super::chosen::{busier, is_from_client};
use crate::table::write_table;
use fatpath_capture::{About, Connection, Counts};
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
            "  {evicted} connections were taken as ended: too many at once"
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
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

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
