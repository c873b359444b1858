// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath model list`.

use super::write_json;
use anyhow::Result;
use clap::Args;
use fatpath_model::{Bound, MODELS, Model};
use std::io::Write;

#[derive(Args)]
pub struct Arguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments, out: &mut impl Write) -> Result<()> {
    if arguments.json {
        return write_json(out, &serde_json::to_value(MODELS)?);
    }
    for model in MODELS {
        write_model(out, model)?;
    }
    Ok(())
}

fn write_model(out: &mut impl Write, model: &Model) -> Result<()> {
    writeln!(out, "{}", model.name)?;
    writeln!(out, "  {}", model.formula)?;
    writeln!(out, "  source: {}", model.source)?;
    writeln!(out, "  losses: {}", model.losses)?;
    for bound in model.range {
        writeln!(out, "  range: {}", range(bound))?;
    }
    if let Some(error) = model.sim_error {
        writeln!(
            out,
            "  error against the simulator: at most {:.0} %",
            100.0 * error
        )?;
    }
    Ok(())
}

/// An open end is not printed.
fn range(bound: &Bound) -> String {
    let Bound { of, min, max, .. } = bound;
    match max.is_finite() {
        true => format!("{} to {}", of.text(*min), of.text(*max)),
        false => format!("from {}", of.text(*min)),
    }
}
