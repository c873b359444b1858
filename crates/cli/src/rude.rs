// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath rude …`: the gate, who is rude, and programs whose connections are.

use crate::arguments::{
    RudeCommand, RudeOffArguments, RudeOnArguments, RudeRunArguments, StatusArguments,
};
use anyhow::{Context, Result};
use fatpath_daemon::{Instance, client};
use fatpath_kernel::{Gated, Kernel, account, cgroup_directory, cgroup_id};
use serde_json::Value;
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
    let gated = match client::open_rude_gate(&instance.socket(), mark, netns)? {
        Some(gated) => gated,
        None => Kernel::open_to_change(instance.places)?.open_rude_gate(mark, netns)?,
    };
    say(
        &gated,
        arguments.json,
        "the gate is open: {} flows became rude",
    )
}

fn off(arguments: &RudeOffArguments) -> Result<()> {
    let instance = Instance::new(&arguments.instance, None)?;
    let gated = match client::shut_rude_gate(&instance.socket())? {
        Some(gated) => gated,
        None => Kernel::open_to_change(instance.places)?.shut_rude_gate()?,
    };
    say(
        &gated,
        arguments.json,
        "the gate is shut: {} flows became polite",
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
    interfaces.for_each(|why| eprintln!("no flow stays rude over {why}"));
    let flows = gated.flows_changed.to_string();
    Ok(writeln!(stdout(), "{}", sentence.replace("{}", &flows))?)
}

/// With a daemon it is the daemon's answer, else what is pinned.
fn status(arguments: &StatusArguments) -> Result<()> {
    let instance = Instance::new(&arguments.instance, None)?;
    let answer = match client::get(&instance.socket(), "/v1/rude")? {
        Some(answer) => answer,
        None => serde_json::to_value(Kernel::open(instance.places.clone())?.rude_status()?)?,
    };
    let text = match arguments.json {
        true => format!("{answer:#}\n"),
        false => table(&answer),
    };
    Ok(stdout().write_all(text.as_bytes())?)
}

fn table(answer: &Value) -> String {
    let array = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let is_open = answer["gate"]["is_open"].as_bool().unwrap_or_default();
    let interfaces: u64 = array(&answer["marked_namespaces"])
        .iter()
        .filter_map(|namespace| namespace[1].as_u64())
        .sum();
    let mut lines = vec![
        format!("gate    {}", if is_open { "open" } else { "shut" }),
        format!("mark    {}", mark(&answer["gate"]["mark"])),
        format!(
            "marked  {interfaces} interfaces in {} network namespaces",
            array(&answer["marked_namespaces"]).len()
        ),
    ];
    let unmarked = answer["flows_unmarked"].as_u64().unwrap_or_default();
    if unmarked > 0 {
        lines.push(format!(
            "flows   {unmarked} went polite because nobody marked their segments"
        ));
    }
    let flows = array(&answer["flows"]);
    lines.push(format!("flows   {} are not polite", flows.len()));
    lines.extend(flows.iter().map(flow_line));
    lines.join("\n") + "\n"
}

fn mark(mark: &Value) -> String {
    match (mark["tcp_bit"].as_u64(), mark["dscp"].as_u64()) {
        (Some(bit), _) => format!("{bit:#x}"),
        (_, Some(dscp)) => format!("dscp={dscp}"),
        _ => String::new(),
    }
}

fn flow_line(flow: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let rude = &flow["rude"];
    format!(
        "  {} {} > {}, rule {}, uid {}: {} in flight, fair window {}, {} packets marked",
        text(&rude["mode"]).replace('_', " "),
        text(&flow["local"]),
        text(&flow["remote"]),
        text(&flow["rule"]),
        rude["user"],
        flow["in_flight_pkts"],
        rude["fair_cwnd_pkts"],
        rude["marked_pkts"]
    )
}

/// This process becomes the command: exit status and signals are the command's own. The daemon removes
/// the cgroup when nothing runs in it any more.
fn run_program(arguments: &RudeRunArguments) -> Result<()> {
    let instance = Instance::new(&arguments.instance, None)?;
    let kernel = Kernel::open(instance.places)?;
    let mut command = Command::new(&arguments.command[0]);
    command.args(&arguments.command[1..]);
    if let Some(name) = &arguments.user {
        let account = account(name).with_context(|| format!("/etc/passwd has no user {name}"))?;
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
    let present = present.context("this process is in no cgroup 2")?;
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
