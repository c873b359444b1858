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

pub(crate) fn findings(connection: &Connection) -> Vec<Finding> {
    let both = [
        ("client", &connection.from_client, &connection.from_server),
        ("server", &connection.from_server, &connection.from_client),
    ];
    let causes = [reader, window, timeouts, reordering];
    both.into_iter()
        .filter(|(_, way, _)| way.acked_bytes >= LEAST_BYTES && way.data_time_us > 0.0)
        .flat_map(|(from, way, peer)| {
            let found = causes.into_iter().filter_map(|cause| cause(way, peer));
            found.map(move |(id, evidence)| Finding { id, from, evidence })
        })
        .collect()
}

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

/// Timeouts repair what ACKs should.
fn timeouts(way: &Direction, _: &Direction) -> Found {
    let kinds = &way.retransmissions;
    let is_most = kinds.timeout >= 3 && kinds.timeout * 4 >= way.retransmitted_packets;
    is_most.then(|| {
        let evidence = format!(
            "{} timeouts among {} retransmissions",
            kinds.timeout, way.retransmitted_packets
        );
        ("FP-RTO", evidence)
    })
}

/// What was retransmitted had not been lost.
fn reordering(way: &Direction, _: &Direction) -> Found {
    let spurious = way.spurious_by_dsack.max(way.spurious_by_timestamp);
    let is_most = spurious >= LEAST_SPURIOUS && spurious * 2 >= way.retransmitted_packets;
    is_most.then(|| {
        let evidence = format!(
            "{spurious} of {} retransmissions were not needed",
            way.retransmitted_packets
        );
        ("FP-REORDERING", evidence)
    })
}
