// SPDX-License-Identifier: MIT OR Apache-2.0
//! A client that was stopped by a signal before all was sent. It has no time to ask its server what that got, so
//! the server's own intervals count. The last of them stands there twice, and the server's sum has bytes of after
//! it, but not their time.
//!
//! Pure. Start with [`parse_stopped`].

use fatpath_experiment::measured::Measured;

use super::{End, Output, ParseError, Received, ServerOutput, Sums, measured, parse};

/// What the client says then; since 3.17 also by which signal.
const STOPPED: &str = "interrupt - the client has terminated";

/// Reads the outputs of a client and of its server (`iperf3 -s -J`), both as JSON. A client that ended by itself is
/// as good as any.
///
/// # Errors
/// See [`ParseError`].
pub fn parse_stopped(client: &str, server: &str) -> Result<Measured, ParseError> {
    let sent: Output = serde_json::from_str(client)?;
    let is_stopped = |error: &String| error.starts_with(STOPPED);
    if !sent.error.as_ref().is_some_and(is_stopped) {
        return parse(client);
    }
    let got: Output = serde_json::from_str(server)?;
    let mut intervals = got.intervals;
    intervals.dedup_by_key(|sums| sums.sum.start_s.to_bits());
    measured(Output {
        error: None,
        end: End {
            sum_received: received(&intervals),
            ..sent.end
        },
        server_output_json: Some(ServerOutput { intervals }),
        ..sent
    })
}

/// `None` of no interval.
fn received(intervals: &[Sums]) -> Option<Received> {
    let bits = |sums: &Sums| sums.sum.rate_bps * (sums.sum.end_s - sums.sum.start_s);
    let seconds = intervals.last()?.sum.end_s;
    Some(Received {
        bits_per_second: intervals.iter().map(bits).sum::<f64>() / seconds,
        seconds,
        ..Received::default()
    })
}

#[cfg(test)]
mod tests {
    use fatpath_experiment::measured::SeenBy;

    use super::*;

    const CLIENT: &str = include_str!("../../tests/data/iperf3-stopped-client.json");
    const SERVER: &str = include_str!("../../tests/data/iperf3-stopped-server.json");
    const ENDED: &str = include_str!("../../tests/data/iperf3.json");

    #[test]
    fn what_a_stopped_client_sent_is_what_its_server_got() {
        assert!(matches!(parse(CLIENT), Err(ParseError::Iperf3(_))));
        let measured = parse_stopped(CLIENT, SERVER).unwrap();
        assert_eq!(measured.seen_by, SeenBy::Receiver);
        // Three intervals; iperf3's sum says 595,456 bytes, which it had got by 1.99 s.
        let expected_bps = (404_992.0 + 2.0 * 65_483.0) * 8.0 / 1.50029;
        assert!((measured.goodput_bps / expected_bps - 1.0).abs() < 1e-3);
        assert_eq!(measured.retransmits, Some(0));
        assert_eq!(measured.intervals.len(), 3);
    }

    #[test]
    fn a_client_that_ended_by_itself_tells_all() {
        assert_eq!(parse_stopped(ENDED, SERVER).unwrap(), parse(ENDED).unwrap());
    }
}
