// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the models of `crates/model` expect of a case, beside what its runs gave.
//!
//! Models are of one flow, or of equal ones together, that send for long over a path that stays as it is. Of other cases
//! they say nothing, and [`NoModel`] says why. Start with [`expected`].

use std::collections::BTreeMap;

use fatpath_link::{CellSpec, ChainSpec, LossSpec, Service};
use fatpath_model::throughput::{Limit, of_law};
use fatpath_model::{Losses, Outside, Path};
use fatpath_sim::{Buffer, FlowSpec, Source, Spec, TcpSpec};
use fatpath_table::aligned;
use serde::Serialize;

use super::mapped::Mapped;
use crate::results::summary::Summary;

/// What one model expects of a case.
#[derive(Clone, Debug, Serialize)]
pub struct Expected {
    /// The model's name, as `fatpath model list` has it.
    pub model: &'static str,
    /// How losses are spread for which it is made.
    pub losses: Losses,
    /// Mb/s of data, all streams together; `None`: nothing limits it.
    pub goodput_mbps: Option<f64>,
    /// What limits it.
    pub limit: Limit,
    /// The mean goodput of the case's runs over it, less 1.
    pub error: Option<f64>,
    /// Where the model was asked outside of its range.
    pub outside: Vec<Outside>,
}

/// What the models expect of a case, or why they do not.
#[derive(Clone, Debug, Serialize)]
pub struct CaseModels {
    /// Of the network.
    pub path: String,
    /// Of the tuning.
    pub variant: String,
    /// What `vary` gave it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub vary: BTreeMap<String, String>,
    /// Mean of its runs.
    pub goodput_mbps: Option<f64>,
    /// Of the law that its flow has.
    pub models: Vec<Expected>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub none: Option<&'static str>,
}

/// Lays the models of a simulated case over what its runs gave.
pub(super) fn laid_over(case: &Summary, mapped: Result<&Mapped, ()>) -> CaseModels {
    let goodput_mbps = case.goodput_mbps().map(|goodput| goodput.mean);
    let models = mapped
        .map_err(|()| "it cannot be simulated")
        .and_then(expected);
    let (mut models, none) = match models {
        Ok(models) => (models, None),
        Err(why) => (Vec::new(), Some(why)),
    };
    for one in &mut models {
        let of_model = one.goodput_mbps.filter(|mbps| *mbps > 0.0);
        one.error = of_model.and_then(|mbps| Some(goodput_mbps? / mbps - 1.0));
    }
    CaseModels {
        path: case.path.clone(),
        variant: case.variant.clone(),
        vary: case.vary.clone(),
        goodput_mbps,
        models,
        none,
    }
}

/// Of each model of the law.
fn expected(mapped: &Mapped) -> Result<Vec<Expected>, &'static str> {
    let spec = &mapped.spec;
    let ([first, rest @ ..], [rtt_ns]) = (&spec.flows[..], &mapped.rtt_ns[..]) else {
        return Err("there are several flows, or none");
    };
    let is_long = |flow: &FlowSpec| {
        matches!(
            flow.source,
            Source::Bulk {
                bytes: None,
                again: false
            }
        )
    };
    match () {
        () if !spec.changes.is_empty() => return Err("links change"),
        () if !is_long(first) => {
            return Err("models of the long run need a flow that sends all the time");
        }
        () if first.tcp.rude.is_some() => return Err("a rude flow has no window"),
        () if rest.iter().any(|flow| flow.tcp.law != first.tcp.law) => {
            return Err("its streams have several laws");
        }
        () => {}
    }
    let path = path(spec, first, *rtt_ns)?;
    let expected = of_law(&first.tcp.law, &path, spec.flows.len() as u32);
    match expected.is_empty() {
        true => Err("no model is of its law on such a path"),
        false => Ok(expected
            .into_iter()
            .map(|one| Expected {
                model: one.model.name,
                losses: one.model.losses,
                goodput_mbps: one.rate_bps.map(|bps| bps / 1e6),
                limit: one.limit,
                error: None,
                outside: one.outside,
            })
            .collect()),
    }
}

