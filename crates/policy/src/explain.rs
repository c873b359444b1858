// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a flow would get, and why, for people: the dry run.
//!
//! Touches nothing. An explanation is a plain value (`--json`); its `Display` is the text that
//! `fatpath policy explain` prints. Start at [`explain`].

use crate::classifier::Classifier;
use crate::policy::Policy;
use crate::rate_law::held_back;
use crate::rule::{Match, Rule};
use crate::{
    Dimension, Flow, Given, PathFacts, SettingValue, Settings, Stage, SysctlName, Trace, Verdict,
    apply, routes,
};
use fatpath_units as quantity;
use serde::Serialize;
use std::fmt;

/// The most rules that the text names one by one, and the most entries of a list within a line.
const MAX_NAMED_RULES: usize = 20;
const MAX_NAMED_ENTRIES: usize = 4;

/// What a flow would get.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// The question.
    pub flow: Flow,
    /// The rule that the flow meets; `None` when it meets none, so that it is left alone.
    pub rule: Option<RuleName>,
    /// What the rule sets, in the order of the manual.
    pub settings: Vec<SettingLine>,
    /// The rules before that one (or all, when there is none) and why they are not the flow's.
    pub passed_over: Vec<PassedOver>,
    /// What else to know.
    pub notes: Vec<String>,
}

/// A rule as people find it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RuleName {
    /// Its name.
    pub name: String,
    /// Its line in the policy file, from 1.
    pub line: u32,
}

/// One setting of a rule.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SettingLine {
    /// Its key in the policy file.
    pub setting: &'static str,
    /// Its value.
    pub value: SettingValue,
    /// The unit of a number; empty for what has none.
    pub unit: &'static str,
    /// Why the value is what it is.
    pub reason: String,
    /// What this host makes of it, where that is something else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
}

/// What the kernel makes of a setting that the host bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Bound {
    /// In the setting's unit.
    pub value: u64,
    /// By which it is bound; `None`: by the kernel's tick.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sysctl: Option<SysctlName>,
}

/// A rule that was passed over.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PassedOver {
    /// Which.
    pub rule: RuleName,
    /// Why.
    pub verdict: Verdict,
    /// What the rule asks of those dimensions, for instance `the source is in 10.1.0.0/16`.
    pub asks: Vec<String>,
}

/// Says which rule a flow meets, what that gives it, and why the rules before did not.
pub fn explain(policy: &Policy, flow: &Flow) -> Explanation {
    let met = policy
        .rules
        .iter()
        .position(|rule| rule.matches.verdict(flow) == Verdict::Matches);
    let rule = met.map(|index| &policy.rules[index]);
    let before = &policy.rules[..met.unwrap_or(policy.rules.len())];
    Explanation {
        flow: flow.clone(),
        rule: rule.map(RuleName::of),
        settings: rule.map(|rule| lines(&rule.settings)).unwrap_or_default(),
        passed_over: before
            .iter()
            .map(|rule| PassedOver::of(rule, flow))
            .collect(),
        notes: foreign_metrics(policy, flow, rule)
            .into_iter()
            .chain(policy.instruments.note(rule))
            .chain(
                policy
                    .traces
                    .iter()
                    .filter_map(|trace| writes(trace, flow, rule)),
            )
            .chain(rule.and_then(differs_by_phase))
            .chain(
                rule.into_iter()
                    .flat_map(held_back)
                    .map(|held| format!("{}: {}", held.message, held.remedy)),
            )
            .collect(),
    }
}

/// A route's metrics hold for the flow even where another rule is the flow's own.
fn foreign_metrics(policy: &Policy, flow: &Flow, met: Option<&Rule>) -> Option<String> {
    let routes = routes(policy, &Classifier::build(policy));
    let holding = routes
        .iter()
        .filter(|route| route.prefix.contains(flow.destination));
    let route = holding.max_by_key(|route| route.prefix.key_bits())?;
    let other = route
        .rule
        .as_ref()
        .filter(|name| met.is_none_or(|rule| rule.name != **name))?;
    let reordering = route
        .reordering_pkts
        .map(|segments| format!("reordering {segments}"));
    let quickack = route.quickack.then(|| "quickack".to_owned());
    let metrics: Vec<String> = reordering.into_iter().chain(quickack).collect();
    let metrics = Some(metrics.join(" and ")).filter(|metrics| !metrics.is_empty())?;
    Some(format!(
        "the route to {} has {metrics} from rule `{other}`, which this flow uses too",
        route.prefix
    ))
}

