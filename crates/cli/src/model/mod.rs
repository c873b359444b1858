// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath model`: what theory expects of TCP on a path.

mod buffers;
mod catalogue;
mod given;
mod limits;
mod loss;
mod recovery;
mod throughput;
mod transfer;

use anyhow::Result;
use clap::Subcommand;
use fatpath_model::Outside;
use std::io::{Write, stdout};

pub const HELP: &str = "\
Every model has a range in which it holds; outside of it the value is printed with a note that says what the model
leaves out. docs/model.md has the formulas, their sources, and their errors against the simulator.

Examples:
  fatpath model throughput --rtt 100ms --loss 0.01% --law fp_scalable
  fatpath model throughput --rtt 100ms --loss 0.01% --rate 1gbit
  fatpath model loss --rtt 100ms --rate 1gbit
  fatpath model buffers --rtt 100ms --rate 1gbit --loss 0.1% --flows 100
  fatpath model recovery --rtt 200ms --rate 1gbit
  fatpath model transfer --bytes 2MB --rtt 100ms --rate 1gbit
  fatpath model limits --rate 100gbit --rtt 100ms
  fatpath model list";

#[derive(Subcommand)]
pub enum Command {
    /// Mean window and rate of each law under a loss rate
    #[command(after_help = throughput::HELP)]
    Throughput(throughput::Arguments),
    /// The loss rate up to which each law has a rate
    #[command(after_help = loss::HELP)]
    Loss(loss::Arguments),
    /// Buffers of the ends, and queues that keep the bottleneck busy
    #[command(after_help = buffers::HELP)]
    Buffers(buffers::Arguments),
    /// The time until each law has its window again after one loss
    #[command(after_help = recovery::HELP)]
    Recovery(recovery::Arguments),
    /// The mean time of a transfer, part by part
    #[command(after_help = transfer::HELP)]
    Transfer(transfer::Arguments),
    /// What window scale, sequence numbers and timestamps allow at a rate
    #[command(after_help = limits::HELP)]
    Limits(limits::Arguments),
    /// All models: source, range, error against the simulator
    List(catalogue::Arguments),
}

pub fn run(command: &Command) -> Result<()> {
    match command {
        Command::Throughput(arguments) => throughput::run(arguments),
        Command::Loss(arguments) => loss::run(arguments),
        Command::Buffers(arguments) => buffers::run(arguments),
        Command::Recovery(arguments) => recovery::run(arguments),
        Command::Transfer(arguments) => transfer::run(arguments),
        Command::Limits(arguments) => limits::run(arguments),
        Command::List(arguments) => catalogue::run(arguments),
    }
}

fn print_json(value: &serde_json::Value) -> Result<()> {
    Ok(writeln!(
        stdout(),
        "{}",
        serde_json::to_string_pretty(value)?
    )?)
}

/// Each note once: several laws may share a model.
fn print_notes<'o>(outside: impl Iterator<Item = &'o Outside>) {
    let mut told = Vec::new();
    for note in outside {
        let text = note.to_string();
        if !told.contains(&text) {
            eprintln!("note: {text}");
            told.push(text);
        }
    }
}

/// `14.2 Mb/s`, three digits.
fn show_rate(bps: f64) -> String {
    fatpath_units::show_rate(three_digits(bps) as u64)
}

/// `12.5 MB`, three digits.
fn show_bytes(bytes: f64) -> String {
    let bytes = three_digits(bytes) as u64;
    let units = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let unit = units.iter().find(|(size, _)| bytes as f64 >= *size);
    match unit {
        Some((size, name)) => format!("{} {name}", bytes as f64 / size),
        None => format!("{bytes} B"),
    }
}

/// `2.7 s`, `27.8 min`, `4.63 h`, `24.9 days`.
fn show_time(seconds: f64) -> String {
    let units = [(86_400.0, "days"), (3_600.0, "h"), (60.0, "min")];
    match units.iter().find(|(size, _)| seconds >= 2.0 * size) {
        Some((size, name)) => format!("{} {name}", three_digits(seconds / size)),
        None => fatpath_units::show_time(three_digits(seconds * 1e6) as u64),
    }
}

/// `122`, `17.2`, `8330`.
fn show_number(value: f64) -> String {
    match value.is_finite() {
        true => three_digits(value).to_string(),
        false => "-".to_owned(),
    }
}

/// `0.01 %`, without an exponent down to a billionth.
fn show_share(share: f64) -> String {
    let percent = three_digits(100.0 * share);
    match percent < 1e-7 && percent > 0.0 {
        true => format!("{percent:e} %"),
        false => format!("{percent} %"),
    }
}

/// Rounded to three significant digits.
fn three_digits(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    // Through text: a power of ten times an integer is no decimal fraction.
    format!("{value:.2e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_the_unit_that_fits() {
        assert_eq!(show_rate(14_185_432.0), "14.2 Mb/s");
        assert_eq!(show_bytes(12_499_999.0), "12.5 MB");
        assert_eq!(
            [0.0123, 2.68, 1_667.0, 16_980.0, 2.1e6].map(show_time),
            ["12.3 ms", "2.68 s", "27.8 min", "4.72 h", "24.3 days"]
        );
        assert_eq!(
            [122.47, 17.23, 8_333.3, f64::INFINITY].map(show_number),
            ["122", "17.2", "8330", "-"]
        );
        assert_eq!(
            [1e-4, 5.4e-9, 5.4e-11].map(show_share),
            ["0.01 %", "0.00000054 %", "5.4e-9 %"]
        );
    }
}
