// SPDX-License-Identifier: MIT OR Apache-2.0
//! The policy file: TOML text to a [`Policy`], or to every problem that it has.
//!
//! Every value is checked here and nowhere else. Start at [`parse`]; [`rule`] reads one rule, and
//! each kind of value has its reader below.

mod archive;
mod auto;
mod host;
mod instruments;
mod law;
mod path;
mod phases;
mod rude;
mod rule;
mod share;
mod start;
mod trace;
mod values;

pub(crate) use values::Measure;

use crate::policy::{MAX_FILE_BYTES, MAX_PREFIXES_PER_SIDE, MAX_RULES};
use crate::{Classifier, MAX_PORT_CUTS, MeasuredPaths, Policy, Problem, Rule, review};
use fatpath_toml::{Document, Refusal, Report, Section};
use std::collections::{BTreeSet, HashMap};

/// Reads a policy file that may be anything: not UTF-8, or far too long.
///
/// # Errors
/// As [`parse`], and one problem for bytes that are not UTF-8, at their place.
pub fn parse_bytes(
    bytes: &[u8],
    registered_laws: Option<&[String]>,
) -> Result<Policy, Vec<Problem>> {
    refuse_length(bytes.len())?;
    match std::str::from_utf8(bytes) {
        Ok(text) => parse(text, registered_laws),
        Err(error) => {
            let valid = std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default();
            let refusal = Refusal::new(valid.len(), "not UTF-8 text");
            Err(alone(
                valid,
                refusal.allowed("a policy file is TOML, which is UTF-8"),
            ))
        }
    }
}

/// Reads a policy file. `registered_laws` are the laws that the kernel has; with `None` any name passes.
///
/// # Errors
/// All problems in file order, at least one and about 100 at most. Where the text is no
/// TOML, only that is told.
pub fn parse(text: &str, registered_laws: Option<&[String]>) -> Result<Policy, Vec<Problem>> {
    parse_measured(text, registered_laws, &MeasuredPaths::new())
}

/// The same where something was measured.
pub(crate) fn parse_measured(
    text: &str,
    registered_laws: Option<&[String]>,
    measured: &MeasuredPaths,
) -> Result<Policy, Vec<Problem>> {
    refuse_length(text.len())?;
    let document = Document::parse("a policy file", text)?;
    let mut policy = read(document.root(()), text, registered_laws, measured);
    document.finish()?;
    policy.warnings = review::warnings(&policy, &Classifier::build(&policy));
    let is_measured = policy.measured_rules().next().is_some();
    policy.text = is_measured.then(|| text.into());
    Ok(policy)
}

impl Policy {
    /// What the file means once this was measured: everything that depends on it follows.
    ///
    /// # Errors
    /// When the file that was read is refused now, which is a defect.
    pub fn with_measured(&self, measured: &MeasuredPaths) -> Result<Policy, Vec<Problem>> {
        match &self.text {
            Some(text) => parse_measured(text, None, measured),
            None => Ok(self.clone()),
        }
    }
}

fn read(
    mut root: Section,
    text: &str,
    laws: Option<&[String]>,
    measured: &MeasuredPaths,
) -> Policy {
    refuse_nothing(text, &root);
    root.allow([
        "archive",
        "auto",
        "host",
        "instruments",
        "phases",
        "rule",
        "trace",
    ]);
    let mut policy = Policy {
        rules: rules(&mut root, laws, measured),
        ..Policy::default()
    };
    policy.host = host::read(&mut root, &policy.rules);
    policy.instruments = instruments::read(&mut root, &policy.rules);
    policy.archive = archive::read(&mut root);
    policy.auto = auto::read(&mut root, &policy.rules);
    policy.phases = phases::read(&mut root, &policy.rules);
    policy.traces = trace::read(&mut root, &policy.rules, &policy.instruments);
    root.note_unknown();
    policy
}

