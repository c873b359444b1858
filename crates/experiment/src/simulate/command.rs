// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command lines of iperf3 as flows, for hosts on which no program can run.
//!
//! Pure. Options of reporting are passed over; what would change the traffic and cannot be simulated is
//! refused by name. Start with [`flow`].

use std::ffi::OsStr;
use std::time::Duration;

use fatpath_link::headers::{ETHERNET_MSS_BYTES, TIMESTAMP_BYTES, udp_rate_bps};
use fatpath_scenario::{LawRequest, Requests, Source};
use fatpath_units::Quantity;
use lexopt::Arg;

use super::options::{Means, meaning};

/// How long a test lasts where nothing is said, and its port: iperf3(1).
const LASTS: Duration = Duration::from_secs(10);
const PORT: u16 = 5201;
/// The longest test: MAX_TIME of iperf.h.
const MOST_SECONDS: f64 = 86_400.0;
/// The rate of UDP where nothing is said: iperf3(1).
const UDP_RATE_BPS: u64 = 1_000_000;
/// The block of TCP where nothing is said, which counts with `--blockcount`: iperf3(1).
const BLOCK_BYTES: u64 = 128 << 10;

/// What an iperf3 does.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Iperf3 {
    Client(Box<Client>),
    /// It listens on this port.
    Server(u16),
}

/// What a client asks for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Client {
    /// As it is written: an address.
    pub(super) server: String,
    pub(super) port: u16,
    pub(super) client_port: Option<u16>,
    /// The server sends.
    pub(super) reverse: bool,
    pub(super) streams: u32,
    pub(super) lasts: Option<Duration>,
    pub(super) source: Source,
    pub(super) requests: Requests,
}

/// Reads a command's words.
///
/// # Errors
/// In words: which option, and why.
pub(super) fn iperf3(words: &[String]) -> Result<Iperf3, String> {
    let (program, arguments) = words.split_first().ok_or("names no program")?;
    if program.rsplit('/').next() != Some("iperf3") {
        return Err(format!(
            "{program}: the simulator runs no programs but iperf3; write a [[flow]]"
        ));
    }
    let mut read = Read::default();
    let mut parser = lexopt::Parser::from_args(arguments);
    while let Some(argument) = parser.next().map_err(|error| error.to_string())? {
        let (option, means) = known(argument)?;
        let value = match means.has_value() {
            true => parser.value().ok(),
            false => None,
        };
        let value = value.as_deref().map(OsStr::to_string_lossy);
        read.option(&option, means, value.as_deref())?;
    }
    read.finish()
}

/// An option as it is written, and what it does.
fn known(argument: Arg) -> Result<(String, Means), String> {
    let (option, means) = match argument {
        Arg::Short(letter) => {
            let option = format!("-{letter}");
            let means = meaning(&option, |(short, ..)| *short == letter)?;
            (option, means)
        }
        Arg::Long(name) => {
            let option = format!("--{name}");
            let means = meaning(&option, |(_, long, _)| *long == name)?;
            (option, means)
        }
        Arg::Value(word) => {
            let word = word.to_string_lossy();
            return Err(format!("\"{word}\" is not an option of iperf3"));
        }
    };
    Ok((option, means))
}

/// What was read so far.
#[derive(Default)]
struct Read {
    is_server: bool,
    is_udp: bool,
    reverse: bool,
    server: Option<String>,
    port: Option<u16>,
    client_port: Option<u16>,
    lasts: Option<Duration>,
    bytes: Option<u64>,
    blocks: Option<u64>,
    block_bytes: Option<u64>,
    streams: Option<u32>,
    rate_bps: Option<u64>,
    requests: Requests,
}

impl Read {
    fn option(&mut self, option: &str, means: Means, value: Option<&str>) -> Result<(), String> {
        let text = match (means.has_value(), value) {
            (true, None) => return Err(format!("{option}: needs a value")),
            (_, value) => value.unwrap_or_default(),
        };
        self.set(means, text)
            .ok_or_else(|| format!("{option} {text} is not a value that the simulator takes"))
    }

