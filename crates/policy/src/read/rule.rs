// SPDX-License-Identifier: MIT OR Apache-2.0
//! One `[[rule]]` of the policy file. Start at [`read`].

use super::law::read_law;
use super::rude::read_rude;
use super::start::read_start;
use super::values::{
    self, CWND_CLAMP, INITIAL_WINDOW, NOTSENT_LOWAT, PACING_RATE, RATE, REORDERING, RTT, TIMER,
};
use crate::PortRange;
use crate::policy::{Chosen, Match, Path, Rule, Settings};
use crate::problem::{Refusal, Report};
use crate::toml_reader::{Section, under_key};
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// The keys of a rule, as the manual has them.
const KEYS: &[&str] = &[
    "name",
    "destination",
    "source",
    "destination_ports",
    "source_ports",
    "cgroup",
    "rtt",
    "rate",
    "send_buffer",
    "receive_buffer",
    "congestion_control",
    "initial_window",
    "cwnd_clamp",
    "rto_min",
    "delayed_ack_max",
    "pacing_rate",
    "notsent_lowat",
    "max_ssthresh",
    "initial_ssthresh",
    "initial_rate",
    "after_idle",
    "hystart",
    "rude",
    "rude_rate",
    "rude_total_rate",
    "rude_users",
    "rude_converged",
    "reordering",
    "quickack",
    "override_application",
    "divide",
];

/// Reads a rule; whatever is refused is noted and left out.
pub(super) fn read(
    table: &DeTable,
    place: Range<usize>,
    laws: Option<&[String]>,
    report: &mut Report,
) -> Rule {
    let mut section = Section::open(report, table, "a rule", KEYS);
    if section.value("name").is_none() {
        let remedy = "write name = \"…\", a name of its own for logs and tables";
        section
            .report
            .add(place.start, Refusal::new("the rule has no name", remedy));
    }
    let name = section.read("name", values::name).unwrap_or_default();
    let matches = read_match(&mut section);
    let path = Path {
        rtt_us: section
            .read("rtt", |value| RTT.read_u32(value))
            .map(|rtt| rtt.value),
        rate_bps: section
            .read("rate", |value| RATE.read(value))
            .map(|rate| rate.value),
    };
    let settings = read_settings(&mut section, &path, laws);
    refuse_without_buffer(&mut section);
    refuse_route_metrics(&mut section);
    let line = report.line(place.start);
    Rule {
        name,
        line,
        matches,
        path,
        settings,
    }
}

fn read_match(section: &mut Section) -> Match {
    let prefixes = |read: Vec<(_, _)>| read.into_iter().map(|(prefix, _)| prefix).collect();
    Match {
        destination: prefixes(section.read_list("destination", values::prefix)),
        source: prefixes(section.read_list("source", values::prefix)),
        destination_ports: read_ports(section, "destination_ports"),
        source_ports: read_ports(section, "source_ports"),
        cgroup: section.read("cgroup", values::cgroup),
    }
}

fn read_ports(section: &mut Section, key: &str) -> Vec<PortRange> {
    let mut ranges = section.read_list(key, values::ports);
    ranges.sort_by_key(|(range, _)| *range);
    for pair in ranges.windows(2) {
        let ((one, one_place), (next, next_place)) = (&pair[0], &pair[1]);
        if next.first <= one.last {
            let later = if one_place.start > next_place.start {
                one_place
            } else {
                next_place
            };
            let refusal = Refusal::new(format!("{one} and {next} overlap"), "name each port once");
            section.report.add(later.start, under_key(key, refusal));
        }
    }
    ranges.into_iter().map(|(range, _)| range).collect()
}

/// The path, unless a part of it was refused.
fn as_given<'p>(section: &Section, path: &'p Path) -> Option<&'p Path> {
    let whole = section.value("rtt").is_some() == path.rtt_us.is_some()
        && section.value("rate").is_some() == path.rate_bps.is_some();
    whole.then_some(path)
}

fn read_settings(section: &mut Section, path: &Path, laws: Option<&[String]>) -> Settings {
    let path = as_given(section, path);
    let buffer = |value: &DeValue| values::buffer(value, path);
    let start = read_start(section, path);
    let rude = read_rude(section);
    Settings {
        send_buffer_bytes: section.read("send_buffer", buffer).flatten(),
        receive_buffer_bytes: section.read("receive_buffer", buffer).flatten(),
        law: read_law(section, laws),
        initial_window_pkts: section.read("initial_window", |value| INITIAL_WINDOW.read_u32(value)),
        cwnd_clamp_pkts: section.read("cwnd_clamp", |value| CWND_CLAMP.read_u32(value)),
        rto_min_us: section.read("rto_min", |value| TIMER.read_u32(value)),
        delayed_ack_max_us: section.read("delayed_ack_max", |value| TIMER.read_u32(value)),
        pacing_rate_bps: section.read("pacing_rate", |value| PACING_RATE.read(value)),
        notsent_lowat_bytes: section.read("notsent_lowat", |value| NOTSENT_LOWAT.read_u32(value)),
        max_ssthresh_pkts: start.max_ssthresh_pkts,
        initial_ssthresh: start.initial_ssthresh,
        initial_rate_bps: start.initial_rate_bps,
        after_idle: start.after_idle,
        hystart: start.hystart,
        rude: rude.rude,
        rude_rate_bps: rude.rate_bps,
        rude_total_rate_bps: rude.total_rate_bps,
        rude_users: rude.users,
        rude_converged_milli: rude.converged_milli,
        reordering_pkts: section.read("reordering", |value| REORDERING.read_u32(value)),
        quickack: section
            .read("quickack", values::truth)
            .map(|quickack| Chosen::new(quickack, format!("given as {quickack}"))),
        override_application: section
            .read("override_application", values::truth)
            .unwrap_or(false),
        divide: section.read("divide", values::truth).unwrap_or(false),
    }
}

fn refuse_without_buffer(section: &mut Section) {
    if section.value("send_buffer").is_some() || section.value("receive_buffer").is_some() {
        return;
    }
    for key in ["override_application", "divide"] {
        let asked = section
            .value(key)
            .filter(|value| value.get_ref().as_bool() == Some(true));
        if let Some(value) = asked {
            let refusal = Refusal::new(
                "the rule sets no buffer",
                "give it send_buffer, receive_buffer or both",
            );
            section
                .report
                .add(value.span().start, under_key(key, refusal));
        }
    }
}

/// A route knows destinations only, so a metric would also reach the flows that the rule leaves out.
fn refuse_route_metrics(section: &mut Section) {
    for key in ["reordering", "quickack"] {
        let Some(value) = section.value(key) else {
            continue;
        };
        if section.value("destination").is_none() {
            let message = "this is a metric of routes, and the rule names no destination";
            let refusal = Refusal::new(message, "give the rule destination = [\"PREFIX\", …]");
            section
                .report
                .add(value.span().start, under_key(key, refusal));
            continue;
        }
        let narrower = ["source", "destination_ports", "source_ports", "cgroup"];
        if let Some(other) = narrower
            .into_iter()
            .find(|other| section.value(other).is_some())
        {
            let message = format!(
                "this is a metric of routes, which holds for every flow to the destination, not only for those of `{other}`"
            );
            let refusal = Refusal::new(message, "move it to a rule that has only `destination`");
            section
                .report
                .add(value.span().start, under_key(key, refusal));
        }
    }
}
