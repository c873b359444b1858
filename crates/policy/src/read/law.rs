// SPDX-License-Identifier: MIT OR Apache-2.0
//! `congestion_control`: a law and its parameters. Start at [`read_law`].

use super::values::{self, STREAMS};
use crate::rule::Path;
use crate::settings::Chosen;
use crate::{Law, Setting, our_laws};
use fatpath_cc::{LawSpec, ParameterError, ParameterSpec};
use fatpath_toml::{Refusal, Section, Value};

const KEY: &str = "congestion_control";

/// What a buffer of `highspeed_buffer` is counted in: Ethernet's 1500 bytes less the headers of IPv4
/// and TCP with timestamps.
const ETHERNET_MSS_BYTES: u32 = 1448;

/// Ways to say (a, b) of fp_aimd; each excludes the others.
const EQUIVALENTS: [&str; 3] = ["virtual_mss", "streams", "highspeed_buffer"];

/// `"cubic"`, or a table with the key `law` and the law's parameters. `path` is `None` when a part of it was refused.
pub(super) fn read_law(
    section: &mut Section,
    path: Option<&Path>,
    laws: Option<&[String]>,
) -> Option<Chosen<Law>> {
    let value = section.take(KEY)?;
    if value.as_toml().as_table().is_none() {
        let name = section.noted(values::law_name(&value, laws))?;
        let law = Law::named(&name);
        let defaults = match law.parameters().is_empty() {
            true => "",
            false => ", default parameters",
        };
        return Some(Chosen::new(law, format!("given as {name}{defaults}")));
    }
    let mut table = section.noted(value.section())?;
    let Some(name) = table.take("law") else {
        let remedy = "write { law = \"fp_aimd\", a = 6, b = 0.3 }";
        section.note(value.refusal("the table has no `law`").allowed(remedy));
        return None;
    };
    let name = section.noted(values::law_name(&name.called(KEY), laws))?;
    let title = format!("the parameters of {name}");
    Some(read_parameters(table.titled(title), &name, path))
}

fn read_parameters(mut section: Section, name: &str, path: Option<&Path>) -> Chosen<Law> {
    let law = Law::named(name);
    let spec = law.ours().map(|ours| ours.spec());
    let Some(spec) = spec.filter(|spec| !spec.parameters.is_empty()) else {
        for (key, _) in section.entries() {
            section.note(no_parameters(key.get_ref(), key.span().start, name));
        }
        return Chosen::new(law, format!("given as {name}"));
    };
    let equivalents = if name == "fp_aimd" {
        &EQUIVALENTS[..]
    } else {
        &[]
    };
    let keys: Vec<&str> = spec.parameters.iter().map(|one| one.key).collect();
    let keys = [&keys, equivalents].concat();
    section.allow(keys.iter().copied());
    section.note_unknown();
    match equivalents.iter().find(|key| section.has(key)) {
        Some(key) => {
            read_equivalent(&mut section, key, &keys, path).unwrap_or(Chosen::new(law, ""))
        }
        None => read_each(&mut section, name, spec),
    }
}

/// The law's parameters one by one; those that are refused are noted and stay at their default.
fn read_each(section: &mut Section, name: &str, spec: &LawSpec) -> Chosen<Law> {
    let (mut given, mut defaults) = (Vec::new(), Vec::new());
    for parameter in &spec.parameters {
        let Some(value) = section.take(parameter.key) else {
            defaults.push(parameter.key);
            continue;
        };
        let number = section.noted(read_parameter(&value, parameter));
        given.extend(number.map(|number| (parameter.key, number)));
    }
    let initial = Law::named(name);
    let Some(law) = initial.ours().map(|ours| ours.with_given(&given)) else {
        return Chosen::new(initial, format!("given as {name}"));
    };
    let derived = law.as_ref().ok().and_then(|(_, derived)| *derived);
    defaults.retain(|key| Some(*key) != derived);
    let derived = derived.map_or(String::new(), |key| format!(", {key} by the legacy window"));
    let defaults = match defaults.is_empty() {
        true => String::new(),
        false => format!(", default {}", defaults.join(" and ")),
    };
    let law = law.map(|(law, _)| law);
    Chosen::new(
        consistent(section, law).unwrap_or(initial),
        format!("given as {name} with parameters{derived}{defaults}"),
    )
}

