// SPDX-License-Identifier: MIT OR Apache-2.0
//! The time-sequence graph as a file for xplot (Shepard 1990), as tcptrace writes it: green ACK line, yellow window,
//! white segments, red retransmissions, purple SACKs.

use std::fmt::Write;

use fatpath_capture::{Mark, Point, Way};

/// The file's text. A title has one line.
pub fn xplot(title: &str, way: &Way) -> String {
    let mut text = String::from("timeval unsigned\ntitle\n");
    let plain = title.replace(char::is_control, "?");
    // Writing into a string cannot fail.
    let _ = writeln!(text, "{plain}\nxlabel\ntime\nylabel\nsequence number");
    steps(&mut text, "green", &way.acked);
    steps(&mut text, "yellow", &way.edge);
    for mark in Mark::ALL {
        let colour = match mark {
            Mark::New | Mark::Probe => "white",
            Mark::Again(_) => "red",
            Mark::OutOfOrder => "pink",
            Mark::Copy => "blue",
        };
        for span in way.of(mark) {
            let at = time(span.time_ns);
            let _ = writeln!(
                text,
                "{colour}\ndarrow {at} {}\nuarrow {at} {}",
                span.start, span.end
            );
            let _ = writeln!(text, "line {at} {} {at} {}", span.start, span.end);
            if matches!(mark, Mark::Again(_)) {
                let _ = writeln!(text, "atext {at} {}\nR", span.end);
            }
        }
    }
    for span in &way.sacked {
        let at = time(span.time_ns);
        let _ = writeln!(text, "purple\nline {at} {} {at} {}", span.start, span.end);
    }
    for point in &way.duplicate_acks {
        let _ = writeln!(text, "green\ndtick {} {}", time(point.time_ns), point.value);
    }
    text.push_str("go\n");
    text
}

fn steps(text: &mut String, colour: &str, points: &[Point]) {
    for pair in points.windows(2) {
        let [from, to] = [&pair[0], &pair[1]].map(|point| time(point.time_ns));
        let (before, after) = (pair[0].value, pair[1].value);
        let _ = writeln!(text, "{colour}\nline {from} {before} {to} {before}");
        let _ = writeln!(text, "line {to} {before} {to} {after}");
    }
}

/// Seconds and six digits: xplot's `timeval`.
fn time(ns: i64) -> String {
    let ns = ns.max(0);
    format!("{}.{:06}", ns / 1_000_000_000, ns % 1_000_000_000 / 1000)
}
