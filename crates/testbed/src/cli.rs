// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath lab`: the commands, as a clap type that the binary hangs in.
//!
//! Words and exit codes only; the work is done elsewhere in this crate. Start with
//! [`LabCommand::run`].

mod compare;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use fatpath_experiment::load;
use fatpath_experiment::print::{print_json, print_lines};
use fatpath_experiment::report::{exit_code, list_runs, outcome_lines};
use fatpath_experiment::run::{Choice, Options, Outcome, Repeats, ScenarioError, setting};
use fatpath_scenario::describe;
use fatpath_scenario::plan::{Family, Plan};
use fatpath_scenario::{Link, Order, Scenario};

use crate::lab::{self, Lab, Lifetime, Listed};
use crate::lab_directory::LabDirectory;
use crate::observe::command::Observe;
use crate::records::Records;
use crate::run::{self, Testbed};
use crate::settings::settings_line;
use crate::supervisor;
use compare::Compare;

/// Emulated networks and experiments.
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// Bring up the hosts of a scenario, with the links of its first case, until `lab down`
    Up(Up),
    /// Run a program on a host of a lab that is up
    Exec(Exec),
    /// Take a lab down
    Down(Down),
    /// Change a link of a lab that is up, while traffic runs
    Set(Set),
    /// Run a scenario's programs in every case on the real kernel, and compare the results
    Run(Run),
    /// Run a scenario on the real kernel and in the simulator, and compare the results
    Compare(Compare),
    /// Print or plot the packets that passed the links in each millisecond: summary, CSV or plot
    Observe(Observe),
    /// List the labs that are up
    List(List),
    /// The supervisor process of a lab; started by `up` and `run`
    #[command(hide = true)]
    Emulate(Emulate),
}

/// Arguments of `lab up`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fatpath lab up experiments/demo.toml --path lossy
  fatpath lab up experiments/demo.toml --observe /tmp/demo.observation")]
pub struct Up {
    /// Scenario file (TOML)
    file: PathBuf,
    #[command(flatten)]
    choice: Choice,
    /// Record the packets that pass the links into this file, until the lab is taken down
    #[arg(long, value_name = "FILE")]
    observe: Option<PathBuf>,
    /// Record each flow separately too
    #[arg(long, requires = "observe")]
    flows: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `lab exec`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fatpath lab exec server -- iperf3 -s -D
  fatpath lab exec --lab demo client -- iperf3 -c 10.77.0.2
  fatpath lab exec client -- ip tcp_metrics flush")]
pub struct Exec {
    /// Which lab, if more than one is up
    #[arg(long, value_name = "NAME")]
    lab: Option<String>,
    /// The host
    host: String,
    /// The program and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "CMD"
    )]
    command: Vec<OsString>,
}