/// The way of the data: what its cells do, one after the other.
fn path(spec: &Spec, flow: &FlowSpec, rtt_ns: u64) -> Result<Path, &'static str> {
    let (mut passes, mut rate_bps, mut at) = (1.0, None::<f64>, flow.from);
    // A way has no more links than there are hosts.
    for _ in 0..spec.hosts {
        if at == flow.to {
            break;
        }
        let next = spec.routes[at][flow.to].ok_or("there is no way")?;
        let link = &spec.links[next.0];
        let way = &link.directions[next.1];
        passes *= 1.0 - loss(way)?;
        let rates = [rate_bps, rate(way)?].into_iter().flatten();
        rate_bps = rates.min_by(f64::total_cmp);
        at = link.between[1 - next.1];
    }
    Ok(Path {
        rtt_s: rtt_ns as f64 / 1e9,
        loss: 1.0 - passes,
        mss_bytes: flow.tcp.mss_bytes,
        rate_bps,
        max_window_pkts: Some(largest_window_pkts(&flow.tcp)),
    })
}

fn loss(way: &ChainSpec) -> Result<f64, &'static str> {
    let mut passes = 1.0;
    for cell in &way.cells {
        match cell {
            CellSpec::Loss(LossSpec::Independent { probability }) => passes *= 1.0 - probability,
            CellSpec::Loss(LossSpec::Periodic { every, .. }) => passes *= 1.0 - 1.0 / *every as f64,
            CellSpec::Loss(_) => return Err("models need losses at one rate"),
            CellSpec::Policer(_) | CellSpec::Reorder(_) => {
                return Err("no model has policers or reordering");
            }
            _ => {}
        }
    }
    Ok(1.0 - passes)
}

fn rate(way: &ChainSpec) -> Result<Option<f64>, &'static str> {
    let mut least = None::<f64>;
    for cell in &way.cells {
        let CellSpec::Rate(rate) = cell else { continue };
        match &rate.service {
            Service::Unlimited => {}
            Service::Constant { rate_bps } => {
                let bps = *rate_bps as f64;
                least = Some(least.map_or(bps, |least| least.min(bps)));
            }
            _ => return Err("the rate is not constant"),
        }
    }
    Ok(least)
}

/// What buffers and the clamp allow.
fn largest_window_pkts(tcp: &TcpSpec) -> f64 {
    let most = |buffer: Buffer| match buffer {
        Buffer::Fixed(bytes) | Buffer::Auto(_, bytes) => bytes as f64 / f64::from(tcp.mss_bytes),
    };
    let clamp_pkts = f64::from(tcp.cwnd_clamp_pkts);
    most(tcp.send_buffer)
        .min(most(tcp.receive_buffer))
        .min(clamp_pkts)
}

/// A line for each case and model.
pub(super) fn lines(cases: &[CaseModels]) -> Vec<String> {
    let head = [
        "path",
        "variant",
        "vary",
        "model",
        "losses",
        "expects",
        "simulated",
        "difference",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for case in cases {
        let vary = case
            .vary
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let vary = vary.collect::<Vec<_>>().join(" ");
        let name = [case.path.clone(), case.variant.clone(), vary];
        let mbps =
            |mbps: Option<f64>| mbps.map_or("-".to_owned(), |mbps| format!("{mbps:.1} Mb/s"));
        let given = mbps(case.goodput_mbps);
        let model = |one: &Expected| {
            let mark = if one.outside.is_empty() { "" } else { " *" };
            let error = one
                .error
                .map_or("-".to_owned(), |error| format!("{:+.1} %", 100.0 * error));
            let losses = one.losses.to_string();
            [
                one.model.to_owned(),
                losses,
                mbps(one.goodput_mbps),
                given.clone(),
                error + mark,
            ]
        };
        let cells = case.models.iter().map(model);
        rows.extend(cells.map(|cells| [&name[..], &cells[..]].concat()));
        if let Some(why) = case.none {
            let cells = [
                "-".to_owned(),
                why.to_owned(),
                String::new(),
                given.clone(),
                String::new(),
            ];
            rows.push([&name[..], &cells[..]].concat());
        }
    }
    let table = aligned(&rows, 5);
    let mut lines: Vec<String> = table.lines().map(str::to_owned).collect();
    let is_outside = |case: &CaseModels| case.models.iter().any(|one| !one.outside.is_empty());
    if cases.iter().any(is_outside) {
        lines.push(
            "* outside of the model's range: --json says of what, and what it leaves out"
                .to_owned(),
        );
    }
    lines
}
