// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a policy says that it cannot mean or should not: rules that no flow reaches, buffers that the host cuts,
//! laws that harm others or are held back, rude flows without a rate, timers that fire too early.
//!
//! Only warns. Start at [`warnings`].

use crate::classifier::{Class, Classifier, RuleSet};
use crate::rate_law::held_back;
use crate::{Match, Policy, PortRange, Prefix, Problem, Rule, Setting, SysctlName};
use fatpath_units::show_time;

/// net.core.rmem_max and wmem_max of mainline Linux, in bytes.
const MAINLINE_BUFFER_MAX_BYTES: u64 = 212_992;

/// Flows of Reno from which on a law is warned of.
const MAX_RENO_FLOWS: f64 = 100.0;

/// How far Scalable TCP's legacy window may be from that of a and b: b = 1/16 has only three decimals, and Reno's
/// loss rate 1.5 / window² would ask for 1.17 of the paper's ratio.
const LEGACY_WINDOW_FACTOR: f64 = 1.25;

/// TCP_DELACK_MIN of Linux: a peer that is not known otherwise delays an acknowledgement by this.
const DELAYED_ACK_US: u64 = 40_000;

/// The warnings in file order.
pub(crate) fn warnings(policy: &Policy, classifier: &Classifier) -> Vec<Problem> {
    let mut warnings: Vec<Problem> = Vec::new();
    for (index, rule) in policy.rules.iter().enumerate() {
        warnings.extend(unreachable(policy, classifier, index));
        warnings.extend(cut_buffers(policy, rule));
        warnings.extend(too_strong(rule));
        warnings.extend(inconsistent_scalable(rule));
        warnings.extend(unlimited_rudeness(rule));
        warnings.extend(early_retransmission(policy, rule));
        let held_back = held_back(rule).into_iter();
        warnings.extend(held_back.map(|held| warning(rule, held.message, held.remedy)));
    }
    warnings
}

