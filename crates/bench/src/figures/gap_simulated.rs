// SPDX-License-Identifier: MIT OR Apache-2.0
//! The harm of learned paths in the simulator: what two flows of the kernel's CUBIC lose to a late flow on a learned path,
//! beyond what they lose to a third of their kind, over the paths of `experiments/gap/harm.toml`. One run of the kernel
//! tells little, because it depends on a few milliseconds of the late flow's start: here there are twenty.
//!
//! The laws are those of bpf/cc, the settings those of `fatpath_path::choose` for what is known of each path.

use crate::figure::{Better, Figure, Summary};
use crate::run::Run;
use crate::simulated::{path_of, unlimited_flow};
use anyhow::{Context, Result};
use fatpath_cc::{KnownPath, Law};
use fatpath_link::{CellSpec, Discipline};
use fatpath_path::{Estimate, Host, Loss, Profile, Rate, Trust, Value, choose};
use fatpath_sim::{Buffer, FlowSpec, Outcome, Spec, TcpSpec, run as simulate};
use fatpath_statistics::{median, quantile};
use std::ops::ControlFlow;

const MS_NS: u64 = 1_000_000;
const RATE_BPS: u64 = 200_000_000;
const RTT_MS: u64 = 80;
const END_NS: u64 = 32_000 * MS_NS;
/// The late flow comes two to four seconds after the others, the second of these up to 57 ms after the first.
const STARTS: u64 = 20;
const FIRST_START_NS: u64 = 2_000 * MS_NS;
const START_STEP_NS: u64 = 100 * MS_NS;
const OTHERS_STEP_NS: u64 = 3 * MS_NS;
/// Of the path's data, what a flow alone was seen to reach.
const KNOWN_BPS: f64 = 191e6;

const ROWS: [Row; 5] = [
    Row::new("0.5 bdp", 0.5, Known::Queue),
    Row::new("1 bdp", 1.0, Known::Queue),
    Row::new("4 bdp", 4.0, Known::Queue),
    Row {
        is_codel: true,
        ..Row::new("4 bdp, CoDel", 4.0, Known::Found)
    },
    Row {
        loss: 1e-4,
        ..Row::new("1 bdp, 1e-4 lost", 1.0, Known::Lossy)
    },
];

pub const FIGURE: Figure = Figure {
    name: "gap.simulated_harm_points",
    what: "share of the path that two flows of the kernel's CUBIC lose to one on a learned path, beyond what they lose to a third \
           of their kind, simulator: medians of 20 starts, mean of the paths",
    unit: "points",
    better: Better::Lower,
    goal: Some(5.0),
    summary: Summary::Median,
    measure,
};

/// A path of the scenario.
#[derive(Clone, Copy)]
struct Row {
    name: &'static str,
    queue_bdps: f64,
    is_codel: bool,
    loss: f64,
    known: Known,
}

/// What two flows alone have told of it.
#[derive(Clone, Copy, PartialEq)]
enum Known {
    /// Losses meet a queue.
    Queue,
    /// A short one, and `fp_bbr` found the rate.
    Found,
    /// Also below that rate segments are lost.
    Lossy,
}

impl Row {
    const fn new(name: &'static str, queue_bdps: f64, known: Known) -> Row {
        Row {
            name,
            queue_bdps,
            is_codel: false,
            loss: 0.0,
            known,
        }
    }

    fn profile(&self) -> Profile {
        let value = |value| Value { value, doubt: 0.02 };
        let rtt_us = (RTT_MS * 1000) as f64;
        let estimate = Estimate {
            flows: 2,
            seen_us: 0,
            base_rtt_us: value(rtt_us),
            high_rtt_us: rtt_us * (1.0 + self.queue_bdps.min(1.0)),
            rate: Some(Rate {
                bps: value(KNOWN_BPS),
                limit: None,
            }),
            loss: Some(match self.known {
                Known::Queue => Loss::Queue,
                Known::Found => Loss::ShortQueue,
                Known::Lossy => Loss::Random,
            }),
            is_found: self.known != Known::Queue,
            loses_paced: self.known == Known::Lossy,
            retransmitted_share: 1e-3,
            given_retransmitted_share: None,
            has_small_buffers: false,
            is_mixed: false,
            mss_bytes: 1448,
        };
        choose(&estimate, &host(), Trust::Shared).profile
    }

