// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `[host]` section of the policy file. Start at [`read`].

use super::values::SYSCTL_BYTES;
use crate::problem::{Refusal, Report};
use crate::rule::Rule;
use crate::settings::Chosen;
use crate::toml_reader::{Section, found};
use crate::{HostSettings, Setting, Sysctl, SysctlName};
use toml::de::{DeTable, DeValue};

/// Reads `[host.sysctl]`; `"auto"` takes what the rules ask for.
pub(super) fn read(document: &DeTable, rules: &[Rule], report: &mut Report) -> HostSettings {
    let Some(host) = subtable(document, "host", report) else {
        return HostSettings::default();
    };
    Section::open(report, host, "[host]", &["sysctl"]);
    let Some(table) = subtable(host, "sysctl", report) else {
        return HostSettings::default();
    };
    refuse_unquoted(table, report);
    let mut known = SysctlName::ALL.map(SysctlName::as_str).to_vec();
    known.push("net");
    let mut section = Section::open(report, table, "[host.sysctl]", &known);
    let sysctls = SysctlName::ALL
        .into_iter()
        .filter_map(|name| read_sysctl(&mut section, name, rules));
    HostSettings {
        sysctls: sysctls.collect(),
    }
}

fn subtable<'v>(table: &'v DeTable<'v>, key: &str, report: &mut Report) -> Option<&'v DeTable<'v>> {
    let value = table.get(key)?;
    let inner = value.get_ref().as_table();
    if inner.is_none() {
        report.add(
            value.span().start,
            found(value.get_ref(), "a table, [host.sysctl]"),
        );
    }
    inner
}

/// `net.core.rmem_max = …` without quotes is three nested tables to TOML.
fn refuse_unquoted(table: &DeTable, report: &mut Report) {
    if let Some((key, _)) = table.get_key_value("net") {
        let remedy = "write the name in quotes: \"net.core.rmem_max\" = \"auto\"";
        report.add(
            key.span().start,
            Refusal::new("the name of a sysctl without quotes", remedy),
        );
    }
}

fn read_sysctl(section: &mut Section, name: SysctlName, rules: &[Rule]) -> Option<Sysctl> {
    let place = section.value(name.as_str())?.span();
    let at_least = section.read(name.as_str(), |value| read_value(value, name, rules))??;
    Some(Sysctl {
        name,
        at_least,
        line: section.report.line(place.start),
    })
}

/// `None` for an `"auto"` that no rule asks for.
fn read_value(
    value: &DeValue,
    name: SysctlName,
    rules: &[Rule],
) -> Result<Option<Chosen<u32>>, Refusal> {
    match (name, value) {
        (SysctlName::TcpWindowScaling, DeValue::Integer(number)) if number.as_str() == "1" => {
            Ok(Some(Chosen::new(1, "given as 1")))
        }
        (SysctlName::TcpWindowScaling, _) => Err(found(
            value,
            "1 (a sysctl is only raised, so 0 would do nothing)",
        )),
        (_, DeValue::String(text)) if text == "auto" => Ok(largest(name, rules)),
        _ => SYSCTL_BYTES.read_u32(value).map(Some),
    }
}

/// The largest buffer of the rules. The kernel doubles what setsockopt asks for, to have room for its
/// own books; `tcp_rmem` and `tcp_wmem` mean the doubled kind.
fn largest(name: SysctlName, rules: &[Rule]) -> Option<Chosen<u32>> {
    let buffer = match name {
        SysctlName::CoreRmemMax | SysctlName::TcpRmem => Setting::ReceiveBuffer,
        _ => Setting::SendBuffer,
    };
    let asked = rules
        .iter()
        .filter_map(|rule| Some((u32::try_from(rule.settings.number(buffer)?).ok()?, rule)));
    let (bytes, rule) = asked.max_by_key(|(bytes, _)| *bytes)?;
    let (factor, doubled) = if name.is_triple() {
        (2, "twice ")
    } else {
        (1, "")
    };
    let reason = format!(
        "auto: {doubled}the largest buffer that a rule asks for, {bytes} bytes of `{}`",
        rule.name
    );
    Some(Chosen::new(bytes * factor, reason))
}
