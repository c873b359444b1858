// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath model`: what theory expects of TCP on a path, as tables, JSON and figures.
//!
//! It computes nothing itself: the models are `fatpath-model`'s. Here is what is asked of them, and how the answers are
//! printed. Start at [`run`].

mod buffers;
mod catalogue;
mod curves;
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

pub use given::{loss, rate_bps};

/// Below the commands in `--help`.
pub const HELP: &str = "\
Every model has a range in which it holds; outside of it the value is printed
with a note that says what the model leaves out. docs/model.md has the formulas,
their sources, and their errors.

Examples:
  fatpath model throughput --rtt 100ms --loss 0.01% --law fp_scalable
  fatpath model throughput --rtt 100ms --loss 0.01% --rate 1gbit
  fatpath model loss --rtt 100ms --rate 1gbit
  fatpath model buffers --rtt 100ms --rate 1gbit --loss 0.1% --flows 100
  fatpath model recovery --rtt 200ms --rate 1gbit
  fatpath model transfer --bytes 2MB --rtt 100ms --rate 1gbit
  fatpath model limits --rate 100gbit --rtt 100ms
  fatpath model list";

/// Commands of `model`.
#[derive(Subcommand)]
pub enum Command {
    /// Mean window and rate of each law under a loss rate
    #[command(after_help = throughput::HELP)]
    Throughput(throughput::Arguments),
    /// The loss rate up to which each law reaches a given rate
    #[command(after_help = loss::HELP)]
    Loss(loss::Arguments),
    /// Buffers of the ends, and queues that keep the bottleneck busy
    #[command(after_help = buffers::HELP)]
    Buffers(buffers::Arguments),
    /// The time that each law needs to regain its window after one loss
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

/// Prints what is asked for.
///
/// # Errors
/// If a law or its parameter is not known, or a figure cannot be written.
pub fn run(command: &Command) -> Result<()> {
    write(command, &mut stdout().lock())
}

fn write(command: &Command, out: &mut impl Write) -> Result<()> {
    match command {
        Command::Throughput(arguments) => throughput::run(arguments, out),
        Command::Loss(arguments) => loss::run(arguments, out),
        Command::Buffers(arguments) => buffers::run(arguments, out),
        Command::Recovery(arguments) => recovery::run(arguments, out),
        Command::Transfer(arguments) => transfer::run(arguments, out),
        Command::Limits(arguments) => limits::run(arguments, out),
        Command::List(arguments) => catalogue::run(arguments, out),
    }
}

fn write_json(out: &mut impl Write, value: &serde_json::Value) -> Result<()> {
    Ok(writeln!(out, "{}", serde_json::to_string_pretty(value)?)?)
}

/// Each note once: several laws may share a model.
fn print_notes<'o>(outside: impl Iterator<Item = &'o Outside>) {
    let mut told = Vec::new();
    for note in outside {
        let text = note.to_string();
        if !told.contains(&text) {
            eprintln!("fatpath: note: {text}");
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
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(subcommand)]
        command: Command,
    }

    /// What is printed for `fatpath model LINE`.
    fn printed(line: &str) -> String {
        let words = std::iter::once("model").chain(line.split(' '));
        let line = Line::try_parse_from(words).unwrap();
        let mut out = Vec::new();
        write(&line.command, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn printed_json(line: &str) -> serde_json::Value {
        serde_json::from_str(&printed(&format!("{line} --json"))).unwrap()
    }

    #[test]
    fn throughput_has_a_row_for_each_model_of_the_law() {
        let text = printed("throughput --rtt 100ms --loss 0.01% --law fp_scalable");
        assert_eq!(
            text,
            "law          model     losses  window  rate       limit\n\
             fp_scalable  scalable  any     749     86.8 Mb/s  loss\n"
        );
        let all = printed("throughput --rtt 100ms --loss 0.01% --rate 1gbit");
        assert_eq!(all.lines().count(), 12);
        assert!(all.lines().all(|line| line.len() <= 80), "{all}");
    }

    #[test]
    fn rates_are_drawn_over_loss() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("rates.svg");
        let line = format!(
            "throughput --rtt 100ms --loss 0.01% --plot {}",
            file.display()
        );
        printed(&line);
        let svg = std::fs::read_to_string(file).unwrap();
        assert!(svg.contains("fp_scalable") && !svg.contains("fp_bbr"));
        assert!(
            Line::try_parse_from("model throughput --rtt 1s --loss 1% --plot a.gif".split(' '))
                .is_err()
        );
    }

    /// Seed 002: 10 Gb/s, 200 ms: 5.4e-11, and 2.7 s against 4 h 43 min.
    #[test]
    fn kelly_s_last_line() {
        let loss = printed_json("loss --rtt 200ms --rate 10gbit --law reno");
        let supported = loss["models"][0]["loss"].as_f64().unwrap();
        assert!((supported / 5.4e-11 - 1.0).abs() < 0.01, "{supported}");
        let text = printed("recovery --rtt 200ms --rate 10gbit");
        assert!(text.contains("4.63 h") && text.contains("2.88 s"), "{text}");
    }

    #[test]
    fn a_transfer_and_its_buffers() {
        let transfer = printed_json("transfer --bytes 2MB --rtt 100ms --rate 1gbit");
        assert!((transfer["mean_s"].as_f64().unwrap() - 0.9).abs() < 1e-9);
        let buffers = printed("buffers --rtt 100ms --rate 1gbit --loss 0.1% --flows 100");
        assert!(
            buffers.contains("window          43.8 MB  3.5 "),
            "{buffers}"
        );
        assert!(buffers.lines().all(|line| line.len() <= 80), "{buffers}");
    }

    #[test]
    fn what_tcp_has_no_window_for_is_said() {
        let text = printed("limits --rate 100gbit --rtt 100ms");
        assert!(text.contains("more than TCP has"), "{text}");
        let json = printed_json("limits --rate 1gbit --rtt 100ms");
        assert_eq!(json["window_scale"], 8);
    }

    #[test]
    fn outside_of_its_range_a_model_says_why() {
        let all = printed_json("throughput --rtt 100ms --loss 20% --law reno");
        let outside = all[0]["outside"].as_array().unwrap();
        assert_eq!(outside[1]["of"], "loss");
    }

    #[test]
    fn a_law_without_its_parameter_is_refused() {
        for line in ["--law nothing", "--law aimd --set c=1", "--law bbr"] {
            let words = format!("model throughput --rtt 100ms --loss 0.01% {line}");
            let line = Line::try_parse_from(words.split(' ')).unwrap();
            assert!(write(&line.command, &mut Vec::new()).is_err());
        }
    }

    #[test]
    fn every_model_is_listed() {
        let text = printed("list");
        for model in fatpath_model::MODELS {
            assert!(text.contains(model.name) && text.contains(model.source));
        }
    }

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
