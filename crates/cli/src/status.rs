// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath status` and `fatpath unload`.

use crate::archive::time::shown as shown_time;
use crate::arguments::{StatusArguments, UnloadArguments};
use anyhow::Result;
use fatpath_api::endpoint::GetStatus;
use fatpath_api::{
    ArchiveStatus, Change, Counts, KernelStatus, LogStatus, MeasureStatus, MeasuredRule, PinKind,
    RudeGate, SampleCounts, Status, StatusWithoutDaemon, TraceStatus, UnloadReport,
};
use fatpath_daemon::{Instance, client};
use fatpath_host::Host;
use fatpath_kernel::{Kernel, KernelError};
use fatpath_units::{show_bytes, show_count, show_rate, show_time};
use serde::Serialize;
use std::io::{Write, stdout};
use std::process::ExitCode;
use std::time::Duration;

/// As of `systemctl status`: no daemon runs.
const NOT_RUNNING: u8 = 3;

/// With a daemon it is the daemon's answer; without one, what is pinned and journalled.
pub fn status(arguments: &StatusArguments) -> Result<ExitCode> {
    let instance = arguments.of.instance()?;
    let (json, verbose) = (arguments.json, arguments.verbose);
    let (text, code) = match client::get::<GetStatus>(&instance.socket())? {
        Some(status) if json => (as_json(&status)?, 0),
        Some(status) => (of_daemon(&status, verbose), 0),
        None => {
            let status = without_daemon(&instance)?;
            let text = match json {
                true => as_json(&status)?,
                false => of_pins(&status, verbose),
            };
            (text, NOT_RUNNING)
        }
    };
    stdout().write_all(text.as_bytes())?;
    Ok(code.into())
}

fn as_json(status: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string_pretty(status)? + "\n")
}

fn without_daemon(instance: &Instance) -> Result<StatusWithoutDaemon> {
    let kernel = match Kernel::open(instance.places.clone()) {
        Ok(kernel) => Some(kernel),
        Err(KernelError::NotLoaded(_)) => None,
        Err(error) => return Err(error.into()),
    };
    Ok(StatusWithoutDaemon {
        pid: (),
        kernel: kernel.as_ref().map(Kernel::status).transpose()?,
        rude: kernel.as_ref().map(Kernel::rude_gate).transpose()?,
        host_changes: Host::open(&instance.run_dir)?.changes().to_vec(),
    })
}

/// What matters first: whether it runs, by what policy, the gate, counters, errors.
fn of_daemon(status: &Status, verbose: bool) -> String {
    let (version, pid) = (&status.version, status.pid);
    let up = humantime::format_duration(Duration::from_secs(status.uptime_s));
    let rules = show_count(status.kernel.rules.len(), "rule");
    let mut lines = vec![
        format!("daemon       runs: fatpath {version}, pid {pid}, up {up}"),
        format!("policy       {}: {rules}", status.policy_file),
    ];
    lines.extend(status.rude.as_ref().map(rude_line));
    lines.extend(counter_lines(&status.kernel));
    lines.extend(
        status
            .page_error
            .as_ref()
            .map(|error| format!("page         not served over TCP: {error}; tried again")),
    );
    lines.extend(log_line("flow log ", &status.flow_log));
    let event_log = status.event_log.as_ref();
    lines.extend(event_log.and_then(|log| log_line("event log", log)));
    lines.extend(status.archive.iter().flat_map(archive_lines));
    lines.extend(status.measure.iter().flat_map(measure_lines));
    lines.extend(status.measured.iter().map(measured_line));
    lines.extend(status.traces.iter().flat_map(trace_lines));
    lines.extend(host_lines(&status.host_changes, verbose));
    lines.push(match verbose {
        true => pin_lines(&status.kernel).join("\n"),
        false => loaded_line(&status.kernel),
    });
    lines.join("\n") + "\n"
}