pub(crate) fn warning(rule: &Rule, message: String, allowed: String) -> Problem {
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
        "no flow matches it: rule `{}` in line {} matches all its flows first",
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

/// A flow that takes what so many flows of Reno would take together.
fn too_strong(rule: &Rule) -> Option<Problem> {
    let law = rule.settings.law()?;
    let flows = law.ours()?.reno_flows()?.round();
    (flows >= MAX_RENO_FLOWS).then(|| {
        let message = format!(
            "a flow with {law} takes as much as {flows} Reno flows at the same loss rate: it starves \
             everybody else's flows at its bottleneck, and this host's others"
        );
        let remedy = "keep it to paths that nobody else uses, or choose a smaller a or a larger b";
        warning(rule, message, remedy.to_owned())
    })
}

/// Scalable TCP whose a and b belong to another legacy window than it has.
fn inconsistent_scalable(rule: &Rule) -> Option<Problem> {
    let ours = rule.settings.law()?.ours()?;
    let (belongs, has) = (ours.legacy_window_of_ratio()?, ours.number("legacy_window"));
    let factor = (belongs / has).max(has / belongs);
    (factor > LEGACY_WINDOW_FACTOR).then(|| {
        let harm = match belongs < has {
            true => "above its legacy window it takes more than Reno at the same loss rate, suddenly",
            false => "between the two windows it takes less than Reno at the same loss rate",
        };
        let message = format!(
            "a = {} and b = {} belong to a legacy window of {belongs:.1} segments, and it has {has}: {harm}",
            ours.number("a"),
            ours.number("b")
        );
        let remedy = "give only one of a and b: the other follows from the legacy window";
        warning(rule, message, remedy.to_owned())
    })
}

/// Rude flows that neither a rate nor an estimate of the path holds back.
fn unlimited_rudeness(rule: &Rule) -> Option<Problem> {
    let settings = &rule.settings;
    let is_bounded = settings.gives(Setting::RudeTotalRate);
    (settings.is_unlimited(Setting::RudeRate) && !is_bounded).then(|| {
        let message = "only its window bounds a rude flow with rude_rate = \"unlimited\": what the path does not hold fills \
                       the bottleneck's queue, then overflows it and is sent again each round trip, to the harm of \
                       everybody else's flows there";
        let remedy = "keep it to paths that nobody else uses, with buffers or a cwnd_clamp of about what the path holds, \
                      or give rude_rate or rude_total_rate a rate";
        warning(rule, message.to_owned(), remedy.to_owned())
    })
}

/// A retransmission timer that fires while the peer still delays its acknowledgement.
fn early_retransmission(policy: &Policy, rule: &Rule) -> Option<Problem> {
    let rto_min_us = rule.settings.number(Setting::RtoMin)?;
    let known_us = peers_delayed_ack_us(policy, rule).unwrap_or(DELAYED_ACK_US);
    let delayed_us = known_us.min(DELAYED_ACK_US);
    (rto_min_us < delayed_us).then(|| {
        let message = format!(
            "rto_min of {} is shorter than the {} by which the peer may delay an acknowledgement: segments that \
             were not lost are retransmitted",
            show_time(rto_min_us),
            show_time(delayed_us)
        );
        let remedy = "raise rto_min, or give the peers delayed_ack_max of at most rto_min: in this rule if both \
                      ends read this policy, or in a rule whose source is this rule's destination";
        warning(rule, message, remedy.to_owned())
    })
}

/// The longest delay of the peers' acknowledgements, as far as this policy gives it to them too: by the same rule, or
/// by rules that match at their end.
fn peers_delayed_ack_us(policy: &Policy, rule: &Rule) -> Option<u64> {
    let peers = &rule.matches.destination;
    let is_for = |other: &Rule, peer: &Prefix| {
        let sources = &other.matches.source;
        sources.iter().any(|source| source.covers(peer))
    };
    let given_us = |other: &Rule| other.settings.number(Setting::DelayedAckMax);
    let at_peer = |peer: &Prefix| {
        let mut others = policy.rules.iter().filter(|other| is_for(other, peer));
        others.next().and_then(given_us)
    };
    let by_peers: Option<Vec<u64>> = peers.iter().map(at_peer).collect();
    let longest_us = by_peers.and_then(|all| all.into_iter().max());
    given_us(rule).or(longest_us)
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

#[cfg(test)]
mod tests {
    use crate::parse;

    fn warnings(text: &str) -> String {
        let policy = parse(text, None).expect("the policy is good");
        let warnings = policy.warnings.iter().map(ToString::to_string);
        warnings.collect::<Vec<_>>().join("\n")
    }

    fn wan(settings: &str) -> String {
        format!("[[rule]]\nname = 'wan'\ndestination = ['192.0.2.0/24']\n{settings}\n")
    }

    fn at_peer(source: &str) -> String {
        format!("[[rule]]\nname = 'peer'\nsource = ['{source}']\ndelayed_ack_max = '10ms'\n")
    }

    #[test]
    fn a_retransmission_timer_below_the_delayed_acknowledgement_is_warned_of() {
        let alone = warnings(&wan("rto_min = '20ms'"));
        assert!(
            alone.contains("rto_min of 20 ms is shorter than the 40 ms"),
            "{alone}"
        );
        for delayed in ["40ms", "30ms"] {
            let both = wan(&format!("rto_min = '20ms'\ndelayed_ack_max = '{delayed}'"));
            assert!(warnings(&both).contains("shorter than the"), "{delayed}");
        }
        // The peer's rule is for another host, or for a part of the peers.
        for source in ["198.51.100.0/24", "192.0.2.0/25"] {
            let both = wan("rto_min = '20ms'") + &at_peer(source);
            assert!(warnings(&both).contains("40 ms"), "{source}");
        }
    }

    #[test]
    fn one_that_the_peers_acknowledgements_precede_is_not() {
        for policy in [
            wan("rto_min = '40ms'"),
            wan("rto_min = '20ms'\ndelayed_ack_max = '20ms'"),
            wan("rto_min = '20ms'") + &at_peer("192.0.0.0/16"),
        ] {
            assert_eq!(warnings(&policy), "", "{policy}");
        }
    }
}
