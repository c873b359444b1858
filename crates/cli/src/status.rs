// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath status` and `fatpath unload`.

use crate::arguments::{StatusArguments, UnloadArguments};
use anyhow::Result;
use fatpath_daemon::{Instance, UnloadReport, client};
use fatpath_host::{Change, Host};
use fatpath_kernel::{Kernel, KernelError, Status};
use serde_json::{Value, json};
use std::io::{Write, stdout};
use std::process::ExitCode;

/// With a daemon it is the daemon's answer; without one, what is pinned and journalled.
pub fn status(arguments: &StatusArguments) -> Result<()> {
    let instance = Instance::new(&arguments.instance, None)?;
    let answer = match client::get(&instance.socket(), "/v1/status")? {
        Some(answer) => answer,
        None => without_daemon(&instance)?,
    };
    let text = match arguments.json {
        true => format!("{answer:#}\n"),
        false => table(&answer),
    };
    Ok(stdout().write_all(text.as_bytes())?)
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

fn table(answer: &Value) -> String {
    let mut lines = vec![match answer["pid"].as_u64() {
        Some(pid) => format!("daemon       pid {pid}, up {} s", answer["uptime_s"]),
        None => "daemon       does not run".to_owned(),
    }];
    let file = answer["policy_file"].as_str();
    lines.extend(file.map(|file| format!("policy       {file}")));
    match &answer["kernel"] {
        Value::Null => lines.push("kernel half  not loaded".to_owned()),
        kernel => lines.extend(kernel_lines(kernel)),
    }
    let changes = list(&answer["host_changes"]);
    lines.push(format!("host         {} changes", changes.len()));
    lines.extend(
        changes
            .iter()
            .map(|change| format!("  {}", describe(change))),
    );
    for (log, title) in [("flow_log", "flow log "), ("event_log", "event log")] {
        let error = answer[log]["error"].as_str();
        let missing = &answer[log]["missing"];
        lines.extend(error.map(|error| format!("{title}    {error}: {missing} lines missing")));
    }
    lines.join("\n") + "\n"
}

fn kernel_lines(kernel: &Value) -> Vec<String> {
    let counts = &kernel["counts"];
    let mut lines = vec![format!(
        "kernel half  {}",
        kernel["pin_dir"].as_str().unwrap_or_default()
    )];
    for pin in list(&kernel["pinned"]) {
        let text = |key: &str| pin[key].as_str().unwrap_or_default().to_owned();
        lines.push(format!("  {:8} {}", text("kind"), text("name")));
    }
    lines.push(format!("laws         {}", names(&kernel["laws"])));
    lines.push(format!("rules        {}", names(&kernel["rules"])));
    lines.push(format!(
        "flows        {} met a rule, {} met none; {} events lost, {} without storage",
        counts["flows_met"],
        counts["flows_passed"],
        counts["events_lost"],
        counts["flows_without_storage"]
    ));
    lines.extend(bad_parameters(counts));
    lines.push(sampled(&kernel["instruments"]));
    lines
}

fn sampled(counts: &Value) -> String {
    if counts.is_null() {
        return "instruments  not loaded: no flow is sampled".to_owned();
    }
    format!(
        "instruments  {} flows sampled, {} beyond the bounds, {} without storage; {} samples, {} lost",
        counts["flows_sampled"],
        counts["flows_beyond_bounds"],
        counts["flows_without_storage"],
        counts["samples"],
        counts["samples_lost"]
    )
}

fn bad_parameters(counts: &Value) -> Option<String> {
    let times = counts["bad_law_parameters"]
        .as_u64()
        .filter(|times| *times > 0)?;
    Some(format!(
        "laws         parameters out of range {times} times: these flows ran as Reno; apply the policy again"
    ))
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
    let names: Vec<String> = list(value)
        .iter()
        .filter_map(|v| v.as_str().map(str::to_owned))
        .collect();
    if names.is_empty() {
        "none".into()
    } else {
        names.join(" ")
    }
}

/// Exit status 1 when something could not be put back.
pub fn unload(arguments: &UnloadArguments) -> Result<ExitCode> {
    let instance = Instance::new(&arguments.instance, None)?;
    let report = fatpath_daemon::unload(&instance)?;
    let failed = report.failed.iter();
    failed.for_each(|line| eprintln!("fatpath: {line}"));
    let text = match arguments.json {
        true => serde_json::to_string_pretty(&report)? + "\n",
        false => unloaded(&report),
    };
    let told = stdout().write_all(text.as_bytes());
    if !report.failed.is_empty() {
        return Ok(ExitCode::FAILURE);
    }
    told?;
    Ok(ExitCode::SUCCESS)
}

fn unloaded(report: &UnloadReport) -> String {
    let first = format!(
        "{} pins removed, {} flows went back to their own law",
        report.removed.len(),
        report.flows_released
    );
    let lines = report.put_back.iter().chain(&report.left_alone);
    [&first]
        .into_iter()
        .chain(lines)
        .map(|line| format!("{line}\n"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_parameters_are_told_with_the_remedy() {
        let lines =
            |times: u64| kernel_lines(&json!({ "counts": { "bad_law_parameters": times } }));
        let told = |line: &String| line.contains("out of range 3 times") && line.contains("apply");
        assert!(lines(3).iter().any(told));
        assert!(!lines(0).iter().any(|line| line.contains("out of range")));
    }
}
