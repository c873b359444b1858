// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `[instruments]` section of the policy file. Start at [`read`].

use super::values::{self, MAX_FLOWS, MAX_FLOWS_PER_PREFIX, ONE_IN, SAMPLE_INTERVAL};
use crate::instruments::{DerivedText, MAX_DERIVED, MAX_FORMULA_BYTES};
use crate::{Instruments, Rule, SampledFlows};
use fatpath_toml::{Refusal, Section, Value, shortened};

/// Reads the section; `rules` are those of the file.
pub(super) fn read(root: &mut Section, rules: &[Rule]) -> Instruments {
    let mut instruments = Instruments::default();
    let allowed = "a table, under a line `[instruments]`";
    if let Some(section) = root.read("instruments", |value| value.section_or(allowed)) {
        let mut section = section.titled("[instruments]");
        read_flows(&mut section, rules, &mut instruments);
        read_bounds(&mut section, &mut instruments);
        instruments.derived = read_derived(&mut section);
        section.note_unknown();
    }
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
    let names_rules = section.value("rules");
    if let (Some(names), Some(flows @ (SampledFlows::All | SampledFlows::None))) =
        (&names_rules, flows)
    {
        let refusal = names.refusal(format!("flows is {:?}", flows.name()));
        let remedy = "leave out one of the two, or write flows = \"rules\"";
        section.note(refusal.allowed(remedy));
    }
    let otherwise = match names_rules {
        Some(_) => SampledFlows::Rules,
        None => SampledFlows::All,
    };
    instruments.flows = flows.unwrap_or(otherwise);
}

fn flows(value: &Value) -> Result<SampledFlows, Refusal> {
    let chosen = SampledFlows::ALL
        .into_iter()
        .find(|one| value.as_str() == Some(one.name()));
    chosen.ok_or_else(|| value.found("\"all\", \"rules\" or \"none\""))
}

pub(super) fn name_of_rule(value: &Value, rules: &[Rule]) -> Result<String, Refusal> {
    let name = values::name(value)?;
    match rules.iter().any(|rule| rule.name == name) {
        true => Ok(name),
        false => Err(value
            .refusal(format!("no rule of this file is named `{name}`"))
            .allowed("name a [[rule]], or leave the key out")),
    }
}

fn read_derived(section: &mut Section) -> Vec<DerivedText> {
    let Some(table) = section.read("derived", |value| formulas(value)) else {
        return Vec::new();
    };
    let derived = table.entries().into_iter().filter_map(|(key, value)| {
        let name = key.get_ref();
        Some(DerivedText {
            name: name.to_string(),
            formula: table.noted(formula(name, key.span().start, &value))?,
            line: value.line(),
        })
    });
    derived.collect()
}

fn formulas<'v>(value: &Value<'v>) -> Result<Section<'v>, Refusal> {
    let section = value.section_or("a table of formulas, under a line `[instruments.derived]`")?;
    match section.table().len() {
        0..=MAX_DERIVED => Ok(section.titled("[instruments.derived]")),
        many => Err(value
            .refusal(format!("{many} formulas"))
            .allowed(format!("allowed: at most {MAX_DERIVED}"))),
    }
}

fn formula(name: &str, name_at: usize, value: &Value) -> Result<String, Refusal> {
    let begins = name.starts_with(|letter: char| letter.is_ascii_alphabetic());
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if !begins || name.len() > 63 || !name.bytes().all(plain) {
        let message = format!("`{}` cannot name a derived event", shortened(name));
        let allowed = "allowed: a letter, then letters, digits and `_`, 63 in all";
        return Err(Refusal::new(name_at, message).allowed(allowed));
    }
    match value.as_str() {
        Some(text) if (1..=MAX_FORMULA_BYTES).contains(&text.len()) => Ok(text.to_owned()),
        _ => {
            Err(value
                .found("a formula of 1 to 1024 bytes: \"DataBytesOut * 8 / (now - StartTime)\""))
        }
    }
}