/// Arguments of `lab down`.
#[derive(Debug, Args)]
pub struct Down {
    /// Which lab [default: the one that this session brought up]
    name: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `lab set`.
#[derive(Debug, Args)]
#[command(after_help = "\
Keys and values are those of the link in a scenario file, without quotes;
forward.KEY and backward.KEY mean one direction. Packets that are already on the
link are not affected.

Examples:
  fatpath lab set wan loss=1% rate=500mbit
  fatpath lab set wan forward.delay=20ms --lab demo")]
pub struct Set {
    /// The link
    link: String,
    /// Keys to change, with their new values
    #[arg(required = true, value_name = "KEY=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,
    /// Which lab, if more than one is up
    #[arg(long, value_name = "NAME")]
    lab: Option<String>,
    /// Print the link as it is now as JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `lab run`, and of other commands that run a scenario.
#[derive(Debug, Args)]
#[command(after_help = "\
Finished runs are kept: with the same --out, an interrupted command continues
where it stopped, and a larger --repeats adds runs.

Examples:
  fatpath lab run experiments/demo.toml
  fatpath lab run experiments/demo.toml --list
  fatpath lab run experiments/demo.toml --out out/many --repeats 10 --seed 7
  fatpath lab run experiments/demo.toml --path lossy --fresh
  fatpath lab run experiments/agreement.toml --variant fp_reno \\
    --vary loss=0% --vary loss=0.1%")]
pub struct Run {
    /// Scenario file (TOML)
    file: PathBuf,
    /// Folder of the results [default: out/NAME]
    #[arg(long)]
    out: Option<PathBuf>,
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    repeats: Repeats,
    /// Run in random order, shuffled with this seed
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Delete the earlier runs with their tables and plots, and start again
    #[arg(long)]
    fresh: bool,
    /// List the runs in their order, and run nothing
    #[arg(long)]
    list: bool,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
    /// Print no progress
    #[arg(long)]
    quiet: bool,
}

/// Arguments of `lab list`.
#[derive(Debug, Args)]
pub struct List {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of the supervisor process.
#[derive(Debug, Args)]
pub struct Emulate {
    name: String,
}

impl LabCommand {
    /// Does it. The exit status is 0, 1 if a run failed, 130 after Ctrl-C.
    ///
    /// # Errors
    /// What the command could not do, with the remedy where there is one.
    pub fn run(self) -> Result<ExitCode> {
        match self {
            LabCommand::Up(args) => up(&args),
            LabCommand::Exec(args) => {
                Err(lab::exec(args.lab.as_deref(), &args.host, &args.command).into())
            }
            LabCommand::Down(args) => down(&args),
            LabCommand::Set(args) => set(args),
            LabCommand::Run(args) => run_scenario(&args),
            LabCommand::Compare(args) => args.run(),
            LabCommand::Observe(args) => args.run().map(|()| ExitCode::SUCCESS),
            LabCommand::List(args) => list(&args),
            LabCommand::Emulate(args) => {
                Ok(supervisor::supervise(&args.name).map(|()| ExitCode::SUCCESS)?)
            }
        }
    }
}

fn up(args: &Up) -> Result<ExitCode> {
    let scenario = load(&args.file)?;
    let case = args.choice.of(&scenario)?[0];
    let flow_log = LabDirectory::of(&scenario.name).path("flows.jsonl");
    let observation = args.observe.as_deref().map(std::path::absolute);
    let records = Records {
        observation: observation.transpose().context("--observe")?,
        per_flow: args.flows,
        stats: None,
    };
    let plan = Plan::of(&scenario, case, flow_log);
    let lab = Lab::up(plan, &records, Lifetime::UntilDown)?;
    lab.cleared.iter().for_each(|line| eprintln!("{line}"));
    match args.json {
        true => print_json(&lab.plan)?,
        false => print_lines(&up_lines(&lab))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn up_lines(lab: &Lab) -> Vec<String> {
    let plan = &lab.plan;
    let mut lines = vec![format!("lab {} is up", plan.lab)];
    for host in plan.hosts.iter().map(|host| &host.name) {
        let address = |family| {
            plan.address(host, host, family)
                .unwrap_or_else(|| "-".to_owned())
        };
        let (ipv4, ipv6) = (address(Family::Ipv4), address(Family::Ipv6));
        lines.push(format!(
            "  {host}: {ipv4}, {ipv6}; namespace {}",
            plan.namespace(host)
        ));
    }
    lines.push(settings_line(&lab.settings));
    let host = plan.hosts.first().map_or("HOST", |host| &host.name);
    lines.push(format!(
        "run a program:  fatpath lab exec --lab {} {host} -- CMD",
        plan.lab
    ));
    if plan.daemon.is_some() {
        let observe = "fatpath flows --lab";
        let also = "also why, top, trace and status";
        lines.push(format!("see its flows:  {observe} {} ({also})", plan.lab));
    }
    lines.push(format!("take it down:   fatpath lab down {}", plan.lab));
    lines
}

fn down(args: &Down) -> Result<ExitCode> {
    let name = lab::down(args.name.as_deref())?;
    print_lines(&[match args.json {
        true => serde_json::json!({ "down": name }).to_string(),
        false => format!("lab {name} is down"),
    }])?;
    Ok(ExitCode::SUCCESS)
}

fn set(args: Set) -> Result<ExitCode> {
    let (lab, links) = lab::set(args.lab.as_deref(), &args.link, args.settings)?;
    if args.json {
        print_json(&links)?;
    } else {
        let lines: Vec<String> = links
            .iter()
            .flat_map(|link| set_lines(&lab, link))
            .collect();
        print_lines(&lines)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn set_lines(lab: &str, link: &Link) -> Vec<String> {
    let head = format!("lab {lab}, link {} is now:", link.name);
    let directions = describe::directions(link);
    let directions = directions.iter().map(|line| format!("  {line}"));
    [head].into_iter().chain(directions).collect()
}

fn run_scenario(args: &Run) -> Result<ExitCode> {
    let Some(outcome) = args.make()? else {
        return Ok(ExitCode::SUCCESS);
    };
    match args.json {
        true => print_json(&outcome.rows())?,
        false => print_lines(&outcome_lines(&outcome))?,
    }
    Ok(exit_code(&outcome))
}

impl Run {
    /// Makes the runs that are missing. With `--list`, prints their names instead, and answers `None`.
    ///
    /// # Errors
    /// If the scenario cannot be read, its cases cannot be run here, or their results cannot be written.
    pub fn make(&self) -> Result<Option<Outcome>> {
        let scenario = self.scenario()?;
        let options = self.options(&scenario);
        let in_file = |error: ScenarioError| error.in_file(&self.file);
        if self.list {
            let testbed = Testbed::of(&scenario).map_err(in_file)?;
            let names = fatpath_experiment::run::names(&testbed, &options).map_err(in_file)?;
            list_runs(&names, self.json)?;
            return Ok(None);
        }
        // Before there is a folder of results.
        lab::need_root()?;
        Ok(Some(run::run(&scenario, &options).map_err(in_file)?))
    }

    /// As the file has it, but for what the command line says of its runs.
    fn scenario(&self) -> Result<Scenario> {
        let mut scenario = load(&self.file)?;
        let experiment = &mut scenario.experiment;
        self.repeats.replace(experiment);
        experiment.order = self
            .seed
            .map_or(experiment.order, |seed| Order::Random { seed });
        Ok(scenario)
    }

    fn options(&self, scenario: &Scenario) -> Options {
        let out = self.out.clone();
        Options {
            choice: self.choice.clone(),
            shard: None,
            out: out.unwrap_or_else(|| Path::new("out").join(&scenario.name)),
            fresh: self.fresh,
            quiet: self.quiet,
        }
    }
}

fn list(args: &List) -> Result<ExitCode> {
    let labs = lab::list()?;
    match (args.json, labs.is_empty()) {
        (true, _) => print_json(&labs)?,
        (false, true) => print_lines(&["no lab is up".to_owned()])?,
        (false, false) => print_lines(&labs.iter().map(listed_line).collect::<Vec<_>>())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn listed_line(listed: &Listed) -> String {
    let state = match (listed.up, listed.tuned) {
        (false, _) => "left over from a crash; the next lab up, run or down clears it",
        (true, true) => "up, tuned by a daemon",
        (true, false) => "up",
    };
    format!(
        "{}: {state}; hosts: {}",
        listed.name,
        listed.hosts.join(", ")
    )
}
