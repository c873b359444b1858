// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `[instruments]` section of the policy file. Start at [`read`].

use super::values::{self, MAX_FLOWS, MAX_FLOWS_PER_PREFIX, ONE_IN, SAMPLE_INTERVAL};
use crate::instruments::{DerivedText, MAX_DERIVED, MAX_FORMULA_BYTES};
use crate::problem::{Refusal, Report};
use crate::toml_reader::{Section, found, shortened, under_key};
use crate::{Instruments, Rule, SampledFlows};
use toml::de::{DeTable, DeValue};

const KEYS: [&str; 7] = [
    "flows",
    "rules",
    "interval",
    "one_in",
    "max_flows",
    "max_flows_per_prefix",
    "derived",
];

/// Reads the section; `rules` are those of the file.
pub(super) fn read(document: &DeTable, rules: &[Rule], report: &mut Report) -> Instruments {
    let mut instruments = Instruments::default();
    let Some(value) = document.get("instruments") else {
        return instruments;
    };
    let Some(table) = value.get_ref().as_table() else {
        let allowed = "a table, under a line `[instruments]`";
        report.add(value.span().start, found(value.get_ref(), allowed));
        return instruments;
    };
    let mut section = Section::open(report, table, "[instruments]", &KEYS);
    read_flows(&mut section, rules, &mut instruments);
    read_bounds(&mut section, &mut instruments);
    instruments.derived = read_derived(&mut section);
    instruments
}

fn read_bounds(section: &mut Section, instruments: &mut Instruments) {
    let Instruments {
        interval_us,
        one_in,
        max_flows,
        max_flows_per_prefix,
        ..
    } = instruments;
    for (key, measure, number) in [
        ("interval", &SAMPLE_INTERVAL, interval_us),
        ("one_in", &ONE_IN, one_in),
        ("max_flows", &MAX_FLOWS, max_flows),
        (
            "max_flows_per_prefix",
            &MAX_FLOWS_PER_PREFIX,
            max_flows_per_prefix,
        ),
    ] {
        let read = section.read(key, |value| measure.read_u32(value));
        *number = read.map_or(*number, |chosen| chosen.value);
    }
}

/// `rules` alone means `flows = "rules"`.
fn read_flows(section: &mut Section, rules: &[Rule], instruments: &mut Instruments) {
    let flows = section.read("flows", flows);
    let named = section.read_list("rules", |value| name_of_rule(value, rules));
    instruments.rules = named.into_iter().map(|(name, _)| name).collect();
    let names_rules = section.value("rules").map(|value| value.span());
    if let (Some(place), Some(flows @ (SampledFlows::All | SampledFlows::None))) =
        (&names_rules, flows)
    {
        let message = format!("rules: flows is {:?}", flows.name());
        let remedy = "leave out one of the two, or write flows = \"rules\"";
        section
            .report
            .add(place.start, Refusal::new(message, remedy));
    }
    let otherwise = match names_rules {
        Some(_) => SampledFlows::Rules,
        None => SampledFlows::All,
    };
    instruments.flows = flows.unwrap_or(otherwise);
}

fn flows(value: &DeValue) -> Result<SampledFlows, Refusal> {
    let chosen = SampledFlows::ALL
        .into_iter()
        .find(|one| value.as_str() == Some(one.name()));
    chosen.ok_or_else(|| found(value, "\"all\", \"rules\" or \"none\""))
}

fn name_of_rule(value: &DeValue, rules: &[Rule]) -> Result<String, Refusal> {
    let name = values::name(value)?;
    match rules.iter().any(|rule| rule.name == name) {
        true => Ok(name),
        false => Err(Refusal::new(
            format!("no rule of this file is named `{name}`"),
            "name a [[rule]], or leave the key out",
        )),
    }
}

fn read_derived(section: &mut Section) -> Vec<DerivedText> {
    let Some(value) = section.value("derived") else {
        return Vec::new();
    };
    let start = value.span().start;
    let Some(table) = value.get_ref().as_table() else {
        let allowed = "a table of formulas, under a line `[instruments.derived]`";
        let refusal = under_key("derived", found(value.get_ref(), allowed));
        section.report.add(start, refusal);
        return Vec::new();
    };
    if table.len() > MAX_DERIVED {
        let message = format!("derived: {} formulas", table.len());
        let refusal = Refusal::new(message, format!("allowed: at most {MAX_DERIVED}"));
        section.report.add(start, refusal);
        return Vec::new();
    }
    let formulas = table.iter().filter_map(|(key, value)| {
        let place = key.span().start;
        match formula(key.get_ref(), value.get_ref()) {
            Ok(formula) => Some((place, key.get_ref().to_string(), formula)),
            Err(refusal) => {
                section.report.add(place, refusal);
                None
            }
        }
    });
    let mut formulas: Vec<_> = formulas.collect();
    formulas.sort();
    let derived = formulas
        .into_iter()
        .map(|(place, name, formula)| DerivedText {
            name,
            formula,
            line: section.report.line(place),
        });
    derived.collect()
}

fn formula(name: &str, value: &DeValue) -> Result<String, Refusal> {
    let begins = name.starts_with(|letter: char| letter.is_ascii_alphabetic());
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if !begins || name.len() > 63 || !name.bytes().all(plain) {
        let message = format!("`{}` cannot name a derived event", shortened(name));
        let allowed = "allowed: a letter, then letters, digits and `_`, 63 in all";
        return Err(Refusal::new(message, allowed));
    }
    match value.as_str() {
        Some(text) if (1..=MAX_FORMULA_BYTES).contains(&text.len()) => Ok(text.to_owned()),
        _ => Err(under_key(
            name,
            found(
                value,
                "a formula of 1 to 1024 bytes: \"DataBytesOut * 8 / (now - StartTime)\"",
            ),
        )),
    }
}