    /// `None`: the value makes no sense.
    fn set(&mut self, means: Means, text: &str) -> Option<()> {
        match means {
            Means::Nothing { .. } => {}
            Means::Server => self.is_server = true,
            Means::Reverse => self.reverse = true,
            Means::Udp => self.is_udp = true,
            Means::Client => self.server = Some(text.to_owned()),
            Means::Port => self.port = Some(text.parse().ok()?),
            Means::ClientPort => self.client_port = Some(text.parse().ok()?),
            Means::Time => self.lasts = Some(seconds(text)?),
            Means::Bytes => self.bytes = Some(binary(text)?),
            Means::Blocks => self.blocks = Some(binary(text)?),
            Means::Length => self.block_bytes = Some(binary(text)?),
            Means::Parallel => {
                self.streams = Some(text.parse().ok().filter(|n| (1..=128).contains(n))?);
            }
            Means::Rate => self.rate_bps = Some(decimal(text)?),
            Means::PacingRate => self.requests.pacing_rate_bps = Some(decimal(text)?),
            Means::SetMss => {
                let whole: u32 = text.parse().ok()?;
                self.requests.mss_bytes = Some(whole.checked_sub(TIMESTAMP_BYTES)?);
            }
            Means::Window => {
                self.requests.window_bytes = Some(u32::try_from(binary(text)?).ok()?);
            }
            Means::Congestion => {
                self.requests.law = Some(LawRequest {
                    name: text.to_owned(),
                    parameters: vec![],
                });
            }
        }
        Some(())
    }

    fn finish(self) -> Result<Iperf3, String> {
        let port = self.port.unwrap_or(PORT);
        let (source, lasts) = match (self.is_server, self.is_udp) {
            (true, _) => return Ok(Iperf3::Server(port)),
            (false, true) => self.udp()?,
            (false, false) => self.tcp()?,
        };
        let client = Client {
            server: self.server.ok_or("iperf3: needs --client or --server")?,
            port,
            client_port: self.client_port,
            reverse: self.reverse,
            streams: self.streams.unwrap_or(1),
            lasts,
            source,
            requests: self.requests,
        };
        Ok(Iperf3::Client(Box::new(client)))
    }

    fn tcp(&self) -> Result<(Source, Option<Duration>), String> {
        if self.rate_bps.is_some_and(|rate_bps| rate_bps > 0) {
            return Err(
                "--bitrate without --udp: a program that holds back is not simulated; \
                        --fq-rate has the kernel pace"
                    .to_owned(),
            );
        }
        let block_bytes = self.block_bytes.unwrap_or(BLOCK_BYTES);
        let of_blocks = self.blocks.map(|blocks| blocks.saturating_mul(block_bytes));
        // iperf3 counts them for all streams together.
        let bytes = self.bytes.or(of_blocks);
        let bytes = bytes.map(|bytes| bytes.div_ceil(u64::from(self.streams.unwrap_or(1))));
        let lasts = match bytes {
            Some(_) => self.lasts,
            None => Some(self.lasts.unwrap_or(LASTS)),
        };
        let again = false;
        Ok((Source::Bulk { bytes, again }, lasts))
    }

    fn udp(&self) -> Result<(Source, Option<Duration>), String> {
        if self.bytes.or(self.blocks).is_some() {
            return Err("--bytes with --udp is not simulated; use --time".to_owned());
        }
        // Where nothing is said, iperf3 takes the segment of the control connection.
        let payload_bytes = self.block_bytes.unwrap_or(ETHERNET_MSS_BYTES.into());
        if !(16..=65_507).contains(&payload_bytes) {
            return Err("--length: 16 to 65507 bytes with --udp".to_owned());
        }
        let payload_bytes = payload_bytes as u32;
        let payload_rate_bps = match self.rate_bps.unwrap_or(UDP_RATE_BPS) {
            0 => {
                return Err(
                    "--bitrate 0 with --udp: as fast as a host can is not simulated".into(),
                );
            }
            rate_bps => rate_bps,
        };
        let source = Source::ConstantRate {
            rate_bps: udp_rate_bps(payload_rate_bps, payload_bytes),
            payload_bytes,
        };
        Ok((source, Some(self.lasts.unwrap_or(LASTS))))
    }
}

