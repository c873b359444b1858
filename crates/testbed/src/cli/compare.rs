// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath lab compare`: words and exit codes only.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use fatpath_experiment::compare::{Compared, compared, plots, table};
use fatpath_experiment::load;
use fatpath_experiment::print::{print_json, print_lines};
use fatpath_experiment::report::INTERRUPTED;
use fatpath_experiment::results::files::{self, WriteError};
use fatpath_experiment::results::{Row, Run};
use fatpath_experiment::run::{Choice, Maker, Options, Repeats, ScenarioError, earlier};
use fatpath_experiment::simulate::cli::jobs;
use fatpath_experiment::simulate::{How, Simulator, without_warm_up};
use fatpath_scenario::Scenario;

use crate::lab;
use crate::run::{self, detection};

/// Arguments of `lab compare`.
#[derive(Debug, Args)]
#[command(after_help = "\
Makes the runs that are missing, in OUT/lab on the real kernel (as root) and in
OUT/sim in the simulator. With --lab-out or --sim-out, the runs of that side are
taken from an earlier command, and no new ones are made.

Examples:
  fatpath lab compare experiments/agreement.toml
  fatpath lab compare experiments/agreement.toml --max-error 20
  fatpath lab compare experiments/demo.toml --lab-out out/demo --path lossy")]
pub struct Compare {
    /// Scenario file (TOML)
    file: PathBuf,
    /// Folder of the comparison [default: out/NAME-compare]
    #[arg(long)]
    out: Option<PathBuf>,
    /// Take the runs of the lab from this folder of results
    #[arg(long, value_name = "DIR")]
    lab_out: Option<PathBuf>,
    /// Take the runs of the simulator from this folder of results
    #[arg(long, value_name = "DIR")]
    sim_out: Option<PathBuf>,
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    repeats: Repeats,
    /// Runs of the simulator at a time [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
    /// Fail if the medians of a case differ by more, per cent of the kernel's
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    max_error: Option<f64>,
    /// Print the comparison as JSON
    #[arg(long)]
    json: bool,
    /// Print no progress
    #[arg(long)]
    quiet: bool,
}

fn percent(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.trim_end_matches('%').trim_end().parse().ok();
    let number = number.filter(|percent| percent.is_finite() && *percent >= 0.0);
    number.ok_or_else(|| "give a number of per cent, such as 20".to_owned())
}

/// The runs of a side, and whether Ctrl-C has ended them.
type Side = (Vec<Run>, bool);

impl Compare {
    /// Does it. The exit status is 0, 1 if a case is beyond `--max-error`, 130 after Ctrl-C.
    ///
    /// # Errors
    /// What the command could not do, with the remedy where there is one.
    pub fn run(self) -> Result<ExitCode> {
        let mut scenario = load(&self.file)?;
        self.repeats.replace(&mut scenario.experiment);
        let folder = || Path::new("out").join(format!("{}-compare", scenario.name));
        let out = self.out.clone().unwrap_or_else(folder);
        let file = || self.file.display().to_string();
        // The simulator first: it refuses at once what it cannot do.
        let (simulator, stopped) = self.simulator(&scenario, &out).with_context(file)?;
        if stopped {
            return Ok(ExitCode::from(INTERRUPTED));
        }
        let (kernel, stopped) = self.kernel(&scenario, &out).with_context(file)?;
        let rows = |runs: &[Run]| runs.iter().map(|run| run.row.clone()).collect::<Vec<Row>>();
        let cases = compared(&rows(&kernel), &rows(&simulator));
        std::fs::create_dir_all(&out).map_err(WriteError::at(&out))?;
        files::write(
            &out.join("compare.json"),
            serde_json::to_string_pretty(&cases)? + "\n",
        )?;
        let plots = plots(&out, &scenario.name, &kernel, &simulator)?;
        match self.json {
            true => print_json(&cases)?,
            false => {
                let mut lines = self.lines(&cases, &plots);
                // Runs of an earlier command may be of another kernel.
                lines.extend(detection::note(&scenario).filter(|_| self.lab_out.is_none()));
                print_lines(&lines)?
            }
        }
        Ok(match (stopped, self.beyond(&cases).is_empty()) {
            (true, _) => ExitCode::from(INTERRUPTED),
            (false, is_within) => ExitCode::from(u8::from(!is_within)),
        })
    }

    fn options(&self, out: PathBuf) -> Options {
        Options {
            choice: self.choice.clone(),
            shard: None,
            out,
            fresh: false,
            quiet: self.quiet,
        }
    }

    fn simulator(&self, scenario: &Scenario, out: &Path) -> Result<Side> {
        if let Some(folder) = &self.sim_out {
            return self.taken(scenario, folder);
        }
        let how = How {
            jobs: jobs(self.jobs),
            seed: None,
        };
        let in_file = |error: ScenarioError| error.in_file(&self.file);
        let simulator = Simulator::of(scenario, how).map_err(in_file)?;
        let options = self.options(out.join("sim"));
        let outcome = fatpath_experiment::run::run(&simulator, &options).map_err(in_file)?;
        Ok((outcome.runs, outcome.interrupted))
    }

    fn kernel(&self, scenario: &Scenario, out: &Path) -> Result<Side> {
        if let Some(folder) = &self.lab_out {
            return self.taken(scenario, folder);
        }
        lab::need_root()?;
        let outcome = run::run(scenario, &self.options(out.join("lab")));
        let outcome = outcome.map_err(|error| error.in_file(&self.file))?;
        Ok((outcome.runs, outcome.interrupted))
    }

    /// The runs of the chosen cases that an earlier command made.
    fn taken(&self, scenario: &Scenario, folder: &Path) -> Result<Side> {
        let cases = self.choice.of(scenario)?;
        let runs = earlier(folder, scenario, &cases, |maker| match maker {
            Maker::Lab => scenario.clone(),
            Maker::Simulator { .. } => without_warm_up(scenario),
        })?;
        Ok((runs, false))
    }

    fn beyond<'c>(&self, cases: &'c [Compared]) -> Vec<&'c Compared> {
        let Some(most_percent) = self.max_error else {
            return vec![];
        };
        let cases = cases.iter();
        cases.filter(|case| !case.is_within(most_percent)).collect()
    }

    fn lines(&self, cases: &[Compared], plots: &[PathBuf]) -> Vec<String> {
        let mut lines: Vec<String> = table(cases).lines().map(str::to_owned).collect();
        lines.push("medians in Mb/s; in brackets the mean with half its 95 % interval".to_owned());
        lines.extend(plots.iter().map(|plot| format!("plot: {}", plot.display())));
        let beyond = self.beyond(cases);
        if let Some(most_percent) = self.max_error.filter(|_| !beyond.is_empty()) {
            let (count, all) = (beyond.len(), cases.len());
            lines.push(format!(
                "{count} of {all} cases are not within {most_percent} %, or have failed or untrusted runs"
            ));
        }
        lines
    }
}
