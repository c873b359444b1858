// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command `fatpath gap`.

use crate::report::{PathGap, Report};
use crate::{draw, table};
use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use fatpath_experiment::print::{print_json, print_lines};
use fatpath_experiment::report::exit_code;
use fatpath_experiment::results::{Row, files};
use fatpath_plot::{Dots, Format, picture};
use fatpath_testbed::cli::Run;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What learned paths close of the gap between the defaults and an expert
#[derive(Debug, Subcommand)]
pub enum GapCommand {
    /// Run the paths on the real kernel, and tell what is closed
    #[command(after_help = RUN_HELP)]
    Run(Run),
    /// Report what finished runs close of the gap
    #[command(after_help = REPORT_HELP)]
    Report(ReportOf),
    /// Print the scenario with 24 random paths in place of its own
    #[command(after_help = DRAW_HELP)]
    Draw(Draw),
}

const RUN_HELP: &str = "\
FILE has the variants default and auto, and those of an expert who knows the
paths. A path takes seven minutes for eight variants of three flows each;
finished runs are kept, and the same command continues where it stopped. The
report is of all runs in the folder, printed, and written there as gap.json,
gap.png and gap.svg.

Examples:
  fatpath gap run experiments/gap/bulk.toml --path 1g-100ms --path 200m-300ms
  fatpath gap run experiments/gap/random.toml --variant default \\
    --variant oracle-bbr --variant auto
  fatpath gap run experiments/gap/bulk.toml --json";

const REPORT_HELP: &str = "\
DIR holds the results.json of `fatpath gap run`, or of `fatpath lab run` of the
same scenario; several are taken together.

Examples:
  fatpath gap report out/gap-bulk
  fatpath gap report out/gap-bulk --harm out/gap-harm
  fatpath gap report out/gap-random-1 --json";

const DRAW_HELP: &str = "\
Examples:
  fatpath gap draw experiments/gap/bulk.toml --seed 7 \\
    > experiments/gap/random-7.toml";

/// Arguments of `gap report`.
#[derive(Debug, Args)]
pub struct ReportOf {
    /// Folders of results
    #[arg(required = true, value_name = "DIR")]
    results: Vec<PathBuf>,
    /// Folders of the results of experiments/gap/harm.toml
    #[arg(long, value_name = "DIR", num_args = 1..)]
    harm: Vec<PathBuf>,
    /// Write gap.json, gap.png and gap.svg to this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `gap draw`.
#[derive(Debug, Args)]
pub struct Draw {
    /// Scenario file (TOML), whose hosts, variants and flows are kept
    file: PathBuf,
    /// The same seed draws the same paths
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl GapCommand {
    /// Does it. The exit status is 0, 1 if a run failed, 130 after Ctrl-C.
    ///
    /// # Errors
    /// What the command could not do, with the remedy where there is one.
    pub fn run(self) -> Result<ExitCode> {
        match self {
            GapCommand::Run(args) => run(&args),
            GapCommand::Report(args) => report(&args),
            GapCommand::Draw(args) => drawn(&args),
        }
    }
}

fn run(args: &Run) -> Result<ExitCode> {
    let Some(outcome) = args.make()? else {
        return Ok(ExitCode::SUCCESS);
    };
    let out = outcome.results.parent().unwrap_or(Path::new("."));
    let report = Report::of(&rows(&[out])?, &[]);
    tell(&report, args.json)?;
    write(&report, out)?;
    Ok(exit_code(&outcome))
}

fn report(args: &ReportOf) -> Result<ExitCode> {
    let report = Report::of(&rows(&args.results)?, &rows(&args.harm)?);
    tell(&report, args.json)?;
    if let Some(out) = &args.out {
        write(&report, out)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn drawn(args: &Draw) -> Result<ExitCode> {
    let text = std::fs::read_to_string(&args.file);
    let text = text.with_context(|| args.file.display().to_string())?;
    let drawn =
        draw::scenario(&text, args.seed).with_context(|| args.file.display().to_string())?;
    print_lines(&[drawn.trim_end().to_owned()])?;
    Ok(ExitCode::SUCCESS)
}

/// The runs of all folders.
fn rows(folders: &[impl AsRef<Path>]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for folder in folders {
        let file = folder.as_ref().join("results.json");
        let name = || file.display().to_string();
        let text = std::fs::read_to_string(&file).with_context(name)?;
        let of_folder: Vec<Row> = serde_json::from_str(&text).with_context(name)?;
        rows.extend(of_folder);
    }
    Ok(rows)
}

fn tell(report: &Report, json: bool) -> Result<()> {
    match json {
        true => print_json(report),
        false => Ok(print_lines(&[table::table(report).trim_end().to_owned()])?),
    }
}

fn write(report: &Report, out: &Path) -> Result<()> {
    std::fs::create_dir_all(out).with_context(|| out.display().to_string())?;
    files::write(
        &out.join("gap.json"),
        serde_json::to_string_pretty(report)? + "\n",
    )?;
    if report.paths.is_empty() {
        return Ok(());
    }
    let dots = dots(report);
    for format in Format::ALL {
        let file = out.join(format!("gap.{}", format.ending()));
        files::write(&file, picture(&dots, format)?)?;
    }
    Ok(())
}

/// Goodput over the oracle's.
fn dots(report: &Report) -> Dots {
    let row = |path: &PathGap| {
        let of_oracle = |mbps: f64| mbps / path.oracle_mbps;
        let values = [
            Some(path.default_mbps),
            path.recipe_mbps,
            Some(path.auto_first_mbps),
            Some(path.auto_mbps),
        ];
        let values = values.map(|mbps| mbps.map(of_oracle));
        (path.path.clone(), values.to_vec())
    };
    Dots {
        title: "What a bulk flow reaches without anybody knowing the path".to_owned(),
        x_desc: "goodput of a flow over that of the best expert's third".to_owned(),
        mark: 1.0,
        series: ["default", "recipe", "auto, first flow", "auto, third flow"]
            .map(str::to_owned)
            .to_vec(),
        rows: report.paths.iter().map(row).collect(),
    }
}