/// A number that the law's integers hold.
fn read_parameter(value: &Value, spec: &ParameterSpec) -> Result<f64, Refusal> {
    values::number(value)
        .and_then(|number| spec.exactly(number))
        .ok_or_else(|| value.found(&spec.allowed()))
}

/// One of [`EQUIVALENTS`], which must stand alone.
fn read_equivalent(
    section: &mut Section,
    key: &'static str,
    keys: &[&'static str],
    path: Option<&Path>,
) -> Option<Chosen<Law>> {
    for other in keys.iter().filter(|other| **other != key) {
        if let Some(value) = section.value(other) {
            let refusal = value.refusal(format!("`{key}` already sets both a and b"));
            section.note(refusal.allowed(format!("leave out `{other}` or `{key}`")));
        }
    }
    let (law, meaning) = match key {
        "virtual_mss" => {
            let spec = &Law::named("fp_aimd").ours()?.spec().parameters[0];
            let segments = section.read(key, |value| read_parameter(value, spec))?;
            let meaning = format!("a virtual MSS of {segments} segments");
            (fatpath_cc::Law::virtual_mss(segments), meaning)
        }
        "streams" => {
            let streams = section.read(key, |value| STREAMS.read_u32(value))?.value;
            let meaning = format!("{streams} parallel streams: N, 1/(2N)");
            (fatpath_cc::Law::parallel_streams(streams), meaning)
        }
        _ => {
            let written = section.value(key);
            let is_bdp = written.is_some_and(|value| {
                value
                    .as_str()
                    .is_some_and(|text| text.trim().ends_with("bdp"))
            });
            let read = |value: &Value| values::buffer(value, Setting::SendBuffer, path);
            let Some(buffer) = section.read(key, read)? else {
                let waits = "Reno's a and b until the path is measured";
                return Some(Chosen::new(Law::named("fp_aimd"), waits));
            };
            let bytes = fatpath_units::show_bytes(buffer.value);
            let why = match is_bdp {
                true => format!(": {}", buffer.reason),
                false => String::new(),
            };
            let meaning = format!("RFC 3649's table at the window that {bytes} hold{why}");
            let law = fatpath_cc::Law::static_highspeed(buffer.value, ETHERNET_MSS_BYTES);
            (law, meaning)
        }
    };
    consistent(section, law).map(|law| Chosen::new(law, meaning))
}

/// Each value was in its range: what is left to refuse is how they fit together.
fn consistent(section: &Section, law: Result<fatpath_cc::Law, ParameterError>) -> Option<Law> {
    let name = section.value("law")?.called(KEY);
    let refused = |error: ParameterError| name.refusal(error.to_string()).allowed(together(&error));
    section.noted(law.map_err(refused)).map(Law::from)
}

/// What a law asks of its parameters together: `is_consistent` of its file in bpf/cc.
fn together(error: &ParameterError) -> &'static str {
    match error {
        ParameterError::Inconsistent {
            law: "highspeed", ..
        } => {
            "allowed: high_window above low_window, and high_p below 1.44 / low_window^2, Reno's loss rate there"
        }
        _ => "see docs/policy.md",
    }
}

/// What a law without parameters says of one.
fn no_parameters(key: &str, at: usize, law: &str) -> Refusal {
    let with: Vec<String> = our_laws()
        .filter(|name| !Law::named(name).parameters().is_empty())
        .collect();
    Refusal::new(at, format!("{key}: `{law}` takes no parameters"))
        .allowed(format!("laws with parameters: {}", with.join(", ")))
}

/// The name of the rule's law, as far as it can be read.
pub(super) fn law_name<'v>(section: &Section<'v>) -> Option<&'v str> {
    let value = section.value(KEY)?.as_toml();
    let name = value.as_table().map_or(Some(value), |table| {
        table.get("law").map(|name| name.get_ref())
    });
    name?.as_str()
}
