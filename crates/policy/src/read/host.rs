// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `[host]` section of the policy file. Start at [`read`].

use super::values::{self, SAMPLES_PER_S, SYSCTL_BYTES};
use crate::rule::Rule;
use crate::settings::Chosen;
use crate::{HostSettings, Setting, Sysctl, SysctlName};
use fatpath_toml::{Refusal, Section, Value};

/// Reads `[host]`; in `[host.sysctl]` `"auto"` takes what the rules ask for.
pub(super) fn read(root: &mut Section, rules: &[Rule]) -> HostSettings {
    let Some(host) = root.read("host", table) else {
        return HostSettings::default();
    };
    let mut host = host.titled("[host]");
    let sysctls = host.read("sysctl", table);
    let sysctls = sysctls.map(|table| read_sysctls(table, rules));
    let tcp_mem_share_milli = host.read("tcp_mem_share", |value| read_share(value, 10));
    let sample_cpu_share_milli = host.read("sample_cpu_share", |value| read_share(value, 1));
    let samples_per_s = host.read("samples_per_s", |value| SAMPLES_PER_S.read_u32(value));
    host.note_unknown();
    HostSettings {
        sysctls: sysctls.unwrap_or_default(),
        tcp_mem_share_milli,
        sample_cpu_share_milli,
        samples_per_s: samples_per_s.map(|chosen| chosen.value),
    }
}

fn table<'v>(value: &Value<'v>) -> Result<Section<'v>, Refusal> {
    value.section_or("a table, [host.sysctl]")
}

fn read_share(value: &Value, least_milli: u64) -> Result<u32, Refusal> {
    let milli = values::thousandths(value).filter(|milli| (least_milli..=1000).contains(milli));
    let least = least_milli as f64 / 1000.0;
    milli
        .and_then(|milli| u32::try_from(milli).ok())
        .ok_or_else(|| value.found(&format!("{least} to 1, with at most three decimals")))
}

fn read_sysctls(table: Section, rules: &[Rule]) -> Vec<Sysctl> {
    let mut section = table.titled("[host.sysctl]");
    let names = SysctlName::ALL.into_iter();
    let sysctls = names.filter_map(|name| read_sysctl(&mut section, name, rules));
    let sysctls = sysctls.collect();
    refuse_unquoted(&section);
    section.note_unknown_but(UNQUOTED);
    sysctls
}

/// What the first of the tables is called then.
const UNQUOTED: &str = "net";

/// `net.core.rmem_max = …` without quotes is three nested tables to TOML.
fn refuse_unquoted(section: &Section) {
    if let Some((key, _)) = section.table().get_key_value(UNQUOTED) {
        let remedy = "write the name in quotes: \"net.core.rmem_max\" = \"auto\"";
        let refusal = Refusal::new(key.span().start, "the name of a sysctl without quotes");
        section.note(refusal.allowed(remedy));
    }
}

fn read_sysctl(section: &mut Section, name: SysctlName, rules: &[Rule]) -> Option<Sysctl> {
    let value = section.take(name.as_str())?;
    let at_least = section.noted(read_value(&value, name, rules))??;
    Some(Sysctl {
        name,
        at_least,
        line: value.line(),
    })
}

/// `None` for an `"auto"` that no rule asks for.
fn read_value(
    value: &Value,
    name: SysctlName,
    rules: &[Rule],
) -> Result<Option<Chosen<u32>>, Refusal> {
    match name {
        SysctlName::TcpWindowScaling if value.as_u64() == Some(1) => {
            Ok(Some(Chosen::new(1, "given as 1")))
        }
        SysctlName::TcpWindowScaling => {
            Err(value.found("1 (a sysctl is only raised, so 0 would do nothing)"))
        }
        _ if value.as_str() == Some("auto") => Ok(largest(name, rules)),
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
