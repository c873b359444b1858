// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath why`: what holds flows back, on what evidence, and what to do.

use anyhow::{Context, Result, bail};
use clap::Args;
use fatpath_api::endpoint::GetWhy;
use fatpath_api::{Evidence, Finding, FlowsQuery, Severity, Shares, Why};
use fatpath_daemon::{Instance, InstanceOptions, client};
use fatpath_policy::Prefix;
use std::cmp::Reverse;
use std::fmt::Write;
use std::net::SocketAddr;

pub const HELP: &str = "\
For each flow: the shares of time in which the application, the send buffer, the receiver's window, the
retransmission timer or the network limited it, then every finding with its evidence and its cure. A
healthy transfer has no finding. docs/why.md explains each identifier.

Examples:
  fatpath why
  fatpath why 10.5.0.0/16
  fatpath why 10.5.128.74:443
  fatpath why --json | jq '.[] | {remote: .flow.remote, findings: [.findings[].id]}'";

#[derive(Args)]
pub struct Arguments {
    /// Only these flows: a prefix of the peer, ADDRESS:PORT of either end, or a flow's cookie
    #[arg(value_name = "FLOW|PREFIX")]
    pub flows: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub instance: InstanceOptions,
}

/// Which flows are meant.
enum Chosen {
    All,
    Cookie(u64),
    End(SocketAddr),
    Prefix(Prefix),
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let chosen = Chosen::read(arguments.flows.as_deref())?;
    let instance = Instance::new(&arguments.instance, None)?;
    let mut whys = client::ask::<GetWhy>(&instance.socket(), &chosen.query())?
        .context("no daemon answers, and the instruments need one: start `fatpath daemon`")?;
    whys.retain(|why| chosen.contains(why));
    whys.sort_by_key(|why| Reverse((gravest(why), why.rates.average_bps as u64)));
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&whys)?);
        return Ok(());
    }
    if whys.is_empty() && !matches!(chosen, Chosen::All) {
        bail!("no such flow; `fatpath top` lists the flows that are sampled");
    }
    print!("{}", text_of(&whys, matches!(chosen, Chosen::All)));
    Ok(())
}

impl Chosen {
    fn read(text: Option<&str>) -> Result<Chosen> {
        let Some(text) = text else {
            return Ok(Chosen::All);
        };
        if let Ok(cookie) = text.parse() {
            return Ok(Chosen::Cookie(cookie));
        }
        if let Ok(end) = text.parse() {
            return Ok(Chosen::End(end));
        }
        let prefix = text.parse().map(Chosen::Prefix);
        prefix.with_context(|| format!("{text}: give a prefix, ADDRESS:PORT or a flow's cookie"))
    }

    fn query(&self) -> FlowsQuery {
        match self {
            Chosen::Cookie(cookie) => FlowsQuery::flow(*cookie),
            Chosen::Prefix(prefix) => FlowsQuery::prefix(prefix.to_string()),
            Chosen::All | Chosen::End(_) => FlowsQuery::default(),
        }
    }

    fn contains(&self, why: &Why) -> bool {
        match self {
            Chosen::End(end) => why.flow.local == *end || why.flow.remote == *end,
            _ => true,
        }
    }
}

fn gravest(why: &Why) -> Option<Severity> {
    why.findings.iter().map(|finding| finding.severity).max()
}

/// `only_findings`: flows without one are counted, not shown.
fn text_of(whys: &[Why], only_findings: bool) -> String {
    let is_shown = |why: &&Why| !only_findings || !why.findings.is_empty();
    let mut text: String = whys.iter().filter(is_shown).map(flow).collect();
    let rest = whys.len() - whys.iter().filter(is_shown).count();
    if rest > 0 {
        let _ = writeln!(text, "{rest} flows without a finding");
    }
    text
}

fn flow(why: &Why) -> String {
    let (flow, rates) = (&why.flow, &why.rates);
    let rule = why.rule.as_deref().unwrap_or("no rule");
    let mbps = rates.goodput_bps.max(rates.received_bps) / 1e6;
    let average = rates.average_bps / 1e6;
    let mut text = format!(
        "{} to {}, {rule}, flow {}: {mbps:.1} Mb/s, {average:.1} on average\n  {} of {:.0} s\n",
        flow.local,
        flow.remote,
        flow.cookie,
        shares(&why.shares),
        why.span_s,
    );
    for finding in &why.findings {
        text.push_str(&finding_text(finding));
    }
    text
}

fn shares(shares: &Shares) -> String {
    shares
        .named()
        .map(|(name, share)| format!("{name} {:.0} %", share * 100.0))
        .join(", ")
}

pub fn finding_text(finding: &Finding) -> String {
    let evidence: Vec<String> = finding.evidence.iter().map(evidence_text).collect();
    let grave = match finding.severity {
        Severity::Info => "info",
        Severity::Warning => "warning",
        Severity::Problem => "PROBLEM",
    };
    let mut text = format!(
        "  {grave} {}: {}\n    {}\n",
        finding.id,
        finding.title,
        evidence.join("; ")
    );
    if let Some(gain) = finding.gain {
        let _ = writeln!(
            text,
            "    expected to be {gain:.1} times as fast without this cause"
        );
    }
    for line in finding.cure.iter().flat_map(|cure| cure.lines()) {
        let _ = writeln!(text, "      {line}");
    }
    text
}

fn evidence_text(evidence: &Evidence) -> String {
    let value = match evidence.value {
        whole if whole.fract() == 0.0 || whole.abs() >= 1000.0 => format!("{whole:.0}"),
        small if small.abs() < 1.0 => format!("{small:.3}"),
        value => format!("{value:.1}"),
    };
    format!("{} {value} {}", evidence.name, evidence.unit)
        .trim_end()
        .to_owned()
}
