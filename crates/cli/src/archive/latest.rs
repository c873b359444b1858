// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath archive latest`.

use crate::not_running::not_running;
use crate::observed::Observed;
use anyhow::{Context, Result};
use clap::Args;
use fatpath_api::endpoint::GetLatest;
use fatpath_api::{LatestQuery, LatestValue};
use fatpath_archive::Kind;
use fatpath_daemon::{Instance, client};
use fatpath_table::write_table;
use ipnet::IpNet;
use std::io::{BufWriter, Write, stdout};

pub const HELP: &str = "\
The daemon answers from its memory, also while the store is away: of each path
(a /24, of IPv6 a /48), and of each scheduled test, what it archived last since
it began.

Examples:
  fatpath archive latest
  fatpath archive latest 192.0.2.0/24 --kind flow
  fatpath archive latest --kind test --json";

#[derive(Args)]
pub struct Arguments {
    /// Only of peers in this prefix, or of the path of this address
    #[arg(value_name = "PREFIX", value_parser = super::path::prefix)]
    prefix: Option<IpNet>,
    /// Only of this kind: sample, event, flow, path, test or decision; may be repeated
    #[arg(long, value_name = "KIND")]
    kind: Vec<Kind>,
    /// Print a JSON object a line, with everything that is known of the event
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    of: Observed,
}

/// The most that the daemon answers at once.
const PAGE: usize = 1_000;

pub fn run(arguments: &Arguments) -> Result<()> {
    let values = ask(&arguments.of.instance()?, arguments)?;
    let mut out = BufWriter::new(stdout().lock());
    if arguments.json {
        for value in &values {
            writeln!(out, "{}", serde_json::to_string(value)?)?;
        }
    } else if values.is_empty() {
        writeln!(
            out,
            "Nothing that matches was archived since the daemon began."
        )?;
    } else {
        let header = ["OF", "TIME", "KIND", "NAME", "RULE", "VALUE"].map(str::to_owned);
        write_table(&mut out, header, values.iter().map(cells))?;
    }
    Ok(out.flush()?)
}

/// Page by page.
fn ask(instance: &Instance, arguments: &Arguments) -> Result<Vec<LatestValue>> {
    let kinds: Vec<&str> = arguments.kind.iter().map(|kind| kind.name()).collect();
    let mut query = LatestQuery {
        prefix: arguments.prefix.map(|prefix| prefix.to_string()),
        kinds: (!kinds.is_empty()).then(|| kinds.join(",")),
        limit: Some(PAGE),
        after: None,
    };
    let mut values = Vec::new();
    loop {
        let page = client::ask::<GetLatest>(&instance.socket(), &query)?;
        let page = page.with_context(|| not_running(instance))?;
        values.extend(page.values);
        if page.next.is_none() {
            return Ok(values);
        }
        query.after = page.next;
    }
}

fn cells(latest: &LatestValue) -> [String; 6] {
    let value = latest.value.map(|value| value.to_string());
    [
        latest.of.clone(),
        latest.time.clone(),
        latest.kind.clone(),
        latest.name.clone(),
        latest.rule.clone().unwrap_or_default(),
        value.unwrap_or_default(),
    ]
}
