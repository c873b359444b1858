// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath measure iperf3`: throughput to a host whose responder starts the server.

use super::between::{WhomArguments, patience, time};
use super::print;
use anyhow::{Result, ensure};
use clap::Args;
use fatpath_measure::server::DURATIONS_US;
use fatpath_measure::{Iperf3, Kind, Measured, Protocol, Values};
use fatpath_responder::{WantedThroughput, lossless_rate, throughput};
use fatpath_units::{bytes, rate_bps, show_rate, show_time};
use std::io::{IsTerminal, stderr};
use std::process::ExitCode;
use std::time::Duration;

pub const HELP: &str = "\
iperf3 has to be installed on both hosts. The other one's file has to name the
kind, kinds = [\"iperf3\"], and to allow what is sent: rate, bytes_a_day. Its
firewall has to let TCP port 5201 in (UDP, too, with --udp).

Examples:
  fatpath measure iperf3 dtn2
  fatpath measure iperf3 dtn2 --reverse --duration 20s --streams 4
  fatpath measure iperf3 dtn2 --udp --rate 900mbit --json
  fatpath measure iperf3 dtn2 --udp --rate 1gbit --lossless --duration 3s";

#[derive(Args)]
pub struct Iperf3Arguments {
    #[command(flatten)]
    whom: WhomArguments,
    /// How long data are sent
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    duration: Duration,
    /// Flows at once
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=128))]
    streams: u64,
    /// Of each flow [default: as fast as it goes, and as the other host allows; UDP: 1mbit]
    #[arg(long, value_parser = rate)]
    rate: Option<u64>,
    /// Congestion control of TCP [default: the kernel's]
    #[arg(long, value_name = "NAME")]
    congestion_control: Option<String>,
    /// Socket buffers [default: the kernel tunes them]
    #[arg(long, value_name = "BYTES", value_parser = size)]
    window: Option<u64>,
    /// Send UDP
    #[arg(long)]
    udp: bool,
    /// Search for the highest rate at which nothing is lost, up to --rate: some ten tests, each of --duration
    #[arg(long, requires_all = ["udp", "rate"], conflicts_with = "streams")]
    lossless: bool,
    /// The other host sends
    #[arg(long)]
    reverse: bool,
    /// How long the other host may wait until no other test loads its path
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = patience)]
    patience: Duration,
}

fn rate(text: &str) -> Result<u64, String> {
    let bps = rate_bps(text).and_then(|bps| u64::try_from(bps).ok());
    let bps = bps.filter(|bps| *bps >= 1000);
    bps.ok_or_else(|| "give a rate of 1kbit or more: 900mbit".to_owned())
}

fn size(text: &str) -> Result<u64, String> {
    let size = bytes(text).and_then(|size| u64::try_from(size).ok());
    size.filter(|size| *size > 0)
        .ok_or_else(|| "give a size: 4MiB".to_owned())
}

pub fn run(arguments: &Iperf3Arguments) -> Result<ExitCode> {
    // iperf3 sends for whole seconds.
    let duration_us = arguments.duration.as_secs_f64().ceil() as u64 * 1_000_000;
    ensure!(
        DURATIONS_US.contains(&duration_us),
        "--duration is 1s to {}",
        show_time(*DURATIONS_US.end())
    );
    let is_shown = stderr().is_terminal();
    let (measured, mut outcome) = arguments.whom.ask(Kind::Iperf3, |whom| {
        let wanted = WantedThroughput {
            whom,
            iperf3: arguments.iperf3(),
            duration_us,
            patience: arguments.patience,
        };
        match arguments.lossless {
            false => throughput(&wanted),
            true => lossless_rate(wanted, |rate_bps, values| {
                if is_shown {
                    eprintln!("{}", shown(rate_bps, values));
                }
            })
            .map(Measured::from),
        }
    })?;
    outcome.values = measured.values;
    outcome.flows = measured.flows;
    print(outcome, arguments.whom.json)
}

/// A run of a search.
fn shown(rate_bps: u64, values: &Values) -> String {
    let loss = values.get("loss").map_or(0.0, |(share, _)| *share);
    format!("{}: {:.3} % lost", show_rate(rate_bps), loss * 100.0)
}

impl Iperf3Arguments {
    fn iperf3(&self) -> Iperf3 {
        Iperf3 {
            port: Iperf3::PORT,
            asked: None,
            protocol: if self.udp {
                Protocol::Udp
            } else {
                Protocol::Tcp
            },
            streams: self.streams,
            congestion_control: self.congestion_control.clone(),
            rate_bps: self.rate,
            window_bytes: self.window,
            reverse: self.reverse,
        }
    }
}
