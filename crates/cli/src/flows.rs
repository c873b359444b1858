// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath flows`: the live table.

mod variables;

use crate::arguments::FlowsArguments;
use anyhow::Result;
use fatpath_api::TunedFlow;
use fatpath_api::endpoint::GetFlows;
use fatpath_daemon::{Instance, client};
use fatpath_kernel::Kernel;
use fatpath_table::aligned;
use std::collections::HashMap;
use std::io::{IsTerminal, Write, stdout};
use std::time::{Duration, Instant};

/// One line of the table.
const HEADER: [&str; 9] = [
    "LOCAL",
    "REMOTE",
    "RULE",
    "LAW",
    "RATE Mb/s",
    "RTT ms",
    "CWND",
    "RETRANS",
    "AGE s",
];

pub fn run(arguments: &FlowsArguments) -> Result<()> {
    let instance = arguments.of.instance()?;
    if arguments.variables {
        return variables::print(&instance, arguments.json);
    }
    let mut rates = Rates::default();
    loop {
        let flows = flows(&instance)?;
        let mut out = stdout().lock();
        if arguments.json && arguments.watch {
            writeln!(out, "{}", serde_json::to_string(&flows)?)?;
        } else if arguments.json {
            writeln!(out, "{}", serde_json::to_string_pretty(&flows)?)?;
        } else {
            let text = table(&flows, &mut rates);
            // Home and clear, so that the table stays where it is.
            let clear = if arguments.watch && out.is_terminal() {
                "\x1b[H\x1b[J"
            } else {
                ""
            };
            write!(out, "{clear}{text}")?;
        }
        out.flush()?;
        if !arguments.watch {
            return Ok(());
        }
        std::thread::sleep(Duration::from_secs_f64(arguments.interval));
    }
}

/// From the daemon; root can also read the kernel half without one.
fn flows(instance: &Instance) -> Result<Vec<TunedFlow>> {
    match client::get::<GetFlows>(&instance.socket())? {
        Some(flows) => Ok(flows),
        None => Ok(Kernel::open(instance.places.clone())?.flows()?),
    }
}

/// Bytes of the flows at the last look, for the rate since.
#[derive(Default)]
struct Rates(HashMap<u64, (Instant, u64)>);

impl Rates {
    /// Mb/s since the last look, or over the flow's life at the first.
    fn of(&mut self, flow: &TunedFlow, now: Instant) -> f64 {
        let measures = &flow.measures;
        let bytes = measures.bytes_acked.max(measures.bytes_received);
        match self.0.insert(flow.flow.cookie, (now, bytes)) {
            Some((then, before)) => {
                bytes.saturating_sub(before) as f64 * 8e-6 / (now - then).as_secs_f64()
            }
            None => measures.goodput_mbps,
        }
    }
}

fn table(flows: &[TunedFlow], rates: &mut Rates) -> String {
    if flows.is_empty() {
        return "No flows seen yet.\n".to_owned();
    }
    let now = Instant::now();
    let known = std::mem::take(&mut rates.0);
    let mut next = Rates(known);
    let mut rows = vec![HEADER.map(str::to_owned)];
    rows.extend(flows.iter().map(|flow| row(flow, next.of(flow, now))));
    let is_here = |cookie: &u64| flows.iter().any(|flow| flow.flow.cookie == *cookie);
    next.0.retain(|cookie, _| is_here(cookie));
    *rates = next;
    aligned(&rows, 4)
}

fn row(flow: &TunedFlow, mbps: f64) -> [String; 9] {
    let measures = &flow.measures;
    [
        flow.flow.local.to_string(),
        flow.flow.remote.to_string(),
        flow.rule.clone().unwrap_or_else(|| "-".to_owned()),
        measures.law.clone(),
        format!("{mbps:.1}"),
        format!("{:.1}", f64::from(measures.srtt_us) / 1000.0),
        measures.cwnd_pkts.to_string(),
        measures.segments_retransmitted.to_string(),
        format!("{:.0}", flow.duration_s),
    ]
}