    /// `others` share it from the beginning, `late` comes behind.
    fn spec(&self, start: u64, late: TcpSpec) -> Result<Spec> {
        let bdp_bytes = (RATE_BPS / 8 * RTT_MS / 1000) as f64;
        let mut queue = CellSpec::rate(RATE_BPS, Some((bdp_bytes * self.queue_bdps) as u64));
        if let (CellSpec::Rate(rate), true) = (&mut queue, self.is_codel) {
            rate.queue.discipline = Discipline::Codel {
                target_ns: 5 * MS_NS,
                interval_ns: 100 * MS_NS,
                ecn: false,
            };
        }
        let mut spec = path_of(RTT_MS * MS_NS, [CellSpec::loss(self.loss), queue], END_NS);
        spec.links[0].directions[0].seed = start + 1;
        let of_kernel = kernels_cubic()?;
        let flow = |start_ns, tcp| FlowSpec {
            start_ns,
            tcp,
            ..unlimited_flow(Law::RENO)
        };
        spec.flows = vec![
            flow(FIRST_START_NS + start * START_STEP_NS, late),
            flow(0, of_kernel.clone()),
            flow(start * OTHERS_STEP_NS, of_kernel),
        ];
        Ok(spec)
    }

    /// What the others lose at each start, percentage points of the path's rate.
    fn harms(&self, run: &Run) -> Result<Vec<f64>> {
        let profile = self.profile();
        let harm = |start| {
            run.check()?;
            let third = outcome(&self.spec(start, kernels_cubic()?)?)?;
            let late = learned(&profile, handshake_us(&third))?;
            let beside = outcome(&self.spec(start, late)?)?;
            Ok(100.0 * (others_bps(&third) - others_bps(&beside)) / RATE_BPS as f64)
        };
        (0..STARTS).map(harm).collect()
    }
}

fn measure(run: &Run) -> Result<Vec<f64>> {
    let middle = |row: &Row| {
        let harms = row.harms(run)?;
        let part = |share| quantile(harms.iter().copied(), share).context("no starts");
        let middle = median(&harms).context("no starts")?;
        let mean = harms.iter().sum::<f64>() / harms.len() as f64;
        run.say(format!(
            "  {}: {middle:.1} points, from {:.1} to {:.1} in half of the starts, {:.1} to {:.1} in all, mean {mean:.1}",
            row.name,
            part(0.25)?,
            part(0.75)?,
            part(0.0)?,
            part(1.0)?,
        ));
        Ok(middle)
    };
    let middles: Result<Vec<f64>> = ROWS.iter().map(middle).collect();
    Ok(vec![middles?.iter().sum::<f64>() / ROWS.len() as f64])
}

/// The host whose flow comes late.
fn host() -> Host {
    Host {
        law: "cubic".into(),
        send_autotuned_bytes: 512 << 20,
        receive_autotuned_bytes: 512 << 20,
        most_buffer_bytes: 512 << 20,
        overrides: false,
        private: Vec::new(),
    }
}

/// Large maxima, as in the scenario.
fn tcp(law: Law) -> TcpSpec {
    let mut tcp = TcpSpec {
        law,
        send_buffer: Buffer::Auto(16_384, 512 << 20),
        receive_buffer: Buffer::Auto(65_536, 256 << 20),
        ..TcpSpec::default()
    };
    tcp.start.hystart = law.spec().hystart;
    tcp
}

fn kernels_cubic() -> Result<TcpSpec> {
    let law = Law::named("cubic").context("fp_cubic is a law")?;
    Ok(TcpSpec {
        starts_as_kernel: true,
        ..tcp(law)
    })
}

/// As the kernel half gives it to a flow whose handshake took so long: the start at a rate only where that met no queue
/// (`most_rtt_us()` of bpf/include/paths.h).
fn learned(profile: &Profile, handshake_us: u64) -> Result<TcpSpec> {
    let law = profile.law.context("each row's path asks for a law")?;
    let mut tcp = tcp(Law::named(law.name()).context(law.name())?);
    tcp.start.initial_ssthresh_pkts = profile.initial_ssthresh_pkts.unwrap_or(0) as u32;
    tcp.start.known = KnownPath {
        bdp_pkts: (KNOWN_BPS * RTT_MS as f64 / 8e3 / 1448.0) as u32,
        base_rtt_us: (RTT_MS * 1000) as u32,
    };
    // Of 80 ms an eighth is within the bounds of 4 and 16.
    if handshake_us < RTT_MS * 1000 * 9 / 8 {
        tcp.start.initial_rate_bps = profile.initial_rate_bps.unwrap_or(0);
    }
    tcp.pacing_rate_bps = profile.pacing_rate_bps;
    Ok(tcp)
}

fn outcome(spec: &Spec) -> Result<Outcome> {
    Ok(simulate(spec, |_| ControlFlow::Continue(()))?)
}

/// Of the late flow.
fn handshake_us(outcome: &Outcome) -> u64 {
    let late = &outcome.flows[0];
    let began_ns = END_NS.saturating_sub(late.duration_ns);
    let established_ns = late.established_ns.unwrap_or(began_ns);
    established_ns.saturating_sub(began_ns) / 1000
}

fn others_bps(outcome: &Outcome) -> f64 {
    let others = outcome.flows[1..].iter();
    let bytes: u64 = others.map(|flow| flow.delivered_bytes).sum();
    bytes as f64 * 8e9 / END_NS as f64
}
