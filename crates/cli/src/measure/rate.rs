// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath measure rate`: the rate of a path's bottleneck, by packet trains to a responder.

use super::between::{WhomArguments, patience, time};
use super::print;
use anyhow::{Result, ensure};
use clap::Args;
use fatpath_measure::trains::rate_values;
use fatpath_measure::{Kind, Rate};
use fatpath_responder::{WantedRate, rate};
use fatpath_train::{Limits, Response, Train, Unusable};
use fatpath_units::{rate_bps, show_rate, show_time};
use std::io::{IsTerminal, stderr};
use std::process::ExitCode;
use std::time::Duration;

pub const HELP: &str = "\
Sends trains of packets for tens of milliseconds each, and sees how much slower
they arrive. All together are less data than a path of 8 Mb/s or more carries in
one second. The responder's file has to name this host as a peer, with
kinds = [\"rate\"]. docs/measure.md says what the values mean.

Example:
  fatpath measure rate dtn2 --most-rate 10gbit";

#[derive(Args)]
pub struct RateArguments {
    #[command(flatten)]
    whom: WhomArguments,
    /// Time after which no further train is sent; about 60 round trips and 3 s are enough
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time)]
    duration: Duration,
    /// Length of a packet, IP and UDP headers included; no longer than the path's MTU
    #[arg(long, value_name = "BYTES", default_value_t = Rate::SIZE_BYTES as u32, value_parser = clap::value_parser!(u32).range(576..=9000))]
    size: u32,
    /// How long the other host may wait until no other test loads its path
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = patience)]
    patience: Duration,
    /// Rate of the fastest train; the rate of a faster bottleneck cannot be measured
    #[arg(long, value_name = "RATE", default_value = "15gbit", value_parser = most_rate)]
    most_rate: u64,
}

pub fn most_rate(text: &str) -> Result<u64, String> {
    let bps = rate_bps(text).and_then(|bps| u64::try_from(bps).ok());
    let bps = bps.filter(|bps| Rate::MOST_RATES_BPS.contains(bps));
    bps.ok_or_else(|| "give a rate of 1mbit to 100gbit".to_owned())
}

pub fn run(arguments: &RateArguments) -> Result<ExitCode> {
    let duration = checked_duration(arguments.duration)?;
    let is_shown = stderr().is_terminal();
    let (found, mut outcome) = arguments.whom.ask(Kind::Rate, |whom| {
        let wanted = WantedRate {
            whom,
            duration,
            patience: arguments.patience,
            limits: Limits::between(arguments.most_rate, arguments.size),
        };
        rate(&wanted, |step| {
            if is_shown {
                eprintln!("{}", shown(step.number, step.train, &step.response));
            }
        })
    })?;
    outcome.values = rate_values(&found);
    print(outcome, arguments.whom.json)
}

pub fn checked_duration(duration: Duration) -> Result<Duration> {
    let allowed_us = Rate::DURATIONS_US;
    ensure!(
        allowed_us.contains(&(duration.as_micros() as u64)),
        "--duration is 1s to {}",
        show_time(*allowed_us.end())
    );
    Ok(duration)
}

/// What became of a train.
pub fn shown(number: u32, train: &Train, response: &Result<Response, Unusable>) -> String {
    let packets = train.packets;
    let became = match response {
        Ok(response) => format!(
            "{} arrived at {}",
            response.arrived_packets,
            show_rate(response.output_bps as u64)
        ),
        Err(why) => why.to_string(),
    };
    let rate = show_rate(train.rate_bps);
    format!("train {number}: {packets} packets at {rate}, {became}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_one_that_trains_may_have() {
        assert_eq!(most_rate("10gbit"), Ok(10_000_000_000));
        for wrong in ["10", "1kbit", "1tbit", "10GB"] {
            assert!(most_rate(wrong).is_err(), "{wrong}");
        }
    }
}
