// SPDX-License-Identifier: MIT OR Apache-2.0
//! Buffers of this host that are too small for the path.

use super::{Finding, HOLDS, Severity, buffer, by_share, gain};
use crate::rule::Rule;
use crate::span::Span;

/// Of the announced window, the part that was in flight when the buffer decides.
const FILLS: f64 = 0.7;

/// FP-SNDBUF: the kernel's own tuning, or a rule, stops too early.
pub(super) fn send_buffer(span: &Span) -> Option<Finding> {
    if is_send_buffer_programs(span) || span.last.buffer_is_withheld {
        return None;
    }
    let title = "The send buffer is too small for the path";
    Some(too_small(span, "FP-SNDBUF", title)?.cured_by(send_buffer_line(span)))
}

/// FP-TCP-MEMORY: the rule's buffer was withheld, so that a rule with a larger one cures nothing.
pub(super) fn withheld(span: &Span) -> Option<Finding> {
    let shares = span.shares();
    let share = shares.send_buffer.max(shares.receiver);
    let severity = match share >= HOLDS {
        true => by_share(share),
        false => Severity::Info,
    };
    let title = "The host's TCP memory was short: the flow has the kernel's own buffers, not those of its rule";
    let s = span.last;
    let found = Finding::new("FP-TCP-MEMORY", severity, title)
        .with("SendBuffer", f64::from(s.send_buffer_bytes), "bytes")
        .with("ReceiveBuffer", f64::from(s.receive_buffer_bytes), "bytes")
        .cured_by("# on this host: smaller buffers, divide = true, or a larger net.ipv4.tcp_mem");
    s.buffer_is_withheld.then_some(found)
}

/// FP-BUFFER-LOCKED, at the sender: the program set SO_SNDBUF, which ends the kernel's own tuning.
pub(super) fn locked_send_buffer(span: &Span) -> Option<Finding> {
    if !is_send_buffer_programs(span) {
        return None;
    }
    let title = "The program set a send buffer that is too small for the path";
    let cure = override_lines(span, &send_buffer_line(span));
    Some(too_small(span, "FP-BUFFER-LOCKED", title)?.cured_by(cure))
}

/// Where no rule of the file matches, what is learned of the path can give the buffer, too.
fn override_lines(span: &Span, buffer_line: &str) -> String {
    let of_rule = format!("{buffer_line}\noverride_application = true");
    match span.rule {
        Some(rule) if rule.is_learned => {
            "# under [auto], or in a rule with buffers:\noverride_application = true".to_owned()
        }
        Some(_) => of_rule,
        None => format!(
            "{of_rule}\n# or, where paths are tuned, under [auto]: override_application = true"
        ),
    }
}

/// Whether the send buffer is one that the program set.
pub(crate) fn is_send_buffer_programs(span: &Span) -> bool {
    let (s, of_rule) = (span.last, |rule: &Rule| rule.send_buffer_bytes);
    s.send_buffer_is_locked && !is_of_rule(span, of_rule, s.send_buffer_bytes)
}

/// The same of the receive buffer.
pub(crate) fn is_receive_buffer_programs(span: &Span) -> bool {
    let (s, of_rule) = (span.last, |rule: &Rule| rule.receive_buffer_bytes);
    s.receive_buffer_is_locked && !is_of_rule(span, of_rule, s.receive_buffer_bytes)
}

/// A rule locks a buffer just as a program does: where both set it, it counts as the rule's. What is learned leaves a program
/// its own, unless it is allowed to replace it; the kernel doubles what is set.
fn is_of_rule(span: &Span, bytes: fn(&Rule) -> Option<u64>, has_bytes: u32) -> bool {
    let Some(rule) = span.rule else {
        // Of a rule that came with a policy not told yet, nothing more is known.
        return span.last.flow.rule_id.is_some();
    };
    let is_given = |bytes| u64::from(has_bytes) >= 2 * bytes || span.last.buffer_is_withheld;
    bytes(rule).is_some_and(|bytes| !rule.is_learned || is_given(bytes))
}

fn too_small(span: &Span, id: &str, title: &str) -> Option<Finding> {
    let share = span.shares().send_buffer;
    let found = Finding::new(id, by_share(share), title)
        .with("SndLimTimeSnd", share * 100.0, "% of the time")
        .with(
            "SendBuffer",
            f64::from(span.last.send_buffer_bytes),
            "bytes",
        )
        .with(
            "PipeSize, mean",
            span.mean_in_flight_pkts() * span.mss_bytes(),
            "bytes",
        )
        .with(
            "CurCwnd, mean",
            span.mean_cwnd_pkts() * span.mss_bytes(),
            "bytes",
        )
        .gaining(gain(span.known_gain()));
    (share >= HOLDS).then_some(found)
}

fn send_buffer_line(span: &Span) -> String {
    let in_flight_bytes = span.mean_in_flight_pkts() * span.mss_bytes();
    let bytes = span.wanted_buffer_bytes(in_flight_bytes);
    format!("send_buffer = \"{}\"", buffer(bytes))
}

/// FP-BUFFER-LOCKED, at the receiver: the peer fills the window of a buffer that cannot grow.
pub(super) fn locked_receive_buffer(span: &Span) -> Option<Finding> {
    let s = span.last;
    let window_bytes = f64::from(s.receive_window_bytes);
    let in_flight_bytes = span.received_bps() / 8.0 * span.base_rtt_us() / 1e6;
    if !is_receive_buffer_programs(span)
        || window_bytes == 0.0
        || in_flight_bytes < FILLS * window_bytes
    {
        return None;
    }
    let title = "The program set a receive buffer that is too small for the path";
    let line = format!("receive_buffer = \"{}\"", buffer(2.0 * window_bytes));
    let found = Finding::new("FP-BUFFER-LOCKED", Severity::Problem, title)
        .with("ReceiveBuffer", f64::from(s.receive_buffer_bytes), "bytes")
        .with("CurRwinSent", window_bytes, "bytes")
        .with("received in a round trip", in_flight_bytes, "bytes")
        .cured_by(override_lines(span, &line));
    Some(found)
}
