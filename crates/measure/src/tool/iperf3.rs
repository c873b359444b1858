// SPDX-License-Identifier: MIT OR Apache-2.0
//! Throughput by `iperf3`, whose server runs at the peer, or is started there by a responder of fatpath
//! (`fatpath measure iperf3`).

use super::echo::given;
use super::{MOST_FLOWS, Measured, ReadError, Values, seconds, values, words};
use fatpath_api::TestFlow;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

/// `tool = "iperf3"`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Iperf3 {
    /// Of the server; where a responder starts it, whatever that says counts.
    pub port: u16,
    /// Who starts the server; none: it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<AskedServer>,
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

/// A responder that starts the server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AskedServer {
    /// Of the responder.
    pub port: u16,
    /// How long it may wait until no other test loads its path.
    pub patience_us: u64,
    /// File of this host's key; none: the configuration's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// File of the keys that it trusts; none: the configuration's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<String>,
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
    /// Where a server listens, unless it is told otherwise.
    pub const PORT: u16 = 5201;
    /// Of a stream of UDP that is not told its rate.
    pub const UDP_RATE_BPS: u64 = 1_000_000;

    /// The rate of each stream; `None`: as fast as it goes.
    pub fn each_bps(&self) -> Option<u64> {
        let of_udp = self.protocol == Protocol::Udp;
        self.rate_bps.or(of_udp.then_some(Iperf3::UDP_RATE_BPS))
    }

    pub(super) fn command(&self, to: &str, duration_us: u64) -> Vec<String> {
        match &self.asked {
            Some(asked) => self.own_command(asked, to, duration_us),
            None => self.client_command(to, duration_us),
        }
    }

    fn own_command(&self, asked: &AskedServer, to: &str, duration_us: u64) -> Vec<String> {
        let port = asked.port.to_string();
        let mut words = words(&["fatpath", "measure", "iperf3", "--json", "--port", &port]);
        words.extend(given([
            ("--duration", &Some(format!("{}s", seconds(duration_us)))),
            (
                "--patience",
                &Some(format!("{}s", seconds(asked.patience_us))),
            ),
            ("--streams", &Some(self.streams.to_string())),
            ("--congestion-control", &self.congestion_control),
            ("--rate", &self.rate_bps.map(|rate| format!("{rate}bit"))),
            (
                "--window",
                &self.window_bytes.map(|bytes| bytes.to_string()),
            ),
            ("--key", &asked.key),
            ("--trust", &asked.trust),
        ]));
        let switches = [
            (self.protocol == Protocol::Udp, "--udp"),
            (self.reverse, "--reverse"),
        ];
        let switched = switches.into_iter().filter(|(is_on, _)| *is_on);
        words.extend(switched.map(|(_, switch)| switch.to_owned()));
        words.extend(["--".to_owned(), to.to_owned()]);
        words
    }

    fn client_command(&self, to: &str, duration_us: u64) -> Vec<String> {
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
    start: Start,
    #[serde(default)]
    end: End,
}

#[derive(Default, Deserialize)]
struct Start {
    #[serde(default)]
    connected: Vec<Connected>,
}

#[derive(Deserialize)]
struct Connected {
    local_host: String,
    local_port: u16,
    remote_host: String,
    remote_port: u16,
}

#[derive(Default, Deserialize)]
struct End {
    sum: Option<Sum>,
    sum_sent: Option<Sum>,
    sum_received: Option<Sum>,
    /// The other way of a test that goes both ways.
    sum_sent_bidir_reverse: Option<Sum>,
    sum_received_bidir_reverse: Option<Sum>,
    sum_bidir_reverse: Option<Sum>,
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

/// What a server that prints JSON has received and sent; `None`: it does not say. Of a client that it did not serve it
/// prints a document, too.
pub fn bytes_served(output: &str) -> Option<u64> {
    let documents = serde_json::Deserializer::from_str(output).into_iter::<Output>();
    let documents: Result<Vec<Output>, _> = documents.collect();
    let bytes = documents.ok()?.into_iter().filter_map(|it| it.end.bytes());
    bytes.reduce(|all, bytes| all + bytes).map(|all| all as u64)
}

impl End {
    /// Each way has what was sent and what of it arrived.
    fn bytes(&self) -> Option<f64> {
        let there = [&self.sum, &self.sum_sent, &self.sum_received];
        let back = [
            &self.sum_bidir_reverse,
            &self.sum_sent_bidir_reverse,
            &self.sum_received_bidir_reverse,
        ];
        let most = |sums: [&Option<Sum>; 3]| {
            let bytes = sums.into_iter().flatten().map(|sum| sum.bytes);
            bytes.reduce(f64::max)
        };
        let ways = [most(there), most(back)].into_iter().flatten();
        ways.reduce(|all, bytes| all + bytes)
    }