fn archive_lines(archive: &ArchiveStatus) -> Vec<String> {
    let first = format!(
        "archive      {}: {}, {}; {} in the spool ({}), the oldest for {:.0} s",
        archive.folder.display(),
        show_count(archive.days.len(), "day"),
        show_bytes(archive.store_bytes),
        show_count(archive.spool_events, "event"),
        show_bytes(archive.spool_bytes),
        archive.lag_s,
    );
    let mut lines = vec![first];
    let errors = [
        ("the spool", &archive.spool_error),
        ("the store", &archive.store_error),
    ];
    let errors = errors
        .into_iter()
        .filter_map(|(what, error)| Some((what, error.as_ref()?)));
    lines.extend(errors.map(|(what, error)| format!("             {what}: {error}")));
    let dropped = archive
        .dropped
        .iter()
        .map(|drops| (drops.kind.as_str(), drops.events));
    let lost = dropped.chain([
        ("unqueued", archive.unqueued),
        ("refused by the store", archive.refused),
    ]);
    let lost: Vec<String> = lost
        .filter(|(_, events)| *events > 0)
        .map(|(what, events)| format!("{events} {what}"))
        .collect();
    if !lost.is_empty() {
        lines.push(format!("             events lost: {}", lost.join(", ")));
    }
    lines
}

fn measured_line(rule: &MeasuredRule) -> String {
    let rate = rule.rate_bps.map(show_rate);
    let rtt = rule.rtt_us.map(|us| show_time(us.into()));
    let known: Vec<String> = rate.into_iter().chain(rtt).collect();
    let known = match known.is_empty() {
        true => "nothing known".to_owned(),
        false => known.join(", "),
    };
    let by = match (&rule.by, &rule.since) {
        (Some(by), Some(since)) => format!("measured {by}, since {since}"),
        _ => "not measured yet".to_owned(),
    };
    format!("path         of rule {}: {known}; {by}", rule.rule)
}

fn trace_lines(trace: &TraceStatus) -> Vec<String> {
    let first = format!(
        "trace        {}: {} now, {} written; {} ({}) in {}",
        trace.name,
        show_count(trace.flows, "flow"),
        show_count(trace.written, "sample"),
        show_count(trace.files, "finished file"),
        show_bytes(trace.bytes),
        trace.folder.display(),
    );
    let lost = [
        (
            trace.flows_left_out,
            "flow",
            "not traced: max_flows was reached",
        ),
        (trace.missing, "sample", "missing"),
        (
            trace.unread,
            "sample",
            "were missed: the daemon could not keep up (all flows counted)",
        ),
    ];
    let lost = lost.into_iter().filter(|(count, ..)| *count > 0);
    let lost = lost.map(|(count, noun, what)| format!("{} {what}", show_count(count, noun)));
    let lines = lost.chain(trace.error.clone());
    std::iter::once(first)
        .chain(lines.map(|line| format!("             {line}")))
        .collect()
}

fn measure_lines(measure: &MeasureStatus) -> Vec<String> {
    let next = match (&measure.next, measure.next_due_us) {
        (Some(test), Some(due_us)) => format!("; next {test} at {}", shown_time(due_us)),
        _ => String::new(),
    };
    let first = format!(
        "tests        {}: {}, {} run now{next}; {} succeeded, {} failed, {} left out",
        measure.file.display(),
        show_count(measure.tests, "test"),
        measure.running.len(),
        show_count(measure.succeeded, "run"),
        measure.failed,
        measure.left_out,
    );
    let errors = [
        ("the file is not taken", &measure.file_error),
        ("the last failure", &measure.last_error),
    ];
    let errors = errors
        .into_iter()
        .filter_map(|(what, error)| Some(format!("             {what}: {}", error.as_ref()?)));
    std::iter::once(first).chain(errors).collect()
}

