// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath measure mesh`: the newest results between hosts that all test one another.

use super::DEFAULT_FILE;
use crate::archive::Place;
use crate::archive::time::now_us;
use anyhow::{Result, ensure};
use clap::Args;
use fatpath_archive::Kind;
use fatpath_archive::store::{Query, Store};
use fatpath_daemon::measure::read_plan_file;
use fatpath_measure::{Grid, Mesh};
use fatpath_table::aligned;
use serde_json::{Value, json};
use std::io::{Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

pub const HELP: &str = "\
Each [[mesh]] of the file names its hosts, and what each runs to each other one.
What they measured is in the archive: one for all hosts is a PostgreSQL server
(docs/archive.md). A row is of one host. What is older than three times `every`
is not shown.

Examples:
  fatpath measure mesh
  fatpath measure mesh ~/measure.toml --url postgres://fatpath@db.example/site \\
      --password-file /etc/fatpath/archive.password --json";

#[derive(Args)]
pub struct MeshArguments {
    /// File that lists the tests
    #[arg(default_value = DEFAULT_FILE)]
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Place,
}

pub fn run(arguments: &MeshArguments) -> Result<ExitCode> {
    let plan = read_plan_file(&arguments.file)?;
    let file = arguments.file.display();
    ensure!(!plan.meshes.is_empty(), "{file} has no [[mesh]]");
    let store = arguments.place.existing()?;
    let grids = plan.meshes.iter().map(|mesh| grid(mesh, &*store));
    let grids = grids.collect::<Result<Vec<_>>>()?;
    let mut out = stdout().lock();
    if arguments.json {
        let meshes: Vec<Value> = grids.iter().map(as_json).collect();
        writeln!(out, "{}", serde_json::to_string_pretty(&meshes)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    for grid in &grids {
        let mesh = grid.mesh();
        writeln!(out, "{}: {}", mesh.name, mesh.test.tool.name())?;
        write!(out, "{}", aligned(&grid.table(), 1))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn grid<'m>(mesh: &'m Mesh, store: &dyn Store) -> Result<Grid<'m>> {
    let now_us = now_us();
    let tests = Query {
        kinds: vec![Kind::Test],
        ..Query::between(now_us - 3 * mesh.test.every_us as i64, now_us)
    };
    let mut grid = Grid::of(mesh);
    for record in store.query(&tests)? {
        // Another fatpath may have other fields.
        if let Ok(outcome) = serde_json::from_str(&record.event.body) {
            grid.take(&record.origin.host, outcome);
        }
    }
    Ok(grid)
}

fn as_json(grid: &Grid<'_>) -> Value {
    let mesh = grid.mesh();
    json!({ "mesh": mesh.name, "tool": mesh.test.tool.name(), "hosts": mesh.hosts, "pairs": grid.pairs() })
}
