// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an ACK costs under `fp_bbr` over what it costs under the kernel's own `bbr`, socket storage and struct_ops
//! included. This program is the receiver (`peer.rs`); connections of the two laws take turns, and ACKs that let
//! something go are left out: how much goes at once is the pacing rate's matter, not the law's cost.

use crate::alone::Alone;
use crate::figure::{Better, Figure, Summary};
use crate::loaded::Loaded;
use crate::one_processor::OneProcessor;
use crate::run::Run;
use crate::tun_host::TunHost;
use anyhow::{Result, ensure};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

const SAMPLES: u32 = 30;
/// Left out at the beginning of each connection.
const WARM_ACKS: usize = 500;
const ACKS: usize = 4_000;
/// For the ACKs of one connection; they take a twentieth of it.
const PATIENCE: Duration = Duration::from_secs(5);
const CLAMP_PKTS: u32 = 1_000;
const LAWS: [(&str, Ipv4Addr); 2] = [
    ("fp_bbr", Ipv4Addr::new(10, 78, 0, 1)),
    ("bbr", Ipv4Addr::new(10, 78, 0, 2)),
];

/// Median of thirty pairs.
pub const FIGURE: Figure = Figure {
    name: "bbr.ack_cost_ratio",
    what: "kernel: time of an ACK that lets nothing go, fp_bbr over the kernel's bbr",
    unit: "ratio",
    better: Better::Lower,
    goal: Some(1.10),
    summary: Summary::Median,
    measure,
};

fn measure(run: &Run) -> Result<Vec<f64>> {
    let alone = Alone::wait(run)?;
    let policy: String = LAWS.iter().map(|(law, peer)| rule(law, *peer)).collect();
    let _loaded = Loaded::start(run, &alone, &policy, None)?;
    let host = TunHost::make()?;
    let _one = OneProcessor::keep()?;
    (1..=SAMPLES).map(|n| sample(run, &host, n)).collect()
}

fn rule(law: &str, peer: Ipv4Addr) -> String {
    format!(
        "[[rule]]\nname = '{law}'\ndestination = ['{peer}']\ncongestion_control = '{law}'\n\
         cwnd_clamp = {CLAMP_PKTS}\nsend_buffer = 8000000\n"
    )
}

fn sample(run: &Run, host: &TunHost, n: u32) -> Result<f64> {
    run.check()?;
    let mut laws = LAWS;
    if n.is_multiple_of(2) {
        laws.reverse();
    }
    let mut costs_ns = [0.0; 2];
    for (law, peer) in laws {
        let place = usize::from(law != LAWS[0].0);
        costs_ns[place] = ack_ns(host, peer)?;
    }
    let [ours, kernels] = costs_ns;
    run.say(format!(
        "  sample {n} of {SAMPLES}: {ours:.0} ns, {kernels:.0} ns"
    ));
    Ok(ours / kernels)
}

/// The median, of one connection.
fn ack_ns(host: &TunHost, peer: Ipv4Addr) -> Result<f64> {
    let mut flow = host.flow(peer)?;
    let end = Instant::now() + PATIENCE;
    let mut took_ns = Vec::new();
    while took_ns.len() < WARM_ACKS + ACKS {
        ensure!(Instant::now() < end, "only {} ACKs", took_ns.len());
        let before_pkts = flow.peer.on_way_pkts();
        if let Some(took) = flow.peer.acknowledge()? {
            let has_sent = flow.peer.on_way_pkts() + 2 > before_pkts;
            if !has_sent {
                took_ns.push(took.as_nanos() as f64);
            }
        }
        flow.fill()?;
    }
    let median = Summary::Median.of(&took_ns[WARM_ACKS..]);
    Ok(median.expect("there are ACKs"))
}