/// What a trace means for a flow of this rule.
fn writes(trace: &Trace, flow: &Flow, rule: Option<&Rule>) -> Option<String> {
    if !trace.wants_rule(rule.map(|rule| rule.name.as_str())) {
        return None;
    }
    let whether = match trace.matches.verdict(flow) {
        Verdict::Differs(_) => return None,
        Verdict::Matches => "writes",
        Verdict::Unknown(_) => "may write, depending on what was not given,",
    };
    let samples = match trace.interval_us {
        0 => "its samples".to_owned(),
        us => format!("at most one sample in {}", quantity::show_time(us.into())),
    };
    Some(format!(
        "the trace `{}` {whether} {samples} to {}, among those of at most {} at once",
        trace.name,
        trace.own_folder().display(),
        quantity::show_count(trace.max_flows, "flow"),
    ))
}

impl RuleName {
    fn of(rule: &Rule) -> Self {
        RuleName {
            name: rule.name.clone(),
            line: rule.line,
        }
    }
}

impl PassedOver {
    fn of(rule: &Rule, flow: &Flow) -> Self {
        let verdict = rule.matches.verdict(flow);
        let dimensions = match &verdict {
            Verdict::Matches => &[][..],
            Verdict::Differs(dimensions) | Verdict::Unknown(dimensions) => dimensions,
        };
        let asks = dimensions
            .iter()
            .map(|dimension| asked(*dimension, &rule.matches))
            .collect();
        PassedOver {
            rule: RuleName::of(rule),
            verdict,
            asks,
        }
    }
}

/// What a rule asks of a dimension.
fn asked(dimension: Dimension, matches: &Match) -> String {
    match dimension {
        Dimension::Destination => {
            format!("the destination is in {}", some_of(&matches.destination))
        }
        Dimension::Source => format!("the source is in {}", some_of(&matches.source)),
        Dimension::DestinationPort => {
            format!(
                "the destination port is {}",
                some_of(&matches.destination_ports)
            )
        }
        Dimension::SourcePort => format!("the source port is {}", some_of(&matches.source_ports)),
        Dimension::Cgroup => {
            format!(
                "the cgroup is {} or below it",
                matches.cgroup.as_deref().unwrap_or("/")
            )
        }
    }
}

fn some_of(entries: &[impl fmt::Display]) -> String {
    let named = entries
        .iter()
        .take(MAX_NAMED_ENTRIES)
        .map(|entry| entry.to_string());
    let rest = entries.len().saturating_sub(MAX_NAMED_ENTRIES);
    let more = (rest > 0).then(|| format!("{rest} more"));
    named.chain(more).collect::<Vec<_>>().join(" or ")
}

/// What a flow of the rule gets, as far as the rule alone says it.
fn lines(settings: &Settings) -> Vec<SettingLine> {
    let applied = apply(settings, Stage::Established, &PathFacts::default());
    applied.iter().map(SettingLine::of).collect()
}

/// What differs while the flow's process is in a collective phase.
fn differs_by_phase(rule: &Rule) -> Option<String> {
    let (other, collective) = (lines(&rule.settings), lines(rule.collective.as_ref()?));
    let has = |all: &[SettingLine], setting| all.iter().any(|line| line.setting == setting);
    let is_same = |line: &SettingLine| {
        let mut same = other.iter().filter(|one| one.setting == line.setting);
        same.any(|one| one.value == line.value)
    };
    let differing = collective.iter().filter(|line| !is_same(line));
    let differing = differing.map(|line| format!("{} {}", line.setting, line.value_text()));
    let gone = other.iter().filter(|line| !has(&collective, line.setting));
    let gone = gone.map(|line| format!("no {}", line.setting));
    let all: Vec<String> = differing.chain(gone).collect();
    let what = "while its process is in a collective phase the flow gets";
    (!all.is_empty()).then(|| format!("{what} {}", all.join(", ")))
}

impl SettingLine {
    fn of(given: &Given) -> SettingLine {
        SettingLine {
            setting: given.setting.key(),
            value: given.value.clone(),
            unit: given.unit.text(),
            reason: given.reason.clone(),
            bound: None,
        }
    }

