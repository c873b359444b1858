// SPDX-License-Identifier: MIT OR Apache-2.0
//! Queues, and what a link carries with them; the windows of flows that do not slow down.

use super::{Comparison, outcome, seconds_ns};
use crate::simulated::{self, MSS_BYTES, path_of, unlimited_flow};
use anyhow::{Context, Result};
use fatpath_cc::Law;
use fatpath_link::CellSpec;
use fatpath_model::{Model, Path, Quantity, buffers, slow_start};
use fatpath_sim::{Buffer, FlowSpec, RudeRate, RudeSpec, Spec};

const PACKET_BYTES: f64 = 1_500.0;

pub(super) fn comparisons(model: &Model) -> Result<Vec<Comparison>> {
    match model.name {
        "slow-start-queue" => slow_start_queues(),
        "queue-one-flow" => one_flow(),
        "queue-many-flows" => many_flows(),
        "window-repair" => repair_windows(),
        _ => Ok(Vec::new()),
    }
}

/// A bottleneck with a queue.
#[derive(Clone, Copy)]
struct Bottleneck {
    rate_bps: f64,
    rtt_s: f64,
    queue_bdp: f64,
}

impl Bottleneck {
    fn bdp_bytes(&self) -> f64 {
        buffers::bdp_bytes(self.rate_bps, self.rtt_s)
    }

    fn path(&self) -> Path {
        Path {
            rate_bps: Some(self.rate_bps),
            ..Path::new(self.rtt_s, 0.0)
        }
    }

    fn spec(&self, loss: f64, seconds: f64) -> Spec {
        let queue_bytes = (self.queue_bdp * self.bdp_bytes()) as u64;
        let cells = [
            CellSpec::loss(loss),
            CellSpec::rate(self.rate_bps as u64, Some(queue_bytes)),
        ];
        path_of(seconds_ns(self.rtt_s), cells, seconds_ns(seconds))
    }
}

/// Delivered from a fourth of the time on, as a share of what the bottleneck carries.
fn share(bottleneck: &Bottleneck, mut spec: Spec) -> Result<f64> {
    let from_ns = spec.end_ns / 4;
    spec.sample_every_ns = Some(from_ns);
    let outcome = outcome(&spec)?;
    let flows = outcome.flows.iter().map(|flow| {
        let before = flow.samples.iter().rfind(|sample| sample.at_ns <= from_ns);
        flow.delivered_bytes - before.map_or(0, |sample| sample.delivered_bytes)
    });
    let seconds = (spec.end_ns - from_ns) as f64 / 1e9;
    let data_bps = bottleneck.path().data_rate_bps().context("it has a rate")?;
    Ok(flows.sum::<u64>() as f64 * 8.0 / seconds / data_bps)
}

/// Windows that doublings of the initial one reach, paced as Linux does and not, and bottlenecks.
const SLOW_STARTS: [(u32, Option<f64>, f64); 5] = [
    (640, None, 200e6),
    (1_280, None, 200e6),
    (1_280, Some(slow_start::LINUX_PACING_GAIN), 200e6),
    (1_280, Some(slow_start::LINUX_PACING_GAIN), 180e6),
    (1_280, Some(slow_start::LINUX_PACING_GAIN), 160e6),
];

fn slow_start_queues() -> Result<Vec<Comparison>> {
    let compare = |(window_pkts, pacing_gain, rate_bps): (u32, Option<f64>, f64)| {
        let bottleneck = Bottleneck {
            rate_bps,
            rtt_s: 0.1,
            queue_bdp: 4.0,
        };
        let bdp_pkts = bottleneck.path().bdp_pkts().context("it has a rate")?;
        let sender = slow_start::Sender {
            window_pkts: f64::from(window_pkts),
            bdp_pkts,
            access_ratio: f64::INFINITY,
            pacing_gain,
        };
        let queue_pkts = slow_start::queue_pkts(&sender);
        Ok(Comparison {
            case: format!("to {window_pkts} of {bdp_pkts:.0} segments, paced {pacing_gain:?}"),
            asked: vec![(Quantity::QueueBdp, queue_pkts / bdp_pkts)],
            expected: queue_pkts,
            simulated: deepest_queue_pkts(&bottleneck, &sender)?,
        })
    };
    SLOW_STARTS.into_iter().map(compare).collect()
}

