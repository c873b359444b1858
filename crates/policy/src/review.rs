// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a policy says that it cannot mean: rules that no flow reaches, buffers that the host cuts.
//!
//! Only warns. Start at [`warnings`].

use crate::classifier::{Class, Classifier, RuleSet};
use crate::{Match, Policy, PortRange, Prefix, Problem, Rule, Setting, SysctlName};

/// net.core.rmem_max and wmem_max of mainline Linux, in bytes.
const MAINLINE_BUFFER_MAX_BYTES: u64 = 212_992;

/// The warnings in file order.
pub(crate) fn warnings(policy: &Policy, classifier: &Classifier) -> Vec<Problem> {
    let mut warnings: Vec<Problem> = Vec::new();
    for (index, rule) in policy.rules.iter().enumerate() {
        warnings.extend(unreachable(policy, classifier, index));
        warnings.extend(cut_buffers(policy, rule));
    }
    warnings
}

fn warning(rule: &Rule, message: String, allowed: String) -> Problem {
    Problem {
        line: rule.line,
        column: 1,
        message: format!("rule `{}`: {message}", rule.name),
        allowed,
    }
}

/// An earlier rule that takes every flow of this one.
fn unreachable(policy: &Policy, classifier: &Classifier, index: usize) -> Option<Problem> {
    let rule = &policy.rules[index];
    let above = covering(classifier, &rule.matches)
        .first()
        .filter(|first| *first < index)?;
    let above = &policy.rules[above];
    let message = format!(
        "no flow reaches it: `{}` in line {} takes them all first",
        above.name, above.line
    );
    Some(warning(
        rule,
        message,
        format!("move it above `{}`, or remove it", above.name),
    ))
}

/// A buffer that SO_SNDBUF or SO_RCVBUF will cut, since the host allows less.
fn cut_buffers(policy: &Policy, rule: &Rule) -> Vec<Problem> {
    let settings = &rule.settings;
    let buffers = [
        (Setting::SendBuffer, SysctlName::CoreWmemMax),
        (Setting::ReceiveBuffer, SysctlName::CoreRmemMax),
    ];
    let cut = |(buffer, name): (Setting, SysctlName)| {
        let (key, bytes) = (buffer.key(), settings.number(buffer)?);
        let message = match policy.host.at_least(name) {
            Some(limit) if bytes > limit.into() => {
                format!(
                    "{key} of {bytes} bytes is above {name} in [host.sysctl], {limit}: the kernel cuts it"
                )
            }
            None if bytes > MAINLINE_BUFFER_MAX_BYTES => {
                format!(
                    "{key} of {bytes} bytes is cut by the kernel where the host's {name} is lower"
                )
            }
            _ => return None,
        };
        Some(warning(
            rule,
            message,
            format!("write \"{name}\" = \"auto\" under [host.sysctl]"),
        ))
    };
    buffers.into_iter().filter_map(cut).collect()
}

/// The rules that hold for every flow that a match holds for, as far as one dimension at a time shows.
fn covering(classifier: &Classifier, matches: &Match) -> RuleSet {
    let set = |class: Class| classifier.sets[class as usize];
    prefixes_covering(classifier, &classifier.destination, &matches.destination)
        & prefixes_covering(classifier, &classifier.source, &matches.source)
        & ports_covering(
            classifier,
            &classifier.destination_ports,
            &matches.destination_ports,
        )
        & ports_covering(classifier, &classifier.source_ports, &matches.source_ports)
        & set(classifier.cgroup_class(matches.cgroup.as_deref().unwrap_or("/")))
}

fn prefixes_covering(
    classifier: &Classifier,
    table: &[(Prefix, Class)],
    prefixes: &[Prefix],
) -> RuleSet {
    let everything = [Prefix::ANY_V4, Prefix::ANY_V6];
    let prefixes = if prefixes.is_empty() {
        &everything[..]
    } else {
        prefixes
    };
    let sets = prefixes
        .iter()
        .filter_map(|prefix| classifier.set_of(table, prefix));
    sets.reduce(|all, set| all & set).unwrap_or_default()
}

fn ports_covering(
    classifier: &Classifier,
    table: &[(u16, Class)],
    ranges: &[PortRange],
) -> RuleSet {
    let every_port = [PortRange {
        first: 1,
        last: u16::MAX,
    }];
    let ranges = if ranges.is_empty() {
        &every_port[..]
    } else {
        ranges
    };
    let touches = |first: u16, last: u16| {
        ranges
            .iter()
            .any(|range| first <= range.last && range.first <= last)
    };
    let ends = table
        .iter()
        .skip(1)
        .map(|(first, _)| first - 1)
        .chain([u16::MAX]);
    let rows = table
        .iter()
        .zip(ends)
        .filter(|((first, _), last)| touches(*first, *last));
    let sets = rows.map(|((_, class), _)| classifier.sets[*class as usize]);
    sets.reduce(|all, set| all & set).unwrap_or_default()
}