fn seconds(text: &str) -> Option<Duration> {
    let seconds: f64 = text.parse().ok()?;
    let is_possible = seconds > 0.0 && seconds <= MOST_SECONDS;
    is_possible.then(|| Duration::try_from_secs_f64(seconds).ok())?
}

/// `64K`, `1M`: 1024 and its powers, as iperf3 reads bytes.
fn binary(text: &str) -> Option<u64> {
    with_suffix(text, 1024)
}

/// `10M`: 1000 and its powers, as iperf3 reads rates.
fn decimal(text: &str) -> Option<u64> {
    with_suffix(text, 1000)
}

fn with_suffix(text: &str, base: u64) -> Option<u64> {
    let quantity = Quantity::split(text)?;
    let power = match quantity.unit {
        "" => 0,
        "k" | "K" => 1,
        "m" | "M" => 2,
        "g" | "G" => 3,
        "t" | "T" => 4,
        _ => return None,
    };
    u64::try_from(quantity.times(base.pow(power))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Iperf3, String> {
        let words = shlex::split(line).unwrap();
        iperf3(&words)
    }

    fn client(line: &str) -> Client {
        match read(line) {
            Ok(Iperf3::Client(client)) => *client,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn short_and_long_options_mean_the_same() {
        let long =
            client("/usr/bin/iperf3 --client 10.77.0.2 --time 20 --parallel=4 --reverse --json");
        let short = client("iperf3 -JRc10.77.0.2 -t 20 -P4 -i 0.5 -Z");
        assert_eq!(long, short);
        assert_eq!((long.streams, long.reverse), (4, true));
        assert_eq!(long.lasts, Some(Duration::from_secs(20)));
        assert_eq!(read("iperf3 -s -1 -p 5300"), Ok(Iperf3::Server(5300)));
    }

    #[test]
    fn sizes_are_binary_and_rates_decimal() {
        let tcp = client("iperf3 -c x -n 10M -w 64K -M 1400 -C fp_aimd --fq-rate 1G --cport 7");
        let bytes = Some(10 << 20);
        assert_eq!(
            tcp.source,
            Source::Bulk {
                bytes,
                again: false
            }
        );
        assert_eq!((tcp.lasts, tcp.client_port), (None, Some(7)));
        assert_eq!(tcp.requests.window_bytes, Some(65_536));
        assert_eq!(tcp.requests.mss_bytes, Some(1388));
        assert_eq!(tcp.requests.pacing_rate_bps, Some(1_000_000_000));
        assert_eq!(tcp.requests.law.unwrap().name, "fp_aimd");
        let udp = client("iperf3 -c x -u -b 10M -l 1000");
        let rate_bps = 10_280_000;
        let payload_bytes = 1000;
        assert_eq!(
            udp.source,
            Source::ConstantRate {
                rate_bps,
                payload_bytes
            }
        );
    }

    #[test]
    fn what_cannot_be_simulated_is_told_by_its_option() {
        let messages = [
            "ping -c 3 x",
            "iperf3 -c x --bidir",
            "iperf3 -c x -O 2",
            "iperf3 -c x -b 10M",
            "iperf3 -c x -u -b 0",
            "iperf3 -c x -P 0",
            "iperf3 -c x -t",
            "iperf3 -c x -t 86401",
            "iperf3 x",
            "iperf3 -J",
        ]
        .map(|line| read(line).unwrap_err());
        insta::assert_snapshot!(messages.join("\n"), @r#"
        ping: the simulator runs no programs but iperf3; write a [[flow]]
        --bidir: the simulator cannot do what this option of iperf3 asks for
        -O: the simulator cannot do what this option of iperf3 asks for
        --bitrate without --udp: a program that holds back is not simulated; --fq-rate has the kernel pace
        --bitrate 0 with --udp: as fast as a host can is not simulated
        -P 0 is not a value that the simulator takes
        -t: needs a value
        -t 86401 is not a value that the simulator takes
        "x" is not an option of iperf3
        iperf3: needs --client or --server
        "#);
    }
}