    fn why(&self) -> String {
        let Some(bound) = self.bound else {
            return self.reason.clone();
        };
        let value = with_unit(bound.value, self.unit);
        let by = match bound.sysctl {
            Some(sysctl) => format!("bound by {sysctl}"),
            None => "its least (two ticks)".to_owned(),
        };
        format!("{}; the kernel makes it {value}, {by}", self.reason)
    }

    /// The value with its unit, in the size that people read.
    pub fn value_text(&self) -> String {
        match (&self.value, self.unit) {
            (SettingValue::Number(number), unit) => with_unit(*number, unit),
            (SettingValue::Truth(truth), _) => truth.to_string(),
            (SettingValue::AfterIdle(after_idle), _) => after_idle.name().to_owned(),
            (SettingValue::Rude(rude), _) => rude.name().to_owned(),
            (SettingValue::Law(law), _) => law.to_string(),
            (SettingValue::Users(users), _) => some_of(users),
            (SettingValue::Ssthresh(ssthresh), _) => ssthresh.to_string(),
            (SettingValue::Shared(bps), _) => SettingValue::shared_text(*bps),
            (SettingValue::Unlimited, _) => SettingValue::UNLIMITED.to_owned(),
        }
    }
}

fn with_unit(number: u64, unit: &str) -> String {
    match unit {
        "bytes" => quantity::show_bytes(number),
        "us" => quantity::show_time(number),
        "bit/s" => quantity::show_rate(number),
        _ => format!("{number} {unit}"),
    }
}

impl fmt::Display for RuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` (line {})", self.name, self.line)
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.rule {
            Some(rule) => writeln!(f, "A flow {} matches rule {rule}.", self.flow)?,
            None => writeln!(f, "A flow {} matches no rule: it is left alone.", self.flow)?,
        }
        self.settings_table(f)?;
        self.unknown(f)?;
        self.differing(f)?;
        self.notes
            .iter()
            .try_for_each(|note| writeln!(f, "\nNote: {note}."))
    }
}

impl Explanation {
    fn settings_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(rule) = &self.rule else {
            return Ok(());
        };
        if self.settings.is_empty() {
            return writeln!(f, "\n{rule} sets nothing: the flow is left alone.");
        }
        let rows: Vec<_> = self
            .settings
            .iter()
            .map(|line| (line.setting, line.value_text(), line.why()))
            .collect();
        let width = rows
            .iter()
            .map(|(_, value, _)| value.chars().count())
            .max()
            .unwrap_or_default()
            .max(5);
        writeln!(f, "\n  {:<20}  {:<width$}  why", "setting", "value")?;
        rows.iter().try_for_each(|(setting, value, why)| {
            writeln!(f, "  {setting:<20}  {value:<width$}  {why}")
        })
    }

    fn unknown(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = |passed: &&PassedOver| matches!(passed.verdict, Verdict::Unknown(_));
        let open: Vec<_> = self.passed_over.iter().filter(open).collect();
        let first = if self.rule.is_some() { " instead" } else { "" };
        list(
            f,
            &open,
            &format!(
                "What these rules need to know was not given; the flow{first} matches the first of them for which this holds:"
            ),
        )
    }

    fn differing(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let differing = self
            .passed_over
            .iter()
            .filter_map(|passed| match &passed.verdict {
                Verdict::Differs(dimensions) => {
                    Some((passed, dimensions.contains(&Dimension::Destination)))
                }
                _ => None,
            });
        let (far, near): (Vec<_>, Vec<_>) = differing.partition(|(_, elsewhere)| *elsewhere);
        let near: Vec<_> = near.into_iter().map(|(passed, _)| passed).collect();
        list(
            f,
            &near,
            "These rules are for this destination, but do not match, because they require that",
        )?;
        match far.len() {
            0 => Ok(()),
            1 => writeln!(f, "\n1 rule does not match: it is for another destination."),
            count => writeln!(
                f,
                "\n{count} rules do not match: they are for other destinations."
            ),
        }
    }
}

fn list(f: &mut fmt::Formatter<'_>, rules: &[&PassedOver], title: &str) -> fmt::Result {
    if rules.is_empty() {
        return Ok(());
    }
    writeln!(f, "\n{title}")?;
    for passed in rules.iter().take(MAX_NAMED_RULES) {
        writeln!(f, "  {}: {}", passed.rule, passed.asks.join(", and "))?;
    }
    match rules.len().checked_sub(MAX_NAMED_RULES) {
        None | Some(0) => Ok(()),
        Some(rest) => writeln!(f, "  and {rest} more"),
    }
}
