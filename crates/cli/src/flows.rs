// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath flows`: the live table.

mod variables;

use crate::arguments::FlowsArguments;
use anyhow::{Result, bail};
use fatpath_daemon::{Instance, client};
use fatpath_kernel::Kernel;
use serde_json::Value;
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
    let instance = Instance::new(&arguments.instance, None)?;
    if arguments.variables {
        return variables::print(&instance.socket(), arguments.json);
    }
    let mut rates = Rates::default();
    loop {
        let flows = flows(&instance)?;
        let mut out = stdout().lock();
        if arguments.json && arguments.watch {
            writeln!(out, "{}", Value::from(flows))?;
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
fn flows(instance: &Instance) -> Result<Vec<Value>> {
    if let Some(Value::Array(flows)) = client::get(&instance.socket(), "/v1/flows")? {
        return Ok(flows);
    }
    let kernel = Kernel::open(instance.places.clone())?;
    match serde_json::to_value(kernel.flows()?)? {
        Value::Array(flows) => Ok(flows),
        _ => bail!("the kernel half gave no list of flows"),
    }
}

/// Bytes of the flows at the last look, for the rate since.
#[derive(Default)]
struct Rates(HashMap<u64, (Instant, f64)>);

impl Rates {
    /// Mb/s since the last look, or over the flow's life at the first.
    fn of(&mut self, flow: &Value, now: Instant) -> f64 {
        let number = |key: &str| flow[key].as_f64().unwrap_or_default();
        let bytes = number("bytes_acked").max(number("bytes_received"));
        let cookie = flow["cookie"].as_u64().unwrap_or_default();
        match self.0.insert(cookie, (now, bytes)) {
            Some((then, before)) => (bytes - before) * 8e-6 / (now - then).as_secs_f64(),
            None => number("goodput_mbps"),
        }
    }
}

fn table(flows: &[Value], rates: &mut Rates) -> String {
    let now = Instant::now();
    let known = std::mem::take(&mut rates.0);
    let mut next = Rates(known);
    let mut rows = vec![HEADER.map(str::to_owned)];
    rows.extend(flows.iter().map(|flow| row(flow, next.of(flow, now))));
    let is_here = |cookie: &u64| flows.iter().any(|f| f["cookie"].as_u64() == Some(*cookie));
    next.0.retain(|cookie, _| is_here(cookie));
    *rates = next;
    aligned(&rows)
}

fn row(flow: &Value, mbps: f64) -> [String; 9] {
    let text = |key: &str| flow[key].as_str().unwrap_or("-").to_owned();
    [
        text("local"),
        text("remote"),
        text("rule"),
        text("law"),
        format!("{mbps:.1}"),
        format!(
            "{:.1}",
            flow["srtt_us"].as_f64().unwrap_or_default() / 1000.0
        ),
        flow["cwnd_pkts"].to_string(),
        flow["segments_retransmitted"].to_string(),
        format!("{:.0}", flow["duration_s"].as_f64().unwrap_or_default()),
    ]
}

/// Text to the left, numbers to the right.
fn aligned(rows: &[[String; 9]]) -> String {
    let widths: Vec<usize> = (0..9)
        .map(|i| {
            rows.iter()
                .map(|row| row[i].len())
                .max()
                .unwrap_or_default()
        })
        .collect();
    let mut text = String::new();
    for row in rows {
        let cells = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(i, (cell, width))| match i {
                0..4 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}
