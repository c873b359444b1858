// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath measure mesh`: the newest results between hosts that all test one another.

use super::DEFAULT_FILE;
use crate::archive::Place;
use crate::archive::time::now_us;
use anyhow::{Result, ensure};
use clap::Args;
use fatpath_daemon::measure::{mesh_grid, read_plan_file};
use fatpath_measure::Grid;
use fatpath_table::aligned;
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
    let now_us = now_us();
    let grids = plan.meshes.iter();
    let grids = grids.map(|mesh| mesh_grid(mesh, &*store, now_us));
    let grids = grids.collect::<Result<Vec<_>, _>>()?;
    let mut out = stdout().lock();
    if arguments.json {
        let meshes: Vec<_> = grids.iter().map(Grid::answer).collect();
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
