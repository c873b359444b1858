// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath status` and `fatpath unload`.

use crate::arguments::{StatusArguments, UnloadArguments};
use anyhow::Result;
use fatpath_daemon::{Instance, client};
use fatpath_host::{Change, Host};
use fatpath_kernel::{Kernel, KernelError, Status};
use serde_json::{Value, json};
use std::process::ExitCode;

/// With a daemon it is the daemon's answer; without one, what is pinned and journalled.
pub fn status(arguments: &StatusArguments) -> Result<()> {
    let instance = Instance::new(&arguments.instance, None)?;
    let answer = match client::get(&instance.socket(), "/v1/status")? {
        Some(answer) => answer,
        None => without_daemon(&instance)?,
    };
    match arguments.json {
        true => println!("{}", serde_json::to_string_pretty(&answer)?),
        false => print(&answer),
    }
    Ok(())
}

fn without_daemon(instance: &Instance) -> Result<Value> {
    let kernel: Option<Status> = match Kernel::open(instance.places.clone()) {
        Ok(kernel) => Some(kernel.status()?),
        Err(KernelError::NotLoaded(_)) => None,
        Err(error) => return Err(error.into()),
    };
    let changes: Vec<Change> = Host::open(&instance.run_dir)?.changes().to_vec();
    Ok(json!({ "pid": null, "kernel": kernel, "host_changes": changes }))
}

fn print(answer: &Value) {
    match answer["pid"].as_u64() {
        Some(pid) => println!("daemon       pid {pid}, up {} s", answer["uptime_s"]),
        None => println!("daemon       does not run"),
    }
    if let Some(file) = answer["policy_file"].as_str() {
        println!("policy       {file}");
    }
    let kernel = &answer["kernel"];
    if kernel.is_null() {
        println!("kernel half  not loaded");
    } else {
        print_kernel(kernel);
    }
    let changes = list(&answer["host_changes"]);
    println!("host         {} changes", changes.len());
    changes.iter().for_each(|change| println!("  {}", describe(change)));
    if let Some(error) = answer["flow_log"]["error"].as_str() {
        println!("flow log     {error}: {} lines missing", answer["flow_log"]["missing"]);
    }
}

fn print_kernel(kernel: &Value) {
    let counts = &kernel["counts"];
    println!("kernel half  {}", kernel["pin_dir"].as_str().unwrap_or_default());
    for pin in list(&kernel["pinned"]) {
        let text = |key: &str| pin[key].as_str().unwrap_or_default().to_owned();
        println!("  {:8} {}", text("kind"), text("name"));
    }
    println!("laws         {}", names(&kernel["laws"]));
    println!("rules        {}", names(&kernel["rules"]));
    println!(
        "flows        {} met a rule, {} met none; {} events lost, {} without storage",
        counts["flows_met"],
        counts["flows_passed"],
        counts["events_lost"],
        counts["flows_without_storage"]
    );
}

fn describe(change: &Value) -> String {
    let text = |key: &str| change[key].as_str().unwrap_or_default().to_owned();
    match change["kind"].as_str().unwrap_or_default() {
        "sysctl" => format!("{}: {} -> {}", text("name"), text("before"), text("after")),
        "route_added" => format!("route {} added", text("route")),
        "route_changed" => format!("route {} given metrics", text("route")),
        "mount" => format!("BPF file system mounted at {}", text("at")),
        other => other.to_owned(),
    }
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

fn names(value: &Value) -> String {
    let names: Vec<String> =
        list(value).iter().filter_map(|v| v.as_str().map(str::to_owned)).collect();
    if names.is_empty() { "none".into() } else { names.join(" ") }
}

/// Exit status 1 when something could not be put back.
pub fn unload(arguments: &UnloadArguments) -> Result<ExitCode> {
    let instance = Instance::new(&arguments.instance, None)?;
    let report = fatpath_daemon::unload(&instance)?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        println!(
            "{} pins removed, {} flows went back to their own law",
            report.removed.len(),
            report.flows_released
        );
        let lines = report.put_back.iter().chain(&report.left_alone);
        lines.for_each(|line| println!("{line}"));
    }
    report.failed.iter().for_each(|line| eprintln!("fatpath: {line}"));
    Ok(if report.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