fn of_pins(status: &StatusWithoutDaemon, verbose: bool) -> String {
    let mut lines = vec!["daemon       does not run".to_owned()];
    match &status.kernel {
        None => lines.push("kernel half  not loaded: nothing is tuned".to_owned()),
        Some(kernel) => {
            lines.extend(status.rude.as_ref().map(rude_line));
            lines.extend(counter_lines(kernel));
        }
    }
    lines.extend(host_lines(&status.host_changes, verbose));
    match (&status.kernel, verbose) {
        (Some(kernel), true) => lines.extend(pin_lines(kernel)),
        (Some(kernel), false) => lines.push(loaded_line(kernel)),
        (None, _) => {}
    }
    lines.join("\n") + "\n"
}

fn rude_line(gate: &RudeGate) -> String {
    match gate.is_open {
        false => "Rude TCP     the gate is closed".to_owned(),
        true => format!(
            "Rude TCP     the gate is open, mark {}: flows that rules allow run without congestion control",
            gate.mark
        ),
    }
}

fn host_lines(changes: &[Change], verbose: bool) -> Vec<String> {
    let shown = changes.iter().filter(|_| verbose);
    let first = format!("host         {}", show_count(changes.len(), "change"));
    let shown = shown.map(|change| format!("  {}", describe(change)));
    std::iter::once(first).chain(shown).collect()
}

fn log_line(title: &str, log: &LogStatus) -> Option<String> {
    let error = log.error.as_ref()?;
    Some(format!(
        "{title}    {error}: {} missing",
        show_count(log.missing, "line")
    ))
}

fn counter_lines(kernel: &KernelStatus) -> Vec<String> {
    let counts = &kernel.counts;
    let mut lines = vec![format!(
        "flows        {} matched a rule, {} matched none; {} lost, {} out of memory",
        counts.flows_met,
        counts.flows_passed,
        show_count(counts.events_lost, "event"),
        counts.flows_without_storage
    )];
    lines.extend(listed(kernel));
    lines.extend(bad_parameters(counts));
    lines.extend(withheld(counts));
    lines.push(sampled(kernel.instruments.as_ref()));
    lines.extend(kernel.instruments.as_ref().and_then(over_budget));
    lines
}

fn loaded_line(kernel: &KernelStatus) -> String {
    format!(
        "kernel half  {} in {}; --verbose lists pins, rules, laws and changes",
        show_count(kernel.pinned.len(), "pin"),
        kernel.pin_dir.display()
    )
}

fn pin_lines(kernel: &KernelStatus) -> Vec<String> {
    let mut lines = vec![
        format!("rules        {}", names(&kernel.rules)),
        format!("laws         {}", names(&kernel.laws)),
        format!("kernel half  {}", kernel.pin_dir.display()),
    ];
    let pins = kernel.pinned.iter();
    lines.extend(pins.map(|pin| format!("  {:8} {}", kind(pin.kind), pin.name)));
    lines
}

fn kind(kind: PinKind) -> &'static str {
    match kind {
        PinKind::Map => "map",
        PinKind::Link => "link",
        PinKind::Program => "program",
        PinKind::Law => "law",
    }
}

fn sampled(counts: Option<&SampleCounts>) -> String {
    let Some(counts) = counts else {
        return "instruments  not loaded: no flow is sampled".to_owned();
    };
    format!(
        "instruments  {} sampled, {} skipped (max_flows), {} out of memory; {}, {} lost",
        show_count(counts.flows_sampled, "flow"),
        counts.flows_beyond_bounds,
        counts.flows_without_storage,
        show_count(counts.samples, "sample"),
        counts.samples_lost
    )
}

/// Worth a line while the budget makes flows wait for their samples.
fn over_budget(counts: &SampleCounts) -> Option<String> {
    let is_longer = counts.interval_us > counts.interval_configured_us;
    is_longer.then(|| {
        format!(
            "sampling     each flow every {} ms in place of {} ms: the budget is {} samples a second \
             (sample_cpu_share and samples_per_s in [host]); {} events without a sample of their own",
            counts.interval_us / 1000,
            counts.interval_configured_us / 1000,
            counts.samples_per_s_max,
            counts.events_unsampled
        )
    })
}

