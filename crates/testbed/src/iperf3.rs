// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `iperf3 --json` says, as a client: goodput at the receiver, retransmissions, what datagrams
//! met, throughput over time.
//!
//! Pure. Written for iperf 3.9 to 3.19 with TCP and UDP. With `--bidir` it sees one way only, the
//! client's. Start with [`parse`].

mod stopped;

use fatpath_experiment::measured::{Interval, Measured, SeenBy, Udp};
use serde::Deserialize;
use thiserror::Error;

pub use stopped::parse_stopped;

/// Why an output gives no figures.
#[derive(Debug, Error)]
pub enum ParseError {
    /// iperf3 itself failed; it exits with 0 all the same when it writes JSON.
    #[error("iperf3: {0}")]
    Iperf3(String),
    /// It is no JSON of iperf3.
    #[error("not the output of iperf3 --json: {0}")]
    NotJson(#[from] serde_json::Error),
    /// The run ended before there was a sum.
    #[error("the output has no {0}: not a finished test of an iperf3 client")]
    Unfinished(&'static str),
}

#[derive(Deserialize)]
struct Output {
    error: Option<String>,
    #[serde(default)]
    start: Start,
    #[serde(default)]
    intervals: Vec<Sums>,
    #[serde(default)]
    end: End,
    server_output_json: Option<ServerOutput>,
}

#[derive(Default, Deserialize)]
struct Start {
    test_start: Option<TestStart>,
}

#[derive(Deserialize)]
struct TestStart {
    #[serde(default)]
    protocol: String,
    #[serde(default)]
    reverse: u8,
}

#[derive(Deserialize)]
struct Sums {
    sum: Interval,
}

#[derive(Default, Deserialize)]
struct End {
    sum_sent: Option<Sent>,
    sum_received: Option<Received>,
}

#[derive(Deserialize)]
struct Sent {
    retransmits: Option<u64>,
}

#[derive(Default, Deserialize)]
struct Received {
    bits_per_second: f64,
    #[serde(default)]
    seconds: f64,
    #[serde(default)]
    jitter_ms: f64,
    #[serde(default)]
    lost_packets: u64,
    #[serde(default)]
    packets: u64,
}

#[derive(Deserialize)]
struct ServerOutput {
    #[serde(default)]
    intervals: Vec<Sums>,
}

/// Reads the output of an iperf3 client. With `--get-server-output` and a server that writes JSON
/// too (`iperf3 -s -J`), the intervals are the receiver's.
///
/// # Errors
/// See [`ParseError`].
pub fn parse(text: &str) -> Result<Measured, ParseError> {
    measured(serde_json::from_str(text)?)
}

fn measured(output: Output) -> Result<Measured, ParseError> {
    if let Some(error) = output.error {
        return Err(ParseError::Iperf3(error));
    }
    let received = output
        .end
        .sum_received
        .ok_or(ParseError::Unfinished("end.sum_received"))?;
    let test = output.start.test_start;
    let reverse = test.as_ref().is_some_and(|test| test.reverse != 0);
    let is_udp = test.is_some_and(|test| test.protocol == "UDP");
    let of_server = output
        .server_output_json
        .map(|server| server.intervals)
        .unwrap_or_default();
    let (seen_by, sums) = match (reverse, of_server.is_empty()) {
        (true, _) => (SeenBy::Receiver, output.intervals),
        (false, false) => (SeenBy::Receiver, of_server),
        (false, true) => (SeenBy::Sender, output.intervals),
    };
    Ok(Measured {
        goodput_bps: received.bits_per_second,
        begin_s: 0.0,
        lasting_s: received.seconds,
        retransmits: output.end.sum_sent.and_then(|sent| sent.retransmits),
        udp: is_udp.then_some(Udp {
            packets: received.packets,
            lost_packets: received.lost_packets,
            jitter_ms: received.jitter_ms,
        }),
        reverse,
        seen_by,
        intervals: sums.into_iter().map(|sums| sums.sum).collect(),
        timeouts: None,
        congestion_events: None,
        undone_events: None,
        transfers: None,
        window: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITH_SERVER_JSON: &str = include_str!("../tests/data/iperf3.json");
    const WITH_SERVER_TEXT: &str = include_str!("../tests/data/iperf3-server-text.json");
    const UDP: &str = include_str!("../tests/data/iperf3-udp.json");
    const REFUSED: &str = include_str!("../tests/data/iperf3-refused.json");

    #[test]
    fn the_figures_are_the_receivers() {
        let measured = parse(WITH_SERVER_JSON).unwrap();
        assert_eq!(measured.seen_by, SeenBy::Receiver);
        assert!(
            (measured.goodput_bps / 200_258_190.4 - 1.0).abs() < 1e-6,
            "{measured:?}"
        );
        assert_eq!(measured.retransmits, Some(0));
        assert_eq!(measured.intervals[0].end_s, 0.500098);
        assert!(measured.intervals.len() >= 4);
    }

    #[test]
    fn without_the_servers_json_the_intervals_are_the_senders() {
        let measured = parse(WITH_SERVER_TEXT).unwrap();
        assert_eq!(measured.seen_by, SeenBy::Sender);
        assert_eq!(measured.intervals.len(), 4);
    }

    #[test]
    fn datagrams_are_counted() {
        let measured = parse(UDP).unwrap();
        let udp = measured.udp.unwrap();
        assert_eq!((udp.packets, udp.lost_packets), (153, 0));
        assert!((udp.jitter_ms - 0.0094).abs() < 1e-4);
        assert_eq!(measured.retransmits, None);
        assert_eq!(measured.seen_by, SeenBy::Receiver);
    }

    #[test]
    fn a_sum_adds_what_can_be_added() {
        let (tcp, udp) = (parse(WITH_SERVER_JSON).unwrap(), parse(UDP).unwrap());
        let sum = Measured::sum(&[&tcp, &udp, &udp]).unwrap();
        let bits = |one: &Measured| one.goodput_bps * one.lasting_s;
        let expected_bps = (bits(&tcp) + 2.0 * bits(&udp)) / tcp.lasting_s.max(udp.lasting_s);
        assert!((sum.goodput_bps / expected_bps - 1.0).abs() < 1e-12);
        assert_eq!(sum.retransmits, tcp.retransmits);
        assert_eq!(sum.udp.unwrap().packets, 306);
        assert!(Measured::sum(&[]).is_none());
    }

    #[test]
    fn an_error_of_iperf3_is_passed_on() {
        let error = parse(REFUSED).unwrap_err().to_string();
        assert_eq!(
            error,
            "iperf3: unable to connect to server: Connection refused"
        );
        assert!(parse("iperf3: bad option").is_err());
        assert!(matches!(parse("{}"), Err(ParseError::Unfinished(_))));
    }
}
