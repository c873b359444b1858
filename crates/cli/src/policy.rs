// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath policy …` and `fatpath import-wad`.

use crate::arguments::{
    ApplyArguments, CheckArguments, ExplainArguments, ImportWadArguments, PolicyCommand,
};
use crate::not_running::not_running;
use crate::paths::{learned_of, what_flows_get};
use crate::try_path::suggest;
use anyhow::{Context, Result, anyhow, bail};
use fatpath_api::LearnedPath;
use fatpath_api::endpoint::GetStatus;
use fatpath_daemon::{
    Instance, InstanceOptions, client, most_measured_buffer_bytes, read_policy_file,
};
use fatpath_host::Sysctls;
use fatpath_kernel::{cgroup_memory_max, tick_us};
use fatpath_policy::{
    AutoMode, Explanation, Flow, MeasuredPath, MeasuredPaths, Policy, Problem, Refused, explain,
    memory_warnings,
};
use fatpath_units::show_count;
use serde::Serialize;
use std::fmt;
use std::io::{Read, Write, stdout};

/// More than the importer takes, so that it is the importer that refuses.
const MAX_WAD_BYTES: u64 = 2 << 20;

pub fn run(command: PolicyCommand) -> Result<()> {
    match command {
        PolicyCommand::Check(arguments) => check(&arguments),
        PolicyCommand::Explain(arguments) => explain_flow(&arguments),
        PolicyCommand::Suggest(probe) => suggest(&probe),
        PolicyCommand::Apply(arguments) => apply(&arguments),
    }
}

fn check(arguments: &CheckArguments) -> Result<()> {
    let mut policy = read_policy_file(&arguments.file)?;
    let pressure_bytes = Sysctls::default().tcp_pressure_bytes();
    let of_memory = memory_warnings(&policy, pressure_bytes, cgroup_memory_max);
    policy.warnings.extend(of_memory);
    if arguments.json {
        return Ok(writeln!(
            stdout(),
            "{}",
            serde_json::to_string_pretty(&policy)?
        )?);
    }
    let name = arguments.file.display().to_string();
    for warning in &policy.warnings {
        eprintln!("fatpath: {}", warning.warning_in(&name));
    }
    Ok(writeln!(
        stdout(),
        "{name}: {}, {}",
        show_count(policy.rules.len(), "rule"),
        show_count(policy.warnings.len(), "warning")
    )?)
}

fn explain_flow(arguments: &ExplainArguments) -> Result<()> {
    let policy = as_measured(read_policy_file(&arguments.policy)?, &arguments.instance);
    let mut flow = Flow::parse(&arguments.destination)?;
    if let Some(source) = &arguments.source {
        let source = Flow::parse(source).context("--source")?;
        flow.source = Some(source.destination);
        flow.source_port = source.destination_port;
    }
    flow.cgroup = arguments.cgroup.clone();
    let host = Sysctls::default();
    let explanation = explain(&policy, &flow);
    let explanation = explanation.on_host(&policy, |name| host.number(name), tick_us());
    let learned = match explanation.rule {
        None if policy.auto.mode != AutoMode::Off => {
            learned_of(&arguments.instance, flow.destination, flow.source)
        }
        _ => Ok(Vec::new()),
    };
    // Also where no daemon runs the file is explained.
    let learned = learned.unwrap_or_else(|error| {
        eprintln!("fatpath: warning: what was learned of the path is not known: {error:#}");
        Vec::new()
    });
    let explained = Explained {
        explanation,
        learned,
    };
    let text = match arguments.json {
        true => serde_json::to_string_pretty(&explained)? + "\n",
        false => explained.to_string(),
    };
    Ok(stdout().write_all(text.as_bytes())?)
}

/// With what the running daemon has measured for its rules of these names.
fn as_measured(policy: Policy, instance: &InstanceOptions) -> Policy {
    if policy.measured_rules().next().is_none() {
        return policy;
    }
    let followed = measured_of(instance).and_then(|measured| {
        let refused = |problems: Vec<Problem>| anyhow!("{problems:?}");
        policy.with_measured(&measured).map_err(refused)
    });
    followed.unwrap_or_else(|error| {
        eprintln!("fatpath: warning: what is measured of paths is not known: {error:#}");
        policy
    })
}

fn measured_of(instance: &InstanceOptions) -> Result<MeasuredPaths> {
    let instance = Instance::new(instance, None)?;
    let status = client::get::<GetStatus>(&instance.socket())?;
    let status = status.with_context(|| not_running(&instance))?;
    let most_buffer_bytes = most_measured_buffer_bytes();
    let measured = status.measured.into_iter().filter_map(|rule| {
        let path = MeasuredPath {
            rtt_us: rule.rtt_us,
            rate_bps: rule.rate_bps,
            by: rule.by?,
            most_buffer_bytes,
        };
        Some((rule.rule, path))
    });
    Ok(measured.collect())
}

/// What a flow would get by the file, and where no rule of it matches, by what was learned of its path.
#[derive(Serialize)]
struct Explained {
    #[serde(flatten)]
    explanation: Explanation,
    learned: Vec<LearnedPath>,
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.explanation.fmt(f)?;
        for path in &self.learned {
            let (prefix, local) = (&path.prefix, path.local);
            writeln!(
                f,
                "learned       {prefix} from {local}, by the running daemon"
            )?;
            writeln!(f, "{}", what_flows_get(path).join("\n"))?;
        }
        Ok(())
    }
}

fn apply(arguments: &ApplyArguments) -> Result<()> {
    let file = &arguments.file;
    read_policy_file(file)?;
    let instance = Instance::new(&arguments.instance, None)?;
    let text = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let applied = client::apply(&instance.socket(), &file.display().to_string(), text)?;
    let Some(applied) = applied else {
        bail!("{}", not_running(&instance));
    };
    let mut out = stdout().lock();
    if arguments.json {
        let json = serde_json::to_string_pretty(&applied)?;
        return Ok(writeln!(out, "{json}")?);
    }
    let mut notes = applied.notes.iter();
    notes.try_for_each(|note| writeln!(out, "{note}"))?;
    Ok(writeln!(
        out,
        "{} live, applied to {}",
        show_count(applied.rules, "rule"),
        show_count(applied.live_flows_met, "live flow")
    )?)
}

pub fn import_wad(arguments: &ImportWadArguments) -> Result<()> {
    let file = &arguments.file;
    let name = file.display().to_string();
    let mut text = String::new();
    std::fs::File::open(file)
        .and_then(|file| file.take(MAX_WAD_BYTES).read_to_string(&mut text))
        .with_context(|| format!("cannot read {name}"))?;
    let imported = match fatpath_policy::import_wad(&text) {
        Ok(imported) => imported,
        Err(problems) => {
            let refused = Refused {
                file: name,
                problems,
            };
            return Err(refused).context("not a WAD configuration");
        }
    };
    for note in &imported.notes {
        eprintln!("fatpath: {name}:{}: note: {}", note.line, note.message);
    }
    match &arguments.output {
        Some(output) => std::fs::write(output, imported.toml)
            .with_context(|| format!("cannot write {}", output.display()))?,
        None => stdout().write_all(imported.toml.as_bytes())?,
    }
    Ok(())
}
