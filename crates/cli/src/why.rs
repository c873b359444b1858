// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath why`: what holds flows back, on what evidence, and what to do.

use crate::not_running::not_running;
use crate::observed::Observed;
use anyhow::{Context, Result, bail};
use clap::Args;
use fatpath_api::endpoint::GetWhy;
use fatpath_api::{BbrState, Evidence, Finding, FlowsQuery, Severity, Shares, Why};
use fatpath_daemon::client;
use fatpath_policy::Prefix;
use fatpath_units::show_count;
use std::cmp::Reverse;
use std::fmt::Write;
use std::net::SocketAddr;

pub const HELP: &str = "\
For each flow: the shares of time in which the application, the send buffer, the
receiver's window, the retransmission timer or the network limited it, then
every finding with its evidence and its cure. A healthy transfer has no finding.
docs/why.md explains each identifier.

Examples:
  fatpath why
  fatpath why 10.5.0.0/16
  fatpath why 10.5.128.74:443
  fatpath why --json | jq '.[] | [.flow.remote, .findings[].id]'";

#[derive(Args)]
pub struct Arguments {
    /// Only these flows: a prefix of the peer, ADDRESS:PORT of either end, or a flow's cookie
    #[arg(value_name = "FLOW|PREFIX")]
    pub flows: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub of: Observed,
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
    let instance = arguments.of.instance()?;
    let mut whys = client::ask::<GetWhy>(&instance.socket(), &chosen.query())?
        .with_context(|| not_running(&instance))?;
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
        prefix.with_context(|| format!("'{text}' is not a prefix, ADDRESS:PORT or flow number"))
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
    if whys.is_empty() {
        return "No flows seen yet.\n".to_owned();
    }
    let is_shown = |why: &&Why| !only_findings || !why.findings.is_empty();
    let mut text: String = whys.iter().filter(is_shown).map(flow).collect();
    let rest = whys.len() - whys.iter().filter(is_shown).count();
    if rest > 0 {
        let _ = writeln!(text, "{} without a finding", show_count(rest, "flow"));
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
    text.extend(why.bbr.as_ref().map(model));
    for finding in &why.findings {
        text.push_str(&finding_text(finding));
    }
    text
}

/// The rate that BBR goes by, and the bounds that hold it.
fn model(bbr: &BbrState) -> String {
    let mbps = |bytes_per_s: u64| bytes_per_s as f64 * 8e-6;
    let mut text = format!(
        "  fp_bbr, {}: goes by {:.1} Mb/s, of {:.1} found",
        bbr.phase.name(),
        mbps(bbr.bw_bytes_per_s),
        mbps(bbr.max_bw_bytes_per_s)
    );
    if bbr.bw_shortterm_bytes_per_s.is_some() {
        text += ", held by losses until its next probe";
    }
    if let Some(us) = bbr.min_rtt_us {
        let _ = write!(text, "; least RTT {:.1} ms", f64::from(us) / 1000.0);
    }
    let bounds = [bbr.inflight_longterm_pkts, bbr.inflight_shortterm_pkts];
    if let Some(pkts) = bounds.into_iter().flatten().min() {
        let _ = write!(text, "; at most {pkts} segments in flight");
    }
    text + "\n"
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

#[cfg(test)]
mod tests {
    use super::*;
    use fatpath_api::BbrPhase;

    #[test]
    fn a_model_is_told_with_the_bounds_that_it_has() {
        let free = BbrState {
            phase: BbrPhase::ProbeBwCruise,
            bw_bytes_per_s: 11_250_000,
            max_bw_bytes_per_s: 11_875_000,
            bw_shortterm_bytes_per_s: None,
            min_rtt_us: Some(40_100),
            inflight_longterm_pkts: None,
            inflight_shortterm_pkts: None,
        };
        assert_eq!(
            model(&free),
            "  fp_bbr, ProbeBW_CRUISE: goes by 90.0 Mb/s, of 95.0 found; least RTT 40.1 ms\n"
        );
        let held = BbrState {
            bw_shortterm_bytes_per_s: Some(11_250_000),
            inflight_longterm_pkts: Some(500),
            inflight_shortterm_pkts: Some(400),
            ..free
        };
        let told = model(&held);
        for part in ["held by losses", "at most 400 segments"] {
            assert!(told.contains(part), "{part}: {told}");
        }
    }
}