/// Worth a line where some flows may be missing from every list.
fn listed(kernel: &KernelStatus) -> Option<String> {
    kernel.lists_by_namespace.then(|| {
        "             listed a network namespace at a time, since this kernel refuses iterators over maps: \
         those of a namespace without a process or a name are left out"
            .to_owned()
    })
}

fn bad_parameters(counts: &Counts) -> Option<String> {
    let times = counts.bad_law_parameters;
    (times > 0).then(|| {
        format!(
            "laws         parameters out of range {times} times: these flows ran as Reno; apply the policy again"
        )
    })
}

fn withheld(counts: &Counts) -> Option<String> {
    let times = counts.buffers_withheld;
    (times > 0).then(|| {
        format!(
            "memory       {times} buffers withheld: TCP memory was short (net.ipv4.tcp_mem, and tcp_mem_share in [host])"
        )
    })
}

fn describe(change: &Change) -> String {
    match change {
        Change::Sysctl {
            name,
            before,
            after,
        } => format!("{name}: {before} -> {after}"),
        Change::RouteAdded { route, .. } => format!("route {route} added"),
        Change::RouteChanged { route, .. } => format!("route {route} given metrics"),
        Change::Mount { at } => format!("BPF file system mounted at {}", at.display()),
    }
}

fn names(names: &[String]) -> String {
    match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(" "),
    }
}

/// Exit status 1 when something could not be put back.
pub fn unload(arguments: &UnloadArguments) -> Result<ExitCode> {
    let instance = Instance::new(&arguments.instance, None)?;
    let report = match arguments.orphans {
        true => fatpath_daemon::unregister_orphans(),
        false => fatpath_daemon::unload(&instance)?,
    };
    let failed = report.failed.iter();
    failed.for_each(|line| eprintln!("fatpath: error: {line}"));
    let text = match arguments.json {
        true => serde_json::to_string_pretty(&report)? + "\n",
        false if arguments.orphans => unregistered(&report),
        false => unloaded(&report),
    };
    let printed = stdout().write_all(text.as_bytes());
    if !report.failed.is_empty() {
        return Ok(ExitCode::FAILURE);
    }
    printed?;
    Ok(ExitCode::SUCCESS)
}

fn unregistered(report: &UnloadReport) -> String {
    format!("laws unregistered: {}\n", names(&report.removed))
}

fn unloaded(report: &UnloadReport) -> String {
    let first = format!(
        "{} removed, {} went back to the law of their network namespace",
        show_count(report.removed.len(), "pin"),
        show_count(report.flows_released, "flow")
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
    fn an_interval_that_the_budget_made_longer_is_told() {
        let told = |interval_us: u64| {
            over_budget(&SampleCounts {
                interval_us,
                interval_configured_us: 100_000,
                samples_per_s_max: 2666,
                ..SampleCounts::default()
            })
        };
        assert_eq!(told(100_000), None);
        let line = told(380_000).unwrap();
        assert!(line.contains("every 380 ms in place of 100 ms"), "{line}");
        assert!(line.contains("2666 samples a second"), "{line}");
    }

    #[test]
    fn a_list_that_may_lack_flows_is_told() {
        let lines = |lists_by_namespace| {
            counter_lines(&KernelStatus {
                lists_by_namespace,
                ..KernelStatus::default()
            })
        };
        let is_told = |line: &String| line.contains("without a process or a name");
        assert!(lines(true).iter().any(is_told));
        assert!(!lines(false).iter().any(is_told));
    }

    #[test]
    fn bad_parameters_are_told_with_the_remedy() {
        let lines = |times: u64| {
            let counts = Counts {
                bad_law_parameters: times,
                ..Counts::default()
            };
            counter_lines(&KernelStatus {
                counts,
                ..KernelStatus::default()
            })
        };
        let is_remedy =
            |line: &String| line.contains("out of range 3 times") && line.contains("apply");
        assert!(lines(3).iter().any(is_remedy));
        assert!(!lines(0).iter().any(|line| line.contains("out of range")));
    }
}