    fn values(&self) -> Result<Values, ReadError> {
        let received = self.sum_received.as_ref().or(self.sum.as_ref());
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
        let sent = self.sum_sent.as_ref();
        add(
            "retransmits",
            sent.and_then(|sum| sum.retransmits),
            "segments",
        );
        if let Some(udp) = self.sum.as_ref() {
            add("jitter", udp.jitter_ms, "ms");
            let lost = udp.lost_packets.zip(udp.packets.filter(|all| *all > 0.0));
            add("loss", lost.map(|(lost, all)| lost / all), "1");
        }
        let senders: Vec<&Sender> = self
            .streams
            .iter()
            .flat_map(|stream| &stream.sender)
            .collect();
        let rtt_ms = |of: fn(&Sender) -> Option<f64>, pick: fn(f64, f64) -> f64| {
            let rtts_us = senders.iter().copied().filter_map(of);
            let measured_us = rtts_us.filter(|rtt_us| *rtt_us > 0.0);
            measured_us.reduce(pick).map(|us| us / 1e3)
        };
        add("rtt_min", rtt_ms(|s| s.min_rtt, f64::min), "ms");
        add("rtt_max_mean", rtt_ms(|s| s.mean_rtt, f64::max), "ms");
        Ok(read)
    }
}

impl Connected {
    /// An address that is one of its interface only has no flow that is found by it.
    fn flow(&self) -> Option<TestFlow> {
        let end = |host: &str, port| Some(SocketAddr::new(host.parse::<IpAddr>().ok()?, port));
        Some(TestFlow {
            local: end(&self.local_host, self.local_port)?,
            remote: end(&self.remote_host, self.remote_port)?,
            summary: None,
        })
    }
}

impl Iperf3 {
    /// Reads `iperf3 --json`, of TCP and of UDP.
    pub(super) fn read(&self, output: &str) -> Result<Measured, ReadError> {
        let output: Output = serde_json::from_str(output)
            .map_err(|error| ReadError::Missing(format!("JSON of iperf3: {error}")))?;
        if let Some(error) = output.error {
            return Err(ReadError::Tool(error));
        }
        let connected = output.start.connected.iter().take(MOST_FLOWS);
        let flows = connected.filter_map(Connected::flow);
        let is_tcp = self.protocol == Protocol::Tcp;
        Ok(Measured {
            values: output.end.values()?,
            flows: flows.filter(|_| is_tcp).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn iperf3() -> Iperf3 {
        Iperf3 {
            port: 5201,
            asked: None,
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
    fn a_responder_is_asked_by_this_program() {
        let asked = AskedServer {
            port: 9,
            patience_us: 60_000_000,
            key: Some("/k".into()),
            trust: None,
        };
        let iperf3 = Iperf3 {
            asked: Some(asked),
            ..iperf3()
        };
        let command = iperf3.command("h", 9_500_000).join(" ");
        let wanted = "fatpath measure iperf3 --json --port 9 --duration 9.5s --patience 60s --streams 2 --congestion-control fp_scalable \
            --window 1048576 --key /k --reverse -- h";
        assert_eq!(command, wanted);
    }

    #[test]
    fn a_server_says_what_came_and_left() {
        let served = r#"{"end": {"sum_sent": {"bits_per_second": 1, "bytes": 7},
            "sum_received": {"bits_per_second": 1, "bytes": 9}}}"#;
        assert_eq!(bytes_served(served), Some(9));
        let both_ways = r#"{"end": {"sum_received": {"bits_per_second": 1, "bytes": 9},
            "sum_sent_bidir_reverse": {"bits_per_second": 1, "bytes": 5}}}"#;
        assert_eq!(bytes_served(both_ways), Some(14));
        let after_another = format!("{{\"start\": {{}}, \"error\": \"x\"}}\n{served}\n");
        assert_eq!(bytes_served(&after_another), Some(9));
        assert_eq!(bytes_served("{}"), None);
        assert_eq!(bytes_served("iperf3: what?"), None);
    }

    #[test]
    fn tcp_and_udp_are_read() {
        let tcp = r#"{"end": {"streams": [{"sender": {"mean_rtt": 2000, "min_rtt": 1500}}],
            "sum_sent": {"bits_per_second": 1e9, "bytes": 2e9, "retransmits": 3},
            "sum_received": {"bits_per_second": 9e8, "bytes": 1.8e9}}}"#;
        let tcp = iperf3().read(tcp).unwrap().values;
        assert_eq!(
            (tcp["goodput"].0, tcp["retransmits"].0, tcp["rtt_min"].0),
            (9e8, 3.0, 1.5)
        );
        let udp = r#"{"end": {"sum": {"bits_per_second": 1e6, "bytes": 125000, "jitter_ms": 0.1,
            "lost_packets": 1, "packets": 100}}}"#;
        let udp = iperf3().read(udp).unwrap().values;
        assert_eq!((udp["goodput"].0, udp["loss"].0), (1e6, 0.01));
    }

    #[test]
    fn its_own_error_is_passed_on() {
        let refused = r#"{"start": {}, "error": "unable to connect to server"}"#;
        assert_eq!(
            iperf3().read(refused),
            Err(ReadError::Tool("unable to connect to server".into()))
        );
        assert!(iperf3().read("iperf3: what?").is_err());
        assert!(iperf3().read("{}").is_err());
    }

    #[test]
    fn the_flows_of_tcp_are_told() {
        let end = |host: &str, port: u16| {
            format!(
                r#"{{"socket": 5, "local_host": "{host}", "local_port": {port},
                "remote_host": "192.0.2.2", "remote_port": 5201}}"#
            )
        };
        let connected = [
            end("192.0.2.1", 40000),
            end("fe80::1%eth0", 1),
            end("::1", 2),
        ];
        let output = format!(
            r#"{{"start": {{"connected": [{}]}},
            "end": {{"sum_received": {{"bits_per_second": 1, "bytes": 1}}}}}}"#,
            connected.join(",")
        );
        let ends = |iperf3: Iperf3| {
            let flows = iperf3.read(&output).unwrap().flows;
            let local = flows.iter().map(|flow| flow.local.to_string());
            local.collect::<Vec<_>>()
        };
        assert_eq!(ends(iperf3()), ["192.0.2.1:40000", "[::1]:2"]);
        let of_udp = Iperf3 {
            protocol: Protocol::Udp,
            ..iperf3()
        };
        assert!(ends(of_udp).is_empty());
    }
}
