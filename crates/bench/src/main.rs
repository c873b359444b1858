// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program behind `make bench`: measures the figures that the project promises and
//! writes them to one JSON file, a row a figure.
//!
//! It judges nothing beyond printing a goal beside a value: a missed goal is no failure,
//! a figure that could not be measured is. What a figure is and how it is measured stands
//! in its own file under `figures`; start there, at [`figures::FIGURES`].

mod figure;
mod figures;
mod results;
mod table;

use anyhow::{Context, Result, bail};
use clap::Parser;
use clap::builder::PossibleValuesParser;
use fatpath_harness::{
    alone, bpf_stats, captured, cluster, compared, connect_loop, cpu_time, crowd, emulated, group,
    instance, killed_writer, lab, loaded, memory, one_processor, peer, printed, run, simulated,
    sshd, transfer, tun_host, wire,
};
use figure::Figure;
use figures::FIGURES;
use results::{Results, Row};
use run::Run;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Measures what fatpath costs and what it reaches, on the real kernel
#[derive(Parser)]
#[command(name = "fatpath-bench", version, after_help = EXAMPLES)]
struct Arguments {
    /// Figures to measure [default: all]
    #[arg(value_name = "NAME", value_parser = PossibleValuesParser::new(names()))]
    names: Vec<String>,
    /// List the figures and their goals, measure nothing
    #[arg(long)]
    list: bool,
    /// Results, one row a figure; rows of figures that are not measured stay
    #[arg(long, value_name = "FILE", default_value = "out/bench/results.json")]
    out: PathBuf,
    /// How long the figures `load.*` open connections
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    load_seconds: u64,
    /// Only simulate so many flows at once: what `sim.bytes_per_flow` runs in a process of its own
    #[arg(long, value_name = "FLOWS", hide = true)]
    simulate_flows: Option<usize>,
    /// Only hold so many connections until the end of the input: what makes a crowd
    #[arg(long, value_name = "CONNECTIONS", hide = true)]
    hold_connections: Option<usize>,
    /// Only write to an archive until somebody kills it: what `archive.lost_or_doubled` kills
    #[arg(long, hide = true)]
    write_until_killed: bool,
}

const EXAMPLES: &str = "\
Examples:
  fatpath-bench                                all figures, more than an hour, as root
  fatpath-bench emulator.unshaped_gbps         one
  fatpath-bench --list
  fatpath-bench --out /tmp/here.json tune.connect_rate_ratio

It uses the `fatpath` beside it, needs iperf3, and waits for tests that run on
this host. Exit status: 0, also when a goal is missed; 1 a figure could not be
measured; 2 wrong usage.";

fn names() -> impl Iterator<Item = &'static str> {
    FIGURES.iter().map(|figure| figure.name)
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.list {
        print!("{}", table::of_goals(&FIGURES));
        return ExitCode::SUCCESS;
    }
    let done = match (arguments.simulate_flows, arguments.hold_connections) {
        (Some(flows), _) => figures::simulate_flows(flows),
        (None, Some(count)) => crowd::hold_connections(count),
        (None, None) if arguments.write_until_killed => killed_writer::write_until_killed(),
        (None, None) => measure(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fatpath-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Each row is written as soon as it is known; one figure's failure does not stop the others.
fn measure(arguments: &Arguments) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!("run as root: namespaces and BPF programs need it");
    }
    let run = Run::new(Duration::from_secs(arguments.load_seconds))?;
    let mut results = Results::open(&arguments.out)?;
    let mut rows = Vec::new();
    let mut failed = Vec::new();
    for figure in asked(&arguments.names) {
        run.check()?;
        match row(&run, figure) {
            Ok(row) => {
                results.replace(row.clone())?;
                rows.push((figure, row));
            }
            Err(error) => {
                eprintln!("{}: {error:#}", figure.name);
                failed.push(figure.name);
            }
        }
    }
    if !rows.is_empty() {
        print!("{}", table::of_rows(&rows));
    }
    match failed.is_empty() {
        true => Ok(()),
        false => bail!("not measured: {}", failed.join(", ")),
    }
}

fn asked(names: &[String]) -> impl Iterator<Item = &'static Figure> {
    let is_asked = |figure: &&Figure| names.is_empty() || names.iter().any(|n| n == figure.name);
    FIGURES.iter().copied().filter(is_asked)
}

fn row(run: &Run, figure: &Figure) -> Result<Row> {
    run.say(format!("{}: {}", figure.name, figure.what));
    run.say_load()?;
    let samples = (figure.measure)(run)?;
    let value = figure.summary.of(&samples).context("no samples")?;
    Ok(Row {
        name: figure.name.to_owned(),
        value,
        unit: figure.unit.to_owned(),
        better: figure.better,
        samples,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn no_name_is_all_and_a_name_is_one() {
        assert_eq!(asked(&[]).count(), FIGURES.len());
        let one: Vec<_> = asked(&[FIGURES[1].name.to_owned()]).collect();
        assert_eq!(one.len(), 1);
        assert_eq!(one[0].name, FIGURES[1].name);
    }
}
