// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath lab`: the commands, as a clap type that the binary hangs in.
//!
//! Words and exit codes only; the work is done elsewhere in this crate. Start with
//! [`LabCommand::run`].

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};

use crate::lab::{self, Lab, Lifetime, Listed};
use crate::plan::{Family, Plan};
use crate::results::table;
use crate::run::{self, Options, Outcome, chosen, settings_line};
use crate::scenario::Scenario;
use crate::{keeper, room::Room};

/// The exit status of a command that Ctrl-C has ended (128 + SIGINT).
const INTERRUPTED: u8 = 130;

/// Emulated networks and experiments.
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// Bring the hosts of a scenario up, and leave them up
    Up(Up),
    /// Run a program on a host of a lab that is up
    Exec(Exec),
    /// Take a lab down
    Down(Down),
    /// Run a scenario's programs on every path with every variant, and compare
    Run(Run),
    /// List the labs that are up
    List(List),
    /// The process behind a lab; started by `up` and `run`
    #[command(hide = true)]
    Emulate(Emulate),
}

/// Arguments of `lab up`.
#[derive(Debug, Args)]
pub struct Up {
    /// Scenario file (TOML)
    file: PathBuf,
    /// Which of its paths; the first if not given
    #[arg(long)]
    path: Option<String>,
    /// Which of its variants; the first if not given
    #[arg(long)]
    variant: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `lab exec`.
#[derive(Debug, Args)]
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
    /// Which lab, if more than one is up
    name: Option<String>,
}

/// Arguments of `lab run`.
#[derive(Debug, Args)]
pub struct Run {
    /// Scenario file (TOML)
    file: PathBuf,
    /// Folder of the results; out/NAME if not given
    #[arg(long)]
    out: Option<PathBuf>,
    /// Only this path
    #[arg(long)]
    path: Option<String>,
    /// Only this variant
    #[arg(long)]
    variant: Option<String>,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
    /// No display while it runs
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

/// Arguments of the keeper process.
#[derive(Debug, Args)]
pub struct Emulate {
    name: String,
    #[arg(long)]
    owned: bool,
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
            LabCommand::Run(args) => run_scenario(&args),
            LabCommand::List(args) => list(&args),
            LabCommand::Emulate(args) => {
                Ok(keeper::keep(&args.name, args.owned).map(|()| ExitCode::SUCCESS)?)
            }
        }
    }
}

fn up(args: &Up) -> Result<ExitCode> {
    let scenario = Scenario::load(&args.file)?;
    let case = chosen(&scenario, args.path.as_deref(), args.variant.as_deref())?[0];
    let flow_log = Room::of(&scenario.name).path("flows.jsonl");
    let lab = Lab::up(Plan::of(&scenario, case, flow_log), Lifetime::UntilDown)?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&lab.plan)?);
    } else {
        tell_up(&lab);
    }
    lab.leave();
    Ok(ExitCode::SUCCESS)
}

fn tell_up(lab: &Lab) {
    lab.cleared.iter().for_each(|line| eprintln!("{line}"));
    let plan = &lab.plan;
    println!("lab {} is up", plan.lab);
    for host in plan.hosts.iter().map(|host| &host.name) {
        let address = |family| {
            plan.address(host, host, family)
                .unwrap_or_else(|| "-".to_owned())
        };
        let (ipv4, ipv6) = (address(Family::Ipv4), address(Family::Ipv6));
        println!(
            "  {host}: {ipv4}, {ipv6}; namespace {}",
            plan.namespace(host)
        );
    }
    println!("{}", settings_line(&lab.settings));
    let host = plan.hosts.first().map_or("HOST", |host| &host.name);
    println!(
        "run a program:  fatpath lab exec --lab {} {host} -- CMD",
        plan.lab
    );
    println!("take it down:   fatpath lab down {}", plan.lab);
}

fn down(args: &Down) -> Result<ExitCode> {
    let name = lab::down(args.name.as_deref())?;
    println!("lab {name} is down");
    Ok(ExitCode::SUCCESS)
}

fn run_scenario(args: &Run) -> Result<ExitCode> {
    let scenario = Scenario::load(&args.file)?;
    let out = args
        .out
        .clone()
        .unwrap_or_else(|| Path::new("out").join(&scenario.name));
    let options = Options {
        path: args.path.clone(),
        variant: args.variant.clone(),
        out,
        quiet: args.quiet,
    };
    let file = args.file.display();
    let outcome = run::run(&scenario, &options).with_context(|| file.to_string())?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&outcome.rows)?);
    } else {
        tell_outcome(&outcome);
    }
    Ok(exit_code(&outcome))
}

fn tell_outcome(outcome: &Outcome) {
    print!("{}", table(&outcome.rows));
    for row in &outcome.rows {
        if let Some(error) = &row.error {
            println!("{}, {}: {error}", row.path, row.variant);
        }
    }
    println!("results: {}", outcome.results.display());
    if let Some(plot) = &outcome.plot {
        println!("plot:    {}", plot.display());
    }
    if outcome.interrupted {
        println!("interrupted; everything is down");
    }
}

fn exit_code(outcome: &Outcome) -> ExitCode {
    let failed = outcome.rows.iter().any(|row| row.error.is_some());
    match outcome.interrupted {
        true => ExitCode::from(INTERRUPTED),
        false => ExitCode::from(u8::from(failed)),
    }
}

fn list(args: &List) -> Result<ExitCode> {
    let labs = lab::list()?;
    match (args.json, labs.is_empty()) {
        (true, _) => println!("{}", serde_json::to_string_pretty(&labs)?),
        (false, true) => println!("no lab is up"),
        (false, false) => labs.iter().for_each(tell_listed),
    }
    Ok(ExitCode::SUCCESS)
}

fn tell_listed(listed: &Listed) {
    let state = match (listed.up, listed.tuned) {
        (false, _) => "left over from a crash; the next lab up, run or down clears it",
        (true, true) => "up, tuned by a daemon",
        (true, false) => "up",
    };
    println!(
        "{}: {state}; hosts: {}",
        listed.name,
        listed.hosts.join(", ")
    );
}
