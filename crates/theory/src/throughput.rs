// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath model throughput`.

use super::curves;
use super::given::{self, LawOptions, PathOptions, kernel_name};
use super::{print_notes, show_number, show_rate, write_json};
use anyhow::{Result, bail};
use clap::Args;
use fatpath_cc::Law;
use fatpath_model::Path;
use fatpath_model::throughput::{Expected, Limit, of_law};
use fatpath_table::write_table;
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;

pub const HELP: &str = "\
A law may have several models: they differ in how they take losses to be spread,
and in whether they include timeouts. `limit` is what bounds the rate: loss, the
path's rate, or the window that buffers allow.

Examples:
  fatpath model throughput --rtt 100ms --loss 0.01% --law fp_scalable
  fatpath model throughput --rtt 80ms --loss 0.004% --law fp_aimd --set a=4 \\
    --set b=0.125
  fatpath model throughput --rtt 100ms --loss 0.01% --rate 1gbit \\
    --max-window 6MB --streams 4
  fatpath model throughput --rtt 100ms --loss 0.01% --rate 10gbit \\
    --plot rates.png";

#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    path: PathOptions,
    /// Share of the segments that are lost: 0.01%
    #[arg(long, value_name = "SHARE", value_parser = given::loss)]
    loss: f64,
    /// Rate of the bottleneck, in bits of IP packets: 1gbit
    #[arg(long, value_name = "RATE", value_parser = given::rate_bps)]
    rate: Option<f64>,
    /// Largest window that the buffers allow: 6MB
    #[arg(long, value_name = "SIZE", value_parser = given::bytes)]
    max_window: Option<f64>,
    /// Number of parallel flows; the rate is that of all together
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    streams: u32,
    #[command(flatten)]
    laws: LawOptions,
    /// Draw the rates of the laws over all loss rates: FILE.png or FILE.svg
    #[arg(long, value_name = "FILE", value_parser = given::picture)]
    plot: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments, out: &mut impl Write) -> Result<()> {
    let path = Path {
        max_window_pkts: arguments
            .max_window
            .map(|size| size / f64::from(arguments.path.mss)),
        ..arguments.path.path(arguments.loss, arguments.rate)
    };
    let laws = arguments.laws.laws()?;
    let of = |law: &Law| {
        of_law(law, &path, arguments.streams)
            .into_iter()
            .map(|one| (*law, one))
            .collect()
    };
    let rows: Vec<(Law, Expected)> = laws.iter().flat_map::<Vec<_>, _>(of).collect();
    if rows.is_empty() {
        bail!(
            "{}: its model needs the path's --rate",
            kernel_name(&laws[0])
        );
    }
    if let Some(file) = &arguments.plot {
        curves::write(file, &laws, &path, arguments.streams)?;
    }
    if arguments.json {
        return write_json(out, &rows.iter().map(row_json).collect());
    }
    let header = ["law", "model", "losses", "window", "rate", "limit"].map(str::to_owned);
    write_table(out, header, rows.iter().map(row))?;
    print_notes(rows.iter().flat_map(|(_, expected)| &expected.outside));
    Ok(())
}

fn row((law, expected): &(Law, Expected)) -> [String; 6] {
    [
        kernel_name(law),
        expected.model.name.to_owned(),
        expected.model.losses.to_string(),
        show_number(expected.window_pkts),
        expected.rate_bps.map_or("-".to_owned(), show_rate),
        limit(expected.limit).to_owned(),
    ]
}

fn limit(limit: Limit) -> &'static str {
    match limit {
        Limit::Loss => "loss",
        Limit::Rate => "rate",
        Limit::Window => "window",
        Limit::None => "-",
    }
}

fn row_json((law, expected): &(Law, Expected)) -> Value {
    json!({
        "law": kernel_name(law),
        "parameters": law.to_string(),
        "model": expected.model.name,
        "losses": expected.model.losses,
        // Without loss there is none.
        "window_pkts": expected.window_pkts.is_finite().then_some(expected.window_pkts),
        "rate_bps": expected.rate_bps,
        "limit": expected.limit,
        "sim_error": expected.model.sim_error,
        "outside": expected.outside,
    })
}
