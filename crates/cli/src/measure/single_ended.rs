// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath measure single-ended`: the rate of the path to a host without fatpath, by packet trains that its kernel answers.

use super::between::time;
use super::rate::{checked_duration, most_rate, shown};
use super::{new_outcome, print};
use anyhow::Result;
use clap::{Args, ValueEnum};
use fatpath_measure::SingleEnded;
use fatpath_measure::trains::single_ended_values;
use fatpath_perform::{WantedSingleEnded, resolve, single_ended};
use fatpath_probe::answered::Method;
use fatpath_train::Limits;
use std::io::{IsTerminal, stderr};
use std::process::ExitCode;
use std::time::{Duration, Instant};

pub const HELP: &str = "\
Nothing of fatpath runs at the other end: its kernel answers packets, and the
spacing of the answers gives the rate. By icmp the answers are as long as the
packets, so that the slower of both ways is seen; by tcp they are short, and the
way there is seen. The port should be a closed one. All trains together are less
data than a path of 8 Mb/s or more carries in one second. Ask only hosts that you
may load so. docs/measure.md says what can be known from one end, and what not.

Examples:
  fatpath measure single-ended 192.0.2.10
  fatpath measure single-ended 192.0.2.10 --method tcp --most-rate 1gbit --json";

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    /// Echo requests
    Icmp,
    /// Segments that belong to no connection, answered by RST
    Tcp,
}

#[derive(Args)]
pub struct SingleEndedArguments {
    /// Host that answers: a name or an address
    host: String,
    /// What it is to answer
    #[arg(long, value_enum, default_value = "icmp")]
    method: Kind,
    /// Port of TCP to which segments are sent
    #[arg(long, default_value_t = SingleEnded::PORT, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// Time after which no further train is sent; about 60 round trips and 3 s are enough
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time)]
    duration: Duration,
    /// Length of a packet, IP header included; the path's MTU, where that is less
    #[arg(long, value_name = "BYTES", default_value_t = SingleEnded::SIZE_BYTES as u32, value_parser = clap::value_parser!(u32).range(576..=9000))]
    size: u32,
    /// Rate of the fastest train; the rate of a faster bottleneck cannot be measured
    #[arg(long, value_name = "RATE", default_value = "10gbit", value_parser = most_rate)]
    most_rate: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &SingleEndedArguments) -> Result<ExitCode> {
    let method = match arguments.method {
        Kind::Icmp => Method::Icmp,
        Kind::Tcp => Method::Tcp(arguments.port),
    };
    let wanted = WantedSingleEnded {
        duration: checked_duration(arguments.duration)?,
        peer: resolve(&arguments.host)?.0,
        method,
        limits: Limits::between(arguments.most_rate, arguments.size),
    };
    let mut outcome = new_outcome("single_ended", &arguments.host);
    let (begun, is_shown) = (Instant::now(), stderr().is_terminal());
    let found = single_ended(&wanted, |number, train, response| {
        if is_shown {
            eprintln!("{}", shown(number, train, response));
        }
    })?;
    outcome.duration_s = begun.elapsed().as_secs_f64();
    outcome.values = single_ended_values(&found, method == Method::Icmp);
    print(outcome, arguments.json)
}
