// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `[[trace]]` tables of the policy file. Start at [`read`].

use super::instruments::name_of_rule;
use super::rule::read_match;
use super::values::{
    self, Measure, SAMPLE_INTERVAL, TRACE_BYTES, TRACE_FILE_BYTES, TRACE_FILES, TRACED_FLOWS,
};
use crate::trace::MAX_TRACES;
use crate::{Instruments, Rule, SampledFlows, Trace};
use fatpath_toml::{Refusal, Section, Value};
use fatpath_units::{show_bytes, show_time};
use std::path::{Component, PathBuf};

/// The longest path of a folder: with the names in it, what the kernel takes (PATH_MAX).
const MAX_FOLDER_BYTES: usize = 3_800;

/// Reads the tables; `rules` and `instruments` are those of the file.
pub(super) fn read(root: &mut Section, rules: &[Rule], instruments: &Instruments) -> Vec<Trace> {
    let tables = root.take_list("trace");
    let tables = root.noted(tables).unwrap_or_default();
    if let Some(one_too_many) = tables.get(MAX_TRACES) {
        let refusal = one_too_many.refusal(format!("{} traces", tables.len()));
        root.note(refusal.allowed(format!("allowed: at most {MAX_TRACES}")));
        return Vec::new();
    }
    let mut traces: Vec<Trace> = Vec::new();
    for table in tables {
        let mut section = table.titled("a trace");
        let trace = read_one(&mut section, rules);
        refuse_second(&section, &trace, &traces);
        refuse_small(&section, &trace);
        refuse_unsampled(&section, &trace, instruments);
        traces.push(trace);
    }
    traces
}

fn read_one(section: &mut Section, rules: &[Rule]) -> Trace {
    let mut trace = Trace::default();
    if !section.has("name") {
        let remedy =
            "write name = \"…\", a name of its own: its files are in a directory of that name";
        section.note(section.refusal("the trace has no name").allowed(remedy));
    }
    trace.name = section.read("name", name).unwrap_or_default();
    trace.matches = read_match(section);
    let named = section.read_list("rules", |value| name_of_rule(value, rules));
    trace.rules = named.into_iter().map(|(name, _)| name).collect();
    let number = |section: &mut Section, key, measure: &Measure, number: &mut u32| {
        let read = section.read(key, |value| measure.read_u32(value));
        *number = read.map_or(*number, |chosen| chosen.value);
    };
    number(
        section,
        "interval",
        &SAMPLE_INTERVAL,
        &mut trace.interval_us,
    );
    number(section, "max_flows", &TRACED_FLOWS, &mut trace.max_flows);
    number(section, "files", &TRACE_FILES, &mut trace.max_files);
    for (key, measure, bytes) in [
        ("file_size", &TRACE_FILE_BYTES, &mut trace.file_bytes),
        ("size", &TRACE_BYTES, &mut trace.total_bytes),
    ] {
        let read = section.read(key, |value| measure.read(value));
        *bytes = read.map_or(*bytes, |chosen| chosen.value);
    }
    trace.folder = section.read("folder", folder).unwrap_or(trace.folder);
    section.note_unknown();
    trace
}

/// As a rule's; it also names a folder.
fn name(value: &Value) -> Result<String, Refusal> {
    let name = values::name(value)?;
    match name.starts_with('.') {
        false => Ok(name),
        true => Err(value.found("a name that does not begin with `.`")),
    }
}

fn folder(value: &Value) -> Result<PathBuf, Refusal> {
    let text = value.raw()?;
    let path = PathBuf::from(text);
    let is_plain = |part: Component| matches!(part, Component::RootDir | Component::Normal(_));
    let is_good = path.is_absolute()
        && path.components().all(is_plain)
        && text.len() <= MAX_FOLDER_BYTES
        && !text.contains(char::is_control);
    match is_good {
        true => Ok(path),
        false => Err(value
            .found("the absolute path of a directory, without `..`: \"/var/lib/fatpath/traces\"")),
    }
}

fn refuse_second(section: &Section, trace: &Trace, before: &[Trace]) {
    let Some(value) = section.value("name") else {
        return;
    };
    if !trace.name.is_empty() && before.iter().any(|one| one.name == trace.name) {
        let refusal = value.refusal(format!("a second trace named `{}`", trace.name));
        section.note(refusal.allowed("each trace needs a name of its own"));
    }
}

/// One file grows while another one stays.
fn refuse_small(section: &Section, trace: &Trace) {
    let (file_bytes, total_bytes) = (trace.file_bytes, trace.total_bytes);
    if total_bytes >= 2 * file_bytes {
        return;
    }
    let message = format!(
        "the size of all files, {}, has no place for two files of {}",
        show_bytes(total_bytes),
        show_bytes(file_bytes)
    );
    let remedy = "make file_size smaller, or size at least twice as large as it";
    section.note(refusal_at(section, &["size", "file_size"], message).allowed(remedy));
}

/// Told at the first of these keys that is there.
fn refusal_at(section: &Section, keys: &[&str], message: String) -> Refusal {
    match keys.iter().find_map(|key| section.value(key)) {
        Some(value) => value.refusal(message),
        None => section.refusal(message),
    }
}

/// A trace has what the instruments sample, and no more.
fn refuse_unsampled(section: &Section, trace: &Trace, instruments: &Instruments) {
    let refuse = |key: &str, message: String, remedy: String| {
        section.note(refusal_at(section, &[key], message).allowed(remedy));
    };
    if trace.interval_us > 0 && trace.interval_us < instruments.interval_us {
        let of_trace = show_time(trace.interval_us.into());
        let sampled = show_time(instruments.interval_us.into());
        refuse(
            "interval",
            format!("{of_trace} is shorter than the interval of the instruments, {sampled}"),
            "write the interval under [instruments], too, or leave it out here".to_owned(),
        );
    }
    let is_sampled =
        |rule: &String| instruments.rules.is_empty() || instruments.rules.contains(rule);
    match instruments.flows {
        SampledFlows::All => {}
        SampledFlows::None => refuse(
            "name",
            "the instruments sample no flow, so none can be traced".to_owned(),
            "write flows = \"all\" or \"rules\" under [instruments]".to_owned(),
        ),
        SampledFlows::Rules => {
            if let Some(rule) = trace.rules.iter().find(|rule| !is_sampled(rule)) {
                refuse(
                    "rules",
                    format!("the instruments do not sample flows of rule `{rule}`"),
                    format!("add \"{rule}\" to `rules` under [instruments]"),
                );
            }
        }
    }
}