fn rules(root: &mut Section, laws: Option<&[String]>, measured: &MeasuredPaths) -> Vec<Rule> {
    let tables = root.take_list("rule");
    let tables = root.noted(tables).unwrap_or_default();
    if let Some(one_too_many) = tables.get(MAX_RULES) {
        let refusal = one_too_many.refusal(format!("{} rules", tables.len()));
        root.note(refusal.allowed(format!("allowed: at most {MAX_RULES}")));
        return Vec::new();
    }
    let mut limits = Limits::default();
    let tables = tables.into_iter().map(|table| table.titled("a rule"));
    let rules = tables.map(|mut section| {
        let rule = rule::read(&mut section, laws, measured);
        limits.check(&rule, &section);
        rule
    });
    rules.collect()
}

/// What only all rules together can exceed.
#[derive(Default)]
struct Limits {
    lines_by_name: HashMap<String, u32>,
    destinations: usize,
    sources: usize,
    destination_cuts: BTreeSet<u32>,
    source_cuts: BTreeSet<u32>,
}

impl Limits {
    fn check(&mut self, rule: &Rule, section: &Section) {
        self.check_name(rule, section);
        let matches = &rule.matches;
        for (total, more, key) in [
            (
                &mut self.destinations,
                matches.destination.len(),
                "destination",
            ),
            (&mut self.sources, matches.source.len(), "source"),
        ] {
            let before = std::mem::replace(total, *total + more);
            if passes(before, *total, MAX_PREFIXES_PER_SIDE) {
                section.note(too_many(section, "prefixes", key, MAX_PREFIXES_PER_SIDE));
            }
        }
        for (cuts, ranges, key) in [
            (
                &mut self.destination_cuts,
                &matches.destination_ports,
                "destination_ports",
            ),
            (&mut self.source_cuts, &matches.source_ports, "source_ports"),
        ] {
            // The table of cuts also has its first row, port 0.
            let before = cuts.len() + 1;
            cuts.extend(
                ranges
                    .iter()
                    .flat_map(|range| [range.first.into(), u32::from(range.last) + 1]),
            );
            if passes(before, cuts.len() + 1, MAX_PORT_CUTS) {
                let cuts = "beginnings and ends of ranges";
                section.note(too_many(section, cuts, key, MAX_PORT_CUTS - 1));
            }
        }
    }

    fn check_name(&mut self, rule: &Rule, section: &Section) {
        let Some(value) = section.value("name").filter(|_| !rule.name.is_empty()) else {
            return;
        };
        if let Some(line) = self.lines_by_name.insert(rule.name.clone(), rule.line) {
            let message = format!(
                "a second rule named `{}`; the first is in line {line}",
                rule.name
            );
            let refusal = Refusal::new(value.at(), message);
            section.note(refusal.allowed("each rule needs a name of its own"));
        }
    }
}

/// Whether a limit was passed just now, so that it is told once.
fn passes(before: usize, now: usize, limit: usize) -> bool {
    before <= limit && now > limit
}

fn too_many(section: &Section, what: &str, key: &str, limit: usize) -> Refusal {
    let message = format!("up to this rule there are too many {what} in `{key}`");
    section
        .refusal(message)
        .allowed(format!("allowed: {limit} in all rules together"))
}

fn refuse_length(length_bytes: usize) -> Result<(), Vec<Problem>> {
    if length_bytes <= MAX_FILE_BYTES {
        return Ok(());
    }
    let refusal = Refusal::new(0, format!("the file has {length_bytes} bytes"));
    let allowed = format!("allowed: at most {MAX_FILE_BYTES} bytes (16 MiB)");
    Err(alone("", refusal.allowed(allowed)))
}

/// The only problem of a text.
fn alone(text: &str, refusal: Refusal) -> Vec<Problem> {
    vec![Report::on(text).problem(refusal)]
}

/// An empty file is usually a failed copy; a file of comments is meant.
fn refuse_nothing(text: &str, root: &Section) {
    if text.trim().is_empty() {
        let remedy = "write a [[rule]] or a [host] section; to tune nothing, leave a comment (#) in the file";
        root.note(root.refusal("the file is empty").allowed(remedy));
    }
}
