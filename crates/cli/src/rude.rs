// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath rude …`: the gate, who is rude, and programs whose connections are.

use crate::arguments::{
    RudeCommand, RudeOffArguments, RudeOnArguments, RudeRunArguments, RudeStatusArguments,
};
use anyhow::{Context, Result};
use fatpath_api::endpoint::{GetRude, GetRudeGate, RudeOff, RudeOn};
use fatpath_api::{Gated, RudeGate, RudeMode, RudeOnQuery, RudeStatus, TunedFlow};
use fatpath_daemon::{Instance, client};
use fatpath_kernel::{Kernel, account, cgroup_directory, cgroup_id};
use fatpath_units::show_count;
use rustix::fs::{Access, access};
use rustix::io::Errno;
use std::io::{Write, stdout};
use std::os::unix::process::CommandExt;
use std::process::Command;

pub fn run(command: RudeCommand) -> Result<()> {
    match command {
        RudeCommand::On(arguments) => on(&arguments),
        RudeCommand::Off(arguments) => off(&arguments),
        RudeCommand::Status(arguments) => status(&arguments),
        RudeCommand::Run(arguments) => run_program(&arguments),
    }
}

fn on(arguments: &RudeOnArguments) -> Result<()> {
    let instance = Instance::new(&arguments.instance, None)?;
    let (mark, netns) = (arguments.mark, &arguments.netns);
    let query = RudeOnQuery {
        mark: mark.to_string(),
        netns: netns.join(","),
    };
    let gated = match client::ask::<RudeOn>(&instance.socket(), &query)? {
        Some(gated) => gated,
        None => Kernel::open_to_change(instance.places)?.open_rude_gate(mark, netns)?,
    };
    say(&gated, arguments.json, "the gate is open: {} became rude")
}

fn off(arguments: &RudeOffArguments) -> Result<()> {
    let instance = Instance::new(&arguments.instance, None)?;
    let gated = match client::get::<RudeOff>(&instance.socket())? {
        Some(gated) => gated,
        None => Kernel::open_to_change(instance.places)?.close_rude_gate()?,
    };
    say(
        &gated,
        arguments.json,
        "the gate is closed: {} went back to congestion control",
    )
}

fn say(gated: &Gated, json: bool, sentence: &str) -> Result<()> {
    if json {
        return Ok(writeln!(
            stdout(),
            "{}",
            serde_json::to_string_pretty(gated)?
        )?);
    }
    let interfaces = gated.unmarked.iter();
    interfaces.for_each(|why| {
        eprintln!(
            "fatpath: warning: interface not marked, so no flow over it can stay rude: {why}"
        );
    });
    let flows = show_count(gated.flows_changed, "flow");
    Ok(writeln!(stdout(), "{}", sentence.replace("{}", &flows))?)
}

/// With a daemon it is the daemon's answer, else what is pinned. Who may not see the flows sees the gate.
fn status(arguments: &RudeStatusArguments) -> Result<()> {
    let instance = Instance::new(&arguments.instance, None)?;
    if access(instance.socket(), Access::WRITE_OK) == Err(Errno::ACCESS) {
        return gate_alone(&instance, arguments.json);
    }
    let status = match client::get::<GetRude>(&instance.socket())? {
        Some(status) => status,
        None => Kernel::open(instance.places.clone())?.rude_status()?,
    };
    let text = match arguments.json {
        true => serde_json::to_string_pretty(&status)? + "\n",
        false => table(&status),
    };
    Ok(stdout().write_all(text.as_bytes())?)
}

fn gate_alone(instance: &Instance, json: bool) -> Result<()> {
    let gate = client::get::<GetRudeGate>(&instance.gate_socket())?;
    let gate = gate.context("the daemon is not running: without it, only root may see the gate")?;
    let text = match json {
        true => serde_json::to_string_pretty(&serde_json::json!({ "gate": gate }))? + "\n",
        false => {
            let lines = gate_lines(&gate).join("\n");
            lines + "\nflows   only root and the group fatpath may see them\n"
        }
    };
    Ok(stdout().write_all(text.as_bytes())?)
}

fn gate_lines(gate: &RudeGate) -> Vec<String> {
    let is_open = if gate.is_open { "open" } else { "closed" };
    vec![
        format!("gate    {is_open}"),
        format!("mark    {}", gate.mark),
    ]
}

fn table(status: &RudeStatus) -> String {
    let interfaces: u32 = status
        .marked_namespaces
        .iter()
        .map(|(_, count)| count)
        .sum();
    let mut lines = gate_lines(&status.gate);
    lines.push(format!(
        "marked  {interfaces} interfaces in {} network namespaces",
        status.marked_namespaces.len()
    ));
    if status.flows_unmarked > 0 {
        lines.push(format!(
            "flows   {} went back to congestion control: the segments were not marked",
            status.flows_unmarked
        ));
    }
    lines.push(format!(
        "flows   {} (or going polite)",
        show_count(status.flows.len(), "rude flow")
    ));
    lines.extend(status.flows.iter().filter_map(flow_line));
    lines.join("\n") + "\n"
}

fn flow_line(flow: &TunedFlow) -> Option<String> {
    let rude = flow.rude.as_ref()?;
    let mode = match rude.mode {
        RudeMode::Rude => "rude",
        RudeMode::GoingPolite => "going polite",
    };
    Some(format!(
        "  {mode} {} > {}, rule {}, uid {}: {} in flight, fair window {}, {} packets marked",
        flow.flow.local,
        flow.flow.remote,
        flow.rule.as_deref().unwrap_or_default(),
        rude.user,
        flow.measures.in_flight_pkts,
        rude.fair_cwnd_pkts,
        rude.marked_pkts
    ))
}

/// This process becomes the command: exit status and signals are the command's own. The daemon removes
/// the cgroup when nothing runs in it any more.
fn run_program(arguments: &RudeRunArguments) -> Result<()> {
    let instance = Instance::new(&arguments.instance, None)?;
    let kernel = Kernel::open(instance.places)?;
    let mut command = Command::new(&arguments.command[0]);
    command.args(&arguments.command[1..]);
    if let Some(name) = &arguments.user {
        let account =
            account(name).with_context(|| format!("no such user on this host: {name}"))?;
        command.uid(account.user).gid(account.group);
    }
    kernel.tidy_rude_runs()?;
    kernel.run_rude(enter_cgroup()?)?;
    let refused = command.exec();
    Err(refused).with_context(|| format!("cannot run {}", arguments.command[0]))
}

/// Below the present one, so that rules that name that hold still. Answers the id.
fn enter_cgroup() -> Result<u64> {
    let present = std::fs::read_to_string("/proc/self/cgroup")?;
    let present = present.lines().find_map(|line| line.strip_prefix("0::"));
    let present = present.context(
        "this process is in no cgroup of version 2; fatpath doctor says how to mount it",
    )?;
    let path = format!(
        "{}/fatpath-rude-{}",
        present.trim_end_matches('/'),
        std::process::id()
    );
    let directory = cgroup_directory(&path)?;
    let failed = || format!("cannot make the cgroup {}", directory.display());
    std::fs::create_dir(&directory).with_context(failed)?;
    std::fs::write(directory.join("cgroup.procs"), "0").with_context(failed)?;
    cgroup_id(&path).with_context(failed)
}
