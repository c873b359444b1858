// SPDX-License-Identifier: MIT OR Apache-2.0
//! Throughput by `iperf3`, whose server runs at the peer.

use super::{ReadError, Values, values, words};
use serde::{Deserialize, Serialize};

/// `tool = "iperf3"`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Iperf3 {
    /// Of the server.
    pub port: u16,
    /// TCP or UDP.
    pub protocol: Protocol,
    /// Flows at once.
    pub streams: u64,
    /// The congestion control of TCP; absent: the kernel's.
    pub congestion_control: Option<String>,
    /// Of each stream; absent: as fast as it goes.
    pub rate_bps: Option<u64>,
    /// Socket buffers; absent: the kernel tunes them.
    pub window_bytes: Option<u64>,
    /// The peer sends.
    pub reverse: bool,
}

/// A transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Iperf3 {
    pub(super) fn command(&self, to: &str, duration_us: u64) -> Vec<String> {
        let seconds = duration_us.div_ceil(1_000_000).to_string();
        let (port, streams) = (self.port.to_string(), self.streams.to_string());
        let mut command = words(&[
            "iperf3",
            "--json",
            "--client",
            to,
            "--port",
            &port,
            "--time",
            &seconds,
            "--parallel",
            &streams,
        ]);
        let mut option = |name: &str, value: Option<String>| {
            command.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
        };
        option("--congestion", self.congestion_control.clone());
        option("--bitrate", self.rate_bps.map(|rate| rate.to_string()));
        option("--window", self.window_bytes.map(|bytes| bytes.to_string()));
        if self.protocol == Protocol::Udp {
            command.push("--udp".to_owned());
        }
        if self.reverse {
            command.push("--reverse".to_owned());
        }
        command
    }
}

#[derive(Deserialize)]
struct Output {
    error: Option<String>,
    #[serde(default)]
    end: End,
}

#[derive(Default, Deserialize)]
struct End {
    sum: Option<Sum>,
    sum_sent: Option<Sum>,
    sum_received: Option<Sum>,
    #[serde(default)]
    streams: Vec<Stream>,
}

#[derive(Deserialize)]
struct Sum {
    bits_per_second: f64,
    bytes: f64,
    retransmits: Option<f64>,
    jitter_ms: Option<f64>,
    lost_packets: Option<f64>,
    packets: Option<f64>,
}

#[derive(Deserialize)]
struct Stream {
    sender: Option<Sender>,
}

#[derive(Deserialize)]
struct Sender {
    mean_rtt: Option<f64>,
    min_rtt: Option<f64>,
}

/// Reads `iperf3 --json`, of TCP and of UDP.
pub(super) fn read(output: &str) -> Result<Values, ReadError> {
    let output: Output = serde_json::from_str(output)
        .map_err(|error| ReadError::Missing(format!("JSON of iperf3: {error}")))?;
    if let Some(error) = output.error {
        return Err(ReadError::Tool(error));
    }
    let end = output.end;
    let received = end.sum_received.as_ref().or(end.sum.as_ref());
    let received = received.ok_or_else(|| ReadError::Missing("sum".into()))?;
    let mut read = values([
        ("goodput", received.bits_per_second, "b/s"),
        ("bytes", received.bytes, "B"),
    ]);
    let mut add = |name, value: Option<f64>, unit| {
        read.extend(
            value
                .into_iter()
                .flat_map(|value| values([(name, value, unit)])),
        );
    };
    let sent = end.sum_sent.as_ref();
    add(
        "retransmits",
        sent.and_then(|sum| sum.retransmits),
        "segments",
    );
    if let Some(udp) = end.sum.as_ref() {
        add("jitter", udp.jitter_ms, "ms");
        let lost = udp.lost_packets.zip(udp.packets.filter(|all| *all > 0.0));
        add("loss", lost.map(|(lost, all)| lost / all), "1");
    }
    let senders: Vec<&Sender> = end
        .streams
        .iter()
        .flat_map(|stream| &stream.sender)
        .collect();
    let rtts_us = |of: fn(&Sender) -> Option<f64>| senders.iter().copied().filter_map(of);
    let measured_us = |rtt_us: &f64| *rtt_us > 0.0;
    add(
        "rtt_min",
        rtts_us(|s| s.min_rtt)
            .filter(measured_us)
            .reduce(f64::min)
            .map(|us| us / 1e3),
        "ms",
    );
    add(
        "rtt_max_mean",
        rtts_us(|s| s.mean_rtt)
            .filter(measured_us)
            .reduce(f64::max)
            .map(|us| us / 1e3),
        "ms",
    );
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn iperf3() -> Iperf3 {
        Iperf3 {
            port: 5201,
            protocol: Protocol::Tcp,
            streams: 2,
            congestion_control: Some("fp_scalable".into()),
            rate_bps: None,
            window_bytes: Some(1 << 20),
            reverse: true,
        }
    }

    #[test]
    fn options_are_given() {
        let command = iperf3().command("h", 9_500_000).join(" ");
        let wanted = "iperf3 --json --client h --port 5201 --time 10 --parallel 2 --congestion fp_scalable \
            --window 1048576 --reverse";
        assert_eq!(command, wanted);
    }

    #[test]
    fn tcp_and_udp_are_read() {
        let tcp = r#"{"end": {"streams": [{"sender": {"mean_rtt": 2000, "min_rtt": 1500}}],
            "sum_sent": {"bits_per_second": 1e9, "bytes": 2e9, "retransmits": 3},
            "sum_received": {"bits_per_second": 9e8, "bytes": 1.8e9}}}"#;
        let tcp = read(tcp).unwrap();
        assert_eq!(
            (tcp["goodput"].0, tcp["retransmits"].0, tcp["rtt_min"].0),
            (9e8, 3.0, 1.5)
        );
        let udp = r#"{"end": {"sum": {"bits_per_second": 1e6, "bytes": 125000, "jitter_ms": 0.1,
            "lost_packets": 1, "packets": 100}}}"#;
        let udp = read(udp).unwrap();
        assert_eq!((udp["goodput"].0, udp["loss"].0), (1e6, 0.01));
    }

    #[test]
    fn its_own_error_is_passed_on() {
        let refused = r#"{"start": {}, "error": "unable to connect to server"}"#;
        assert_eq!(
            read(refused),
            Err(ReadError::Tool("unable to connect to server".into()))
        );
        assert!(read("iperf3: what?").is_err());
        assert!(read("{}").is_err());
    }
}