fn deepest_queue_pkts(bottleneck: &Bottleneck, sender: &slow_start::Sender) -> Result<f64> {
    let mut spec = bottleneck.spec(0.0, 3.0);
    let mut flow = simulated::flow(Law::RENO, sender.window_pkts as u64 * MSS_BYTES);
    flow.tcp.pacing = sender.pacing_gain.is_some();
    spec.flows = vec![flow];
    let outcome = outcome(&spec)?;
    Ok(outcome.links[0][0].peak_queue_bytes as f64 / PACKET_BYTES)
}

fn one_flow() -> Result<Vec<Comparison>> {
    let scalable = Law::named("scalable").context("no law `scalable`")?;
    let laws = [
        (Law::RENO, 0.5),
        (Law::aimd(4.0, 0.125)?, 0.125),
        (scalable, 0.125),
    ];
    let mut comparisons = Vec::new();
    for (law, b) in laws {
        for queue_bdp in [0.05, 0.2, 0.5, 1.0] {
            let bottleneck = Bottleneck {
                rate_bps: 50e6,
                rtt_s: 0.05,
                queue_bdp,
            };
            let mut spec = bottleneck.spec(0.0, 120.0);
            spec.flows = vec![starting_full(law, &bottleneck)?];
            comparisons.push(Comparison {
                case: format!("{law}, queue of {queue_bdp} bdp"),
                asked: vec![(Quantity::QueueBdp, queue_bdp)],
                expected: buffers::one_flow_share(b, queue_bdp),
                simulated: share(&bottleneck, spec)?,
            });
        }
    }
    Ok(comparisons)
}

/// Slow start ends where the path is full.
fn starting_full(law: Law, bottleneck: &Bottleneck) -> Result<FlowSpec> {
    let mut flow = unlimited_flow(law);
    let bdp_pkts = bottleneck.path().bdp_pkts().context("it has a rate")?;
    flow.tcp.start.initial_ssthresh_pkts = (bdp_pkts / 2.0) as u32;
    Ok(flow)
}

fn many_flows() -> Result<Vec<Comparison>> {
    let compare = |flows: u32| {
        let queue_bdp = buffers::many_flows_queue_bdp(f64::from(flows));
        let bottleneck = Bottleneck {
            rate_bps: 500e6,
            rtt_s: 0.08,
            queue_bdp,
        };
        let mut spec = bottleneck.spec(0.0, 40.0);
        spec.flows = vec![unlimited_flow(Law::RENO); flows as usize];
        for (index, flow) in (0..).zip(&mut spec.flows) {
            flow.start_ns = index * 40_000_000;
        }
        Ok(Comparison {
            case: format!("{flows} flows of Reno"),
            asked: vec![(Quantity::Flows, f64::from(flows))],
            expected: 1.0,
            simulated: share(&bottleneck, spec)?,
        })
    };
    [30, 60, 120].into_iter().map(compare).collect()
}

/// What a rude flow reaches with this window, over what it reaches with an ample one.
fn repair_windows() -> Result<Vec<Comparison>> {
    let bottleneck = Bottleneck {
        rate_bps: 400e6,
        rtt_s: 0.1,
        queue_bdp: 1.0,
    };
    let bdp_pkts = bottleneck.path().bdp_pkts().context("it has a rate")?;
    let compare = |loss| {
        let window_bdp = buffers::repair_window_bdp(bdp_pkts, loss);
        let reached = |window_bdp: f64| {
            let mut spec = bottleneck.spec(loss, 20.0);
            spec.flows = vec![rude(&bottleneck, window_bdp)];
            share(&bottleneck, spec)
        };
        Ok(Comparison {
            case: format!("loss of {loss:e}: {window_bdp} bdp"),
            asked: vec![(Quantity::Loss, loss)],
            expected: reached(16.0)?,
            simulated: reached(window_bdp)?,
        })
    };
    [1e-4, 1e-3, 1e-2, 5e-2].into_iter().map(compare).collect()
}

fn rude(bottleneck: &Bottleneck, window_bdp: f64) -> FlowSpec {
    let window_bytes = (window_bdp * bottleneck.bdp_bytes()) as u64;
    let mut flow = simulated::flow(Law::RENO, window_bytes);
    flow.tcp.send_buffer = Buffer::Fixed(window_bytes);
    flow.tcp.rude = Some(RudeSpec {
        rate: RudeRate::Share((0.9 * bottleneck.rate_bps) as u64),
        off: None,
        converged_milli: 10,
    });
    flow
}
