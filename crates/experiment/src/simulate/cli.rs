// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath sim`: words and exit codes only.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread::available_parallelism;

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use fatpath_scenario::MOST_REPEATS;

use super::models::lines;
use super::{CaseModels, How, Simulator};
use crate::load;
use crate::print::{print_json, print_lines};
use crate::report::{exit_code, list_runs, outcome_lines};
use crate::results::Row;
use crate::run::{self, Choice, Options, ScenarioError, Shard};

/// Arguments of `sim`.
#[derive(Debug, Args)]
#[command(after_help = "\
The scenario is that of `lab run`; no root is needed. Started again with the
same --out, an interrupted command continues where it stopped. The results are
the same for any --jobs.

Several machines share a sweep by --shard: each makes one part of the runs, in a
folder of its own, and --merge joins the parts into what one command would have
written. All of them need the same file, the same build of fatpath and the same
--path, --variant, --vary, --repeats and --seed.

Examples:
  fatpath sim experiments/agreement.toml
  fatpath sim experiments/demo.toml --path lossy --variant tuned --repeats 5
  fatpath sim experiments/agreement.toml --jobs 1 --seed 7 --out out/other-seed
  fatpath sim experiments/agreement.toml --model
  fatpath sim experiments/agreement.toml --shard 2/4 --out out/parts/2
  fatpath sim experiments/agreement.toml --merge out/parts/* \\
    --out out/agreement-sim
  parallel fatpath sim experiments/agreement.toml --jobs 1 --shard {}/8 \\
    --out out/parts/{} ::: $(seq 8)
  sbatch --array=1-4 packaging/slurm/sweep.sbatch experiments/agreement.toml \\
    out/agreement")]
pub struct Simulate {
    /// Scenario file (TOML)
    file: PathBuf,
    /// Folder of the results [default: out/NAME-sim; with --shard out/NAME-sim-K-of-N]
    #[arg(long)]
    out: Option<PathBuf>,
    /// Make only the K-th of N equal parts of the runs, K from 1
    #[arg(long, value_name = "K/N")]
    shard: Option<Shard>,
    /// Make no runs, but join the parts in these folders
    #[arg(long, value_name = "DIR", num_args = 1.., conflicts_with_all = ["shard", "jobs", "list"])]
    merge: Vec<PathBuf>,
    #[command(flatten)]
    choice: Choice,
    /// How often each case runs, instead of the scenario's `repeats`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_REPEATS)))]
    repeats: Option<u32>,
    /// Seed of the random numbers, instead of the scenario's, which the lab uses too
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Runs at a time [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
    /// Delete the earlier runs with their tables and plots, and start again
    #[arg(long)]
    fresh: bool,
    /// List the runs in their order, and run nothing
    #[arg(long)]
    list: bool,
    /// Print what models of TCP expect of each case, too (docs/model.md)
    #[arg(long, conflicts_with = "list")]
    model: bool,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
    /// Print no progress
    #[arg(long)]
    quiet: bool,
}

impl Simulate {
    /// Does it. The exit status is 0, 1 if a run failed, 130 after Ctrl-C.
    ///
    /// # Errors
    /// What the command could not do, with the remedy where there is one.
    pub fn run(self) -> Result<ExitCode> {
        let mut scenario = load(&self.file)?;
        let experiment = &mut scenario.experiment;
        experiment.repeats = self.repeats.unwrap_or(experiment.repeats);
        let folder = || default_folder(&scenario.name, self.shard);
        let options = Options {
            choice: self.choice,
            shard: self.shard,
            out: self.out.unwrap_or_else(folder),
            fresh: self.fresh,
            quiet: self.quiet,
        };
        let in_file = |error: ScenarioError| error.in_file(&self.file);
        let how = How {
            jobs: jobs(self.jobs),
            seed: self.seed,
        };
        let simulator = Simulator::of(&scenario, how).map_err(in_file)?;
        if self.list {
            let names = run::names(&simulator, &options).map_err(in_file)?;
            return list_runs(&names, self.json);
        }
        let outcome = match &self.merge[..] {
            [] => run::run(&simulator, &options),
            parts => run::merge(&simulator, &options, parts),
        };
        let outcome = outcome.map_err(in_file)?;
        if let (Some(shard), []) = (options.shard, &outcome.runs[..]) {
            eprintln!("fatpath: warning: part {shard} is empty: there are fewer runs than parts");
        }
        let models = self.model.then(|| simulator.models(&outcome.rows()));
        match (self.json, &models) {
            (true, None) => print_json(&outcome.rows())?,
            (true, Some(models)) => print_json(&WithModels {
                runs: outcome.rows(),
                models,
            })?,
            (false, None) => print_lines(&outcome_lines(&outcome))?,
            (false, Some(models)) => {
                print_lines(&[outcome_lines(&outcome), lines(models)].concat())?;
            }
        }
        Ok(exit_code(&outcome))
    }
}

/// What `--json` prints with `--model`.
#[derive(Serialize)]
struct WithModels<'m> {
    runs: Vec<Row>,
    models: &'m [CaseModels],
}

fn default_folder(scenario: &str, shard: Option<Shard>) -> PathBuf {
    let part = shard.map(|Shard { index, count }| format!("-{index}-of-{count}"));
    Path::new("out").join(format!("{scenario}-sim{}", part.unwrap_or_default()))
}

/// As many as were asked for, or as there are processors.
pub fn jobs(asked: Option<u32>) -> usize {
    let processors = || available_parallelism().map_or(1, usize::from);
    asked.map_or_else(processors, |jobs| jobs as usize)
}
