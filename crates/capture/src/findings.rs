// SPDX-License-Identifier: MIT OR Apache-2.0
//! What holds a connection back, as far as a capture tells, by the identifiers of `fatpath why` (docs/why.md). A cause
//! that only the hosts know, such as a send buffer, is not told.

use crate::report::{Connection, Direction, Finding};

/// A transfer below this has not met what limits it.
const LEAST_BYTES: u64 = 100_000;

/// A cause that takes less of the time is none.
const LEAST_SHARE: f64 = 0.2;

/// RFC 7323, section 2.1: what a window holds without a scale.
const UNSCALED_WINDOW_BYTES: u64 = 65_535;

/// Fewer are chance.
const LEAST_SPURIOUS: u64 = 5;

/// Of the time, as `fatpath why` has it; below that timeouts cost little.
const LEAST_TIMEOUT_SHARE: f64 = 0.1;

/// As `fatpath why` has them: a queue that is much longer than the path.
const BLOAT_RATIO: f64 = 3.0;
const LEAST_BLOAT_US: f64 = 40_000.0;

/// Segments that waited for a delayed ACK.
const LEAST_HELD: u64 = 10;

/// TCP's timestamps in each segment (RFC 7323, appendix A).
const TIMESTAMP_BYTES: u16 = 12;

pub(crate) fn findings(connection: &Connection) -> Vec<Finding> {
    let both = [
        ("client", &connection.from_client, &connection.from_server),
        ("server", &connection.from_server, &connection.from_client),
    ];
    both.into_iter()
        .flat_map(|(from, way, peer)| {
            let causes: &[Cause] = match way.acked_bytes >= LEAST_BYTES && way.data_time_us > 0.0 {
                true => &[reader, window, silence, reordering, queue, delayed_acks],
                false => &[silence, delayed_acks],
            };
            let found = causes.iter().filter_map(|cause| cause(way, peer));
            found.map(move |(id, evidence)| Finding { id, from, evidence })
        })
        .collect()
}

type Cause = fn(&Direction, &Direction) -> Found;

type Found = Option<(&'static str, String)>;

/// The receiving program does not read: its window closes.
fn reader(way: &Direction, peer: &Direction) -> Found {
    // A window may stay closed after the last data.
    let share = peer.zero_window_us / way.data_time_us.max(peer.zero_window_us);
    (share >= LEAST_SHARE).then(|| {
        let evidence = format!(
            "the receiver's window was closed for {:.0} % of the time, {} times",
            share * 100.0,
            peer.zero_windows
        );
        ("FP-READER", evidence)
    })
}

/// The receiver's window is full, and never closed for long.
fn window(way: &Direction, peer: &Direction) -> Found {
    let share = way.window_limited_us / way.data_time_us.max(way.window_limited_us);
    if share < LEAST_SHARE || reader(way, peer).is_some() {
        return None;
    }
    let has_no_scale = peer.mss_bytes.is_some()
        && (peer.window_scale.is_none() || way.window_scale.is_none())
        && peer.window_max_bytes <= UNSCALED_WINDOW_BYTES;
    let id = match has_no_scale {
        true => "FP-RWND-SCALE",
        false => "FP-RWND",
    };
    let evidence = format!(
        "the receiver's window, {} bytes at most, was full for {:.0} % of the time",
        peer.window_max_bytes,
        share * 100.0
    );
    Some((id, evidence))
}

/// The flow waits for its timer: what nobody answers, losses at the end of messages, or segments that are too long.
fn silence(way: &Direction, peer: &Direction) -> Found {
    let timeouts = way.retransmissions.timeout;
    if timeouts < 2 {
        return None;
    }
    let full_bytes = full_bytes(way, peer);
    let is_never_full = way.segment_max_bytes >= full_bytes
        && way.acked_segment_max_bytes < full_bytes
        && way.is_heard_after_timeout;
    if is_never_full {
        let evidence = format!(
            "no segment of {full_bytes} bytes was ever acknowledged in {timeouts} timeouts, and the peer is there"
        );
        return Some(("FP-PMTU-BLACKHOLE", evidence));
    }
    let share = way.timeout_wait_us / way.data_time_us.max(way.timeout_wait_us);
    let id = match way.tail_timeouts * 2 > timeouts && way.acked_bytes > 0 {
        true => "FP-TAIL-LOSS",
        false => "FP-RTO",
    };
    (share >= LEAST_TIMEOUT_SHARE).then(|| {
        let evidence = format!(
            "{timeouts} timeouts, {} of them with three segments or fewer outstanding, took {:.0} % of the time",
            way.tail_timeouts,
            share * 100.0
        );
        (id, evidence)
    })
}

fn full_bytes(way: &Direction, peer: &Direction) -> u64 {
    let options_bytes = if way.has_timestamps {
        TIMESTAMP_BYTES
    } else {
        0
    };
    let mss_bytes = peer.mss_bytes.map(|mss| mss.saturating_sub(options_bytes));
    mss_bytes.map_or(way.segment_max_bytes, u64::from)
}

/// The flow keeps a queue that is much longer than the path. A silence lengthens round trips, too.
fn queue(way: &Direction, peer: &Direction) -> Found {
    let rtt = way.rtt?;
    let is_long =
        rtt.mean_us >= BLOAT_RATIO * rtt.min_us && rtt.mean_us >= rtt.min_us + LEAST_BLOAT_US;
    let is_full = way.outstanding_mean_bytes >= 4.0 * full_bytes(way, peer) as f64;
    (is_long && is_full && silence(way, peer).is_none()).then(|| {
        let evidence = format!(
            "round trips of {:.0} ms on average and {:.0} ms at least",
            rtt.mean_us / 1000.0,
            rtt.min_us / 1000.0
        );
        ("FP-BUFFERBLOAT", evidence)
    })
}

/// Short segments wait for ACKs that the peer delays.
fn delayed_acks(way: &Direction, peer: &Direction) -> Found {
    let is_short = way.segment_max_bytes * 2 < full_bytes(way, peer);
    (is_short && way.held_segments >= LEAST_HELD && silence(way, peer).is_none()).then(|| {
        let evidence = format!(
            "{} of {} segments, of {} bytes at most, were sent only when a delayed ACK came",
            way.held_segments, way.data_packets, way.segment_max_bytes
        );
        ("FP-DELACK", evidence)
    })
}

/// What was retransmitted had not been lost, or what was late was not even sent again.
fn reordering(way: &Direction, _: &Direction) -> Found {
    let spurious = way.spurious_by_dsack.max(way.spurious_by_timestamp);
    let is_most = spurious >= LEAST_SPURIOUS && spurious * 2 >= way.retransmitted_packets;
    (is_most || way.late_arrivals >= LEAST_SPURIOUS).then(|| {
        let evidence = format!(
            "{spurious} of {} retransmissions were not needed, and {} times what was missing came late by itself",
            way.retransmitted_packets, way.late_arrivals
        );
        ("FP-REORDERING", evidence)
    })
}
