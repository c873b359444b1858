// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath phases`: which libraries are probed, and what their programs do.

use crate::arguments::PhasesArguments;
use crate::not_running::not_running;
use anyhow::{Result, bail};
use fatpath_api::endpoint::GetPhases;
use fatpath_api::{PhaseLibrary, PhaseProcess, Phases};
use fatpath_daemon::client;
use fatpath_table::write_table;
use std::io::{self, Write, stdout};

pub fn run(arguments: &PhasesArguments) -> Result<()> {
    let instance = arguments.of.instance()?;
    let Some(phases) = client::get::<GetPhases>(&instance.socket())? else {
        bail!(not_running(&instance));
    };
    match arguments.json {
        true => writeln!(stdout(), "{}", serde_json::to_string_pretty(&phases)?)?,
        false => print(&phases, &mut stdout().lock())?,
    }
    Ok(())
}

fn print(phases: &Phases, out: &mut impl Write) -> io::Result<()> {
    if phases.tables.is_empty() {
        let remedy = "add [phases.mpi] to the policy (fatpath-policy(5))";
        return writeln!(out, "no phases are followed: {remedy}");
    }
    if let Some(problem) = &phases.problem {
        return writeln!(out, "phases cannot be followed: {problem}");
    }
    if let Some(probe_us) = phases.probe_us {
        writeln!(
            out,
            "a call costs its program {probe_us:.1} us more, entry and return\n"
        )?;
    }
    let header = ["LIBRARY", "PHASES", "FUNCTIONS", "SLOW", "PROBLEM"].map(str::to_owned);
    write_table(out, header, phases.libraries.iter().map(library))?;
    writeln!(out)?;
    let header = [
        "PID",
        "PROGRAM",
        "NOW",
        "COLLECTIVE",
        "SWITCHES/S",
        "CALLS/S",
        "CPU",
    ];
    let row = |process| row(process, phases.probe_us);
    write_table(
        out,
        header.map(str::to_owned),
        phases.processes.iter().map(row),
    )
}

fn library(library: &PhaseLibrary) -> [String; 5] {
    [
        library.path.clone(),
        library.phases.join(","),
        library.functions.to_string(),
        library.stepped.len().to_string(),
        library.problem.clone().unwrap_or_default(),
    ]
}

fn row(process: &PhaseProcess, probe_us: Option<f64>) -> [String; 7] {
    let share = probe_us.map(|us| format!("{:.2} %", process.calls_per_s * us / 1e4));
    [
        process.pid.to_string(),
        process.command.clone(),
        if process.is_collective {
            "collective"
        } else {
            "other"
        }
        .to_owned(),
        format!("{:.1} %", process.collective_share * 100.0),
        format!("{:.1}", process.switches_per_s),
        format!("{:.1}", process.calls_per_s),
        share.unwrap_or_default(),
    ]
}
