// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath measure`: tests on a schedule, and tests of other hosts.

mod between;
mod iperf3;
mod mesh;
mod rate;
mod single_ended;

use crate::archive::time::{now_us, shown};
use crate::not_running::not_running;
use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use fatpath_api::endpoint::RunTest;
use fatpath_api::{RunTestQuery, TestOutcome};
use fatpath_daemon::measure::{host_seed, read_plan_file};
use fatpath_daemon::{Instance, InstanceOptions, client};
use fatpath_measure::{Plan, Schedule, Test, Values};
use fatpath_perform::perform;
use fatpath_table::write_table;
use fatpath_units::{show_count, show_time};
use serde_json::json;
use std::io::{IsTerminal, Write, stderr, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

pub const HELP: &str = "\
A file lists the tests: what is run, to whom, how often. docs/measure.md
explains its keys. Tests between hosts of fatpath (echo, one-way, rate, iperf3) need a
responder at the other end, and keys of both (fatpath keys).

Examples:
  fatpath measure check ~/measure.toml
  fatpath measure list
  fatpath measure next --json
  fatpath measure run rtt-far
  fatpath measure now rate-far
  fatpath measure mesh
  fatpath measure respond --user nobody
  fatpath measure echo dtn2 --duration 5s
  fatpath measure one-way dtn2 --json
  fatpath measure rate dtn2
  fatpath measure single-ended 192.0.2.10
  fatpath measure iperf3 dtn2 --duration 10s
  fatpath measure status --json";

#[derive(Subcommand)]
pub enum Command {
    /// Check the file; if it has errors, print file:line:column of each, and exit with status 1
    Check(CheckArguments),
    /// List the tests of the file
    List(Arguments),
    /// Print when each test is due next
    Next(Arguments),
    /// Run one test here and now, even while another uses its resource, and print what it measured; archives nothing
    Run(RunArguments),
    /// Have the daemon run one test, once no other uses its resource, and archive it
    Now(NowArguments),
    /// Print the newest results between all hosts of each mesh of the file
    #[command(after_help = mesh::HELP)]
    Mesh(mesh::MeshArguments),
    /// Measure round-trip time and loss of UDP to a host that runs `fatpath measure respond`
    #[command(after_help = between::ECHO_HELP)]
    Echo(between::EchoArguments),
    /// Measure one-way delays to and from a host that runs `fatpath measure respond`, by both hosts' clocks
    #[command(after_help = between::ONE_WAY_HELP)]
    OneWay(between::OneWayArguments),
    /// Measure the rate of the bottleneck on the path to a host that runs `fatpath measure respond`
    #[command(after_help = rate::HELP)]
    Rate(rate::RateArguments),
    /// Measure the rate of the path to a host without fatpath, by packets that its kernel answers
    #[command(after_help = single_ended::HELP)]
    SingleEnded(single_ended::SingleEndedArguments),
    /// Measure throughput to a host that runs `fatpath measure respond`, which starts iperf3's server for the test
    #[command(after_help = iperf3::HELP)]
    Iperf3(iperf3::Iperf3Arguments),
    /// Answer tests of the peers that the file names, within their limits, until Ctrl-C
    #[command(after_help = between::RESPOND_HELP)]
    Respond(between::RespondArguments),
    /// Print which peers' tests are answered here, and what each peer has used of its limits today
    Status(between::StatusArguments),
}

#[derive(Args)]
pub struct CheckArguments {
    /// File that lists the tests
    #[arg(default_value = DEFAULT_FILE)]
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub struct Arguments {
    /// File that lists the tests
    #[arg(long, value_name = "FILE", default_value = DEFAULT_FILE)]
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub struct RunArguments {
    /// Name of the test
    test: String,
    #[command(flatten)]
    arguments: Arguments,
}

#[derive(Args)]
pub struct NowArguments {
    /// Name of the test
    test: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    instance: InstanceOptions,
}

const DEFAULT_FILE: &str = "/etc/fatpath/measure.toml";

pub fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Check(arguments) => check(arguments)?,
        Command::List(arguments) => list(arguments)?,
        Command::Next(arguments) => next(arguments)?,
        Command::Run(arguments) => return run_one(arguments),
        Command::Now(arguments) => return now(arguments),
        Command::Mesh(arguments) => return mesh::run(arguments),
        Command::Echo(arguments) => return between::run_echo(arguments),
        Command::OneWay(arguments) => return between::run_one_way(arguments),
        Command::Rate(arguments) => return rate::run(arguments),
        Command::SingleEnded(arguments) => return single_ended::run(arguments),
        Command::Iperf3(arguments) => return iperf3::run(arguments),
        Command::Respond(arguments) => return between::run_respond(arguments),
        Command::Status(arguments) => return between::run_status(arguments),
    }
    Ok(ExitCode::SUCCESS)
}

fn check(arguments: &CheckArguments) -> Result<()> {
    let plan = read_plan_file(&arguments.file)?;
    let mut out = stdout().lock();
    if arguments.json {
        return Ok(writeln!(out, "{}", serde_json::to_string_pretty(&plan)?)?);
    }
    let (name, tests) = (
        arguments.file.display(),
        show_count(plan.tests.len(), "test"),
    );
    let peers = match &plan.responder {
        Some(_) => format!(", {} answered", show_count(plan.peers.len(), "peer")),
        None => String::new(),
    };
    Ok(writeln!(out, "{name}: {tests}{peers}")?)
}

fn list(arguments: &Arguments) -> Result<()> {
    let plan = read_plan_file(&arguments.file)?;
    if arguments.json {
        let json = serde_json::to_string_pretty(&plan.tests)?;
        return Ok(writeln!(stdout(), "{json}")?);
    }
    if plan.tests.is_empty() {
        return Ok(writeln!(stdout(), "{}", lists_none(arguments))?);
    }
    let header = ["TEST", "TOOL", "TO", "EVERY", "DURATION", "RESOURCE"];
    let rows = plan.tests.iter().map(|test| {
        [
            test.name.clone(),
            test.tool.name().to_owned(),
            test.to.clone().unwrap_or_default(),
            show_time(test.every_us),
            show_time(test.duration_us),
            test.resources.join(", "),
        ]
    });
    let header = header.map(str::to_owned);
    Ok(write_table(&mut stdout(), header, rows)?)
}

fn next(arguments: &Arguments) -> Result<()> {
    let plan = read_plan_file(&arguments.file)?;
    let now_us = now_us();
    let due = due(&plan, now_us);
    if arguments.json {
        let due = due.iter();
        let due = due.map(|(due_us, test)| json!({ "test": test.name, "due": shown(*due_us) }));
        let json = serde_json::to_string_pretty(&due.collect::<Vec<_>>())?;
        return Ok(writeln!(stdout(), "{json}")?);
    }
    if due.is_empty() {
        return Ok(writeln!(stdout(), "{}", lists_none(arguments))?);
    }
    let header = ["DUE", "IN", "TEST", "TOOL", "TO"].map(str::to_owned);
    let rows = due.iter().map(|(due_us, test)| {
        [
            shown(*due_us),
            format!("{} s", (due_us - now_us) / 1_000_000),
            test.name.clone(),
            test.tool.name().to_owned(),
            test.to.clone().unwrap_or_default(),
        ]
    });
    Ok(write_table(&mut stdout(), header, rows)?)
}

fn lists_none(arguments: &Arguments) -> String {
    format!("{} lists no test.", arguments.file.display())
}

fn run_one(arguments: &RunArguments) -> Result<ExitCode> {
    let plan = read_plan_file(&arguments.arguments.file)?;
    let file = arguments.arguments.file.display();
    let test = plan.test(&arguments.test).with_context(|| {
        let names: Vec<&str> = plan.tests.iter().map(|test| test.name.as_str()).collect();
        format!(
            "{file} has no test `{}`; it has: {}",
            arguments.test,
            names.join(", ")
        )
    })?;
    if stderr().is_terminal() {
        eprintln!("{}: takes about {}", test.name, show_time(test.duration_us));
    }
    print(perform(test, None, || true), arguments.arguments.json)
}

fn now(arguments: &NowArguments) -> Result<ExitCode> {
    if stderr().is_terminal() {
        eprintln!("{}: runs, or waits for its resource", arguments.test);
    }
    let query = RunTestQuery {
        test: arguments.test.clone(),
    };
    let instance = Instance::new(&arguments.instance, None)?;
    let outcome = client::ask::<RunTest>(&instance.socket(), &query);
    let outcome = outcome.with_context(|| arguments.test.clone())?;
    let outcome = outcome.with_context(|| not_running(&instance))?;
    print(outcome, arguments.json)
}

/// Of a test that is asked for on the command line, and begins now.
fn new_outcome(tool: &str, host: &str) -> TestOutcome {
    TestOutcome {
        test: tool.to_owned(),
        tool: tool.to_owned(),
        to: Some(host.to_owned()),
        resources: vec![],
        due_us: None,
        start_us: now_us(),
        duration_s: 0.0,
        values: Values::new(),
        flows: vec![],
        note: None,
    }
}

/// What failed has its values too, so the error is none of the JSON's own.
fn print(outcome: TestOutcome, as_json: bool) -> Result<ExitCode> {
    let mut out = stdout().lock();
    if as_json {
        writeln!(out, "{}", serde_json::to_string_pretty(&outcome)?)?;
    } else {
        for (name, (value, unit)) in &outcome.values {
            writeln!(out, "{name:<24} {value} {unit}")?;
        }
    }
    match outcome.note {
        Some(note) => {
            eprintln!("fatpath: error: {}: {}", outcome.test, note.message);
            Ok(ExitCode::FAILURE)
        }
        None => Ok(ExitCode::SUCCESS),
    }
}

/// The tests in the order in which they are due, while none fails.
fn due(plan: &Plan, now_us: i64) -> Vec<(i64, &Test)> {
    let schedule = Schedule::new(&plan.tests, host_seed(), now_us);
    let tests = plan.tests.iter().enumerate();
    let mut due: Vec<(i64, &Test)> = tests
        .filter_map(|(index, test)| Some((schedule.due_us(index)?, test)))
        .collect();
    due.sort_by_key(|(due_us, _)| *due_us);
    due
}
