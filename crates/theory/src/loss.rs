// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath model loss`.

use super::given::{RateOptions, kernel_name};
use super::{print_notes, show_number, show_share, show_time, write_json};
use anyhow::{Context, Result, bail};
use clap::Args;
use fatpath_cc::Law;
use fatpath_model::throughput::losses_of_window;
use fatpath_model::{Model, Outside, Quantity};
use fatpath_table::write_table;
use serde_json::{Value, json};
use std::io::Write;

pub const HELP: &str = "\
The loss rate at which a law's mean rate is the given one: with less loss, the law
is faster.

Examples:
  fatpath model loss --rtt 200ms --rate 10gbit --law fp_reno   # Kelly (2003)
  fatpath model loss --rtt 100ms --rate 1gbit
  fatpath model loss --rtt 100ms --rate 1gbit --law fp_cubic --json";

#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    of: RateOptions,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A model of a law, and the loss rate at which it has the window.
struct Row {
    law: Law,
    model: &'static Model,
    loss: Option<f64>,
    every_s: Option<f64>,
    outside: Vec<Outside>,
}

pub fn run(arguments: &Arguments, out: &mut impl Write) -> Result<()> {
    let path = arguments.of.path();
    let window_pkts = path.bdp_pkts().context("the path has a rate")?;
    let of = |law: &Law| -> Vec<Row> {
        let losses = losses_of_window(law, &path, window_pkts).into_iter();
        let row = |(model, loss): (&'static Model, Option<f64>)| Row {
            law: *law,
            model,
            loss,
            every_s: loss.map(|loss| path.rtt_s / (loss * window_pkts)),
            outside: outside(model, loss, window_pkts),
        };
        losses.map(row).collect()
    };
    let laws = arguments.of.laws()?;
    let rows: Vec<Row> = laws.iter().flat_map(of).collect();
    if rows.is_empty() {
        let name = kernel_name(&laws[0]);
        bail!(
            "{name}: its rate does not follow from the loss rate; see `fatpath model throughput`"
        );
    }
    if arguments.json {
        let rows: Vec<Value> = rows.iter().map(row_json).collect();
        return write_json(out, &json!({ "window_pkts": window_pkts, "models": rows }));
    }
    let header = [
        "law",
        "model",
        "losses",
        "window",
        "loss rate",
        "a loss every",
    ]
    .map(str::to_owned);
    let cells = rows.iter().map(|row| cells(row, window_pkts));
    write_table(out, header, cells)?;
    print_notes(rows.iter().flat_map(|row| &row.outside));
    Ok(())
}

fn outside(model: &Model, loss: Option<f64>, window_pkts: f64) -> Vec<Outside> {
    let mut asked = vec![(Quantity::WindowPkts, window_pkts)];
    asked.extend(loss.map(|loss| (Quantity::Loss, loss)));
    model.outside(&asked)
}

fn cells(row: &Row, window_pkts: f64) -> [String; 6] {
    [
        kernel_name(&row.law),
        row.model.name.to_owned(),
        row.model.losses.to_string(),
        show_number(window_pkts),
        row.loss.map_or("-".to_owned(), show_share),
        row.every_s.map_or("-".to_owned(), show_time),
    ]
}

fn row_json(row: &Row) -> Value {
    json!({
        "law": kernel_name(&row.law),
        "parameters": row.law.to_string(),
        "model": row.model.name,
        "losses": row.model.losses,
        "loss": row.loss,
        "every_s": row.every_s,
        "sim_error": row.model.sim_error,
        "outside": row.outside,
    })
}
