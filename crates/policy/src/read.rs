// SPDX-License-Identifier: MIT OR Apache-2.0
//! The policy file: TOML text to a [`Policy`], or to every problem that it has.
//!
//! Every value is checked here and nowhere else. Start at [`parse`]; [`rule`] reads one rule, and
//! each kind of value has its reader below.

mod host;
mod instruments;
mod law;
mod rude;
mod rule;
mod start;
mod values;

pub(crate) use values::Measure;

use crate::policy::{MAX_FILE_BYTES, MAX_PREFIXES_PER_SIDE, MAX_RULES};
use crate::problem::{Refusal, Report};
use crate::toml_reader::{Section, found};
use crate::{Classifier, MAX_PORT_CUTS, Policy, Problem, Rule, review};
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use toml::de::DeTable;

/// The longest text of which all syntax errors are told. They take up to 300 times the text's length
/// in memory; of a longer text only the first is told.
const MAX_RECOVERED_BYTES: usize = 256 << 10;

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
            let refusal = Refusal::new("not UTF-8 text", "a policy file is TOML, which is UTF-8");
            Err(Problem::alone(valid, valid.len(), refusal))
        }
    }
}

/// Reads a policy file. `registered_laws` are the laws that the kernel has; with `None` any name passes.
///
/// # Errors
/// All problems in file order, at least one and about 100 at most. Where the text is no
/// TOML, only that is told.
pub fn parse(text: &str, registered_laws: Option<&[String]>) -> Result<Policy, Vec<Problem>> {
    refuse_length(text.len())?;
    let mut report = Report::on(text);
    refuse_nothing(text, &mut report);
    let document = document(text, &mut report);
    let policy = document_to_policy(&document, registered_laws, &mut report);
    match report.is_empty() {
        true => Ok(policy),
        false => Err(report.into_problems()),
    }
}

/// The text as TOML; empty when it is none, for what is left of it would only mislead.
fn document<'t>(text: &'t str, report: &mut Report) -> DeTable<'t> {
    let first = match DeTable::parse(text) {
        Ok(document) => return document.into_inner(),
        Err(first) => first,
    };
    let errors = match text.len() <= MAX_RECOVERED_BYTES {
        true => DeTable::parse_recoverable(text).1,
        false => vec![first],
    };
    errors.iter().for_each(|error| syntax(error, report));
    DeTable::new()
}

fn document_to_policy(document: &DeTable, laws: Option<&[String]>, report: &mut Report) -> Policy {
    Section::open(
        report,
        document,
        "a policy file",
        &["host", "instruments", "rule"],
    );
    let mut policy = Policy {
        rules: rules(document, laws, report),
        ..Policy::default()
    };
    policy.host = host::read(document, &policy.rules, report);
    policy.instruments = instruments::read(document, &policy.rules, report);
    if report.is_empty() {
        policy.warnings = review::warnings(&policy, &Classifier::build(&policy));
    }
    policy
}

fn rules(document: &DeTable, laws: Option<&[String]>, report: &mut Report) -> Vec<Rule> {
    let Some(value) = document.get("rule") else {
        return Vec::new();
    };
    let tables: Option<Vec<_>> = value.get_ref().as_array().and_then(|items| {
        items
            .iter()
            .map(|item| item.get_ref().as_table().map(|table| (table, item.span())))
            .collect()
    });
    let Some(tables) = tables else {
        report.add(
            value.span().start,
            found(value.get_ref(), "rules, each under a line `[[rule]]`"),
        );
        return Vec::new();
    };
    if let Some((_, place)) = tables.get(MAX_RULES) {
        let message = format!("{} rules", tables.len());
        report.add(
            place.start,
            Refusal::new(message, format!("allowed: at most {MAX_RULES}")),
        );
        return Vec::new();
    }
    let mut limits = Limits::default();
    let mut read_one = |(table, place): (&DeTable, Range<usize>)| {
        let rule = rule::read(table, place.clone(), laws, report);
        limits.check(&rule, table, place, report);
        rule
    };
    tables.into_iter().map(&mut read_one).collect()
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
    fn check(&mut self, rule: &Rule, table: &DeTable, place: Range<usize>, report: &mut Report) {
        self.check_name(rule, table, report);
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
                report.add(
                    place.start,
                    too_many("prefixes", key, MAX_PREFIXES_PER_SIDE),
                );
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
                report.add(
                    place.start,
                    too_many("beginnings and ends of ranges", key, MAX_PORT_CUTS - 1),
                );
            }
        }
    }

    fn check_name(&mut self, rule: &Rule, table: &DeTable, report: &mut Report) {
        let Some(value) = table.get("name").filter(|_| !rule.name.is_empty()) else {
            return;
        };
        if let Some(line) = self.lines_by_name.insert(rule.name.clone(), rule.line) {
            let message = format!(
                "a second rule named `{}`; the first is in line {line}",
                rule.name
            );
            report.add(
                value.span().start,
                Refusal::new(message, "each rule needs a name of its own"),
            );
        }
    }
}

/// Whether a limit was passed just now, so that it is told once.
fn passes(before: usize, now: usize, limit: usize) -> bool {
    before <= limit && now > limit
}

fn too_many(what: &str, key: &str, limit: usize) -> Refusal {
    let message = format!("up to this rule there are too many {what} in `{key}`");
    Refusal::new(message, format!("allowed: {limit} in all rules together"))
}

fn refuse_length(length_bytes: usize) -> Result<(), Vec<Problem>> {
    if length_bytes <= MAX_FILE_BYTES {
        return Ok(());
    }
    let message = format!("the file has {length_bytes} bytes");
    let allowed = format!("allowed: at most {MAX_FILE_BYTES} bytes (16 MiB)");
    Err(Problem::alone("", 0, Refusal::new(message, allowed)))
}

/// An empty file is more often a failed copy than a wish; a file of comments is a wish.
fn refuse_nothing(text: &str, report: &mut Report) {
    if text.trim().is_empty() {
        let remedy = "write a [[rule]] or a [host] section; to tune nothing, leave a comment (#) in the file";
        report.add(0, Refusal::new("the file is empty", remedy));
    }
}

fn syntax(error: &toml::de::Error, report: &mut Report) {
    let place = error.span().unwrap_or_default();
    let refusal = match error.message().split_once(", expected ") {
        Some((message, expected)) if expected != "nothing" => {
            Refusal::new(message, format!("expected {expected}"))
        }
        Some((message, _)) => Refusal::new(message, "a policy file is TOML (https://toml.io)"),
        None if error.message() == "duplicate key" => {
            Refusal::new("the same key a second time", "each key once in its table")
        }
        None => Refusal::new(error.message(), "a policy file is TOML (https://toml.io)"),
    };
    report.add(place.start, refusal);
}
