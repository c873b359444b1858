// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath model recovery`.

use super::given::{RateOptions, kernel_name};
use super::{print_notes, show_bytes, show_number, show_share, show_time, write_json};
use anyhow::{Context, Result};
use clap::Args;
use fatpath_cc::Law;
use fatpath_model::{Quantity, recovery};
use fatpath_table::write_table;
use serde_json::{Value, json};
use std::io::Write;

pub const HELP: &str = "\
One segment is lost when the window just fills the path at the given rate. A law
for which no time is printed does not reduce its window at one loss.

Examples:
  fatpath model recovery --rtt 200ms --rate 1gbit
  fatpath model recovery --rtt 100ms --rate 10gbit --law fp_scalable \\
    --set a=0.02 --set b=0.25 --json";

#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    of: RateOptions,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

struct Row {
    law: Law,
    given_up: Option<f64>,
    growth_round_trips: Option<f64>,
    recovery_s: Option<f64>,
}

pub fn run(arguments: &Arguments, out: &mut impl Write) -> Result<()> {
    let path = arguments.of.path();
    let window_pkts = path.bdp_pkts().context("the path has a rate")?;
    let laws = arguments.of.laws()?;
    let rows: Vec<Row> = laws
        .iter()
        .map(|law| row(law, window_pkts, path.rtt_s))
        .collect();
    let outside = recovery::MODEL.outside(&[(Quantity::WindowPkts, window_pkts)]);
    let first_bytes = recovery::first_second_bytes(path.mss_bytes, path.rtt_s);
    if arguments.json {
        return write_json(
            out,
            &json!({
                "window_pkts": window_pkts,
                "first_second_bytes": first_bytes,
                "laws": rows.iter().map(row_json).collect::<Vec<Value>>(),
                "outside": outside,
            }),
        );
    }
    let header = ["law", "window", "given up", "growth, round trips", "time"].map(str::to_owned);
    write_table(out, header, rows.iter().map(|row| cells(row, window_pkts)))?;
    writeln!(
        out,
        "one segment more each round trip adds {} in the first second",
        show_bytes(first_bytes)
    )?;
    print_notes(outside.iter());
    Ok(())
}

fn row(law: &Law, window_pkts: f64, rtt_s: f64) -> Row {
    Row {
        law: *law,
        given_up: recovery::given_up(law, window_pkts),
        growth_round_trips: recovery::growth_round_trips(law, window_pkts, rtt_s),
        recovery_s: recovery::recovery_s(law, window_pkts, rtt_s),
    }
}

fn cells(row: &Row, window_pkts: f64) -> [String; 5] {
    let or_none = |text: Option<String>| text.unwrap_or("-".to_owned());
    [
        kernel_name(&row.law),
        show_number(window_pkts),
        or_none(row.given_up.map(show_share)),
        or_none(row.growth_round_trips.map(show_number)),
        or_none(row.recovery_s.map(show_time)),
    ]
}

fn row_json(row: &Row) -> Value {
    json!({
        "law": kernel_name(&row.law),
        "parameters": row.law.to_string(),
        "given_up": row.given_up,
        "growth_round_trips": row.growth_round_trips,
        "recovery_s": row.recovery_s,
    })
}
