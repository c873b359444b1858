// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether an ACK costs the kernel more when the window is large (Kelly 2003, "Problem area 2"): processor time of an ACK
//! at windows of 100 to 20,000 segments, without loss, and with one loss in each of two round trips.
//!
//! This program is the receiver, behind a TUN device, so that the call that hands an ACK over does all that the kernel
//! does at it, the segments sent at it too. A clamp and an initial window of the same size hold the window. After a loss it
//! falls, so a sample is made of many connections, each measured for its first two round trips with loss. Laws take
//! turns; the kernel's reno beside them tells what the kernel's own stack costs there.

use crate::alone::Alone;
use crate::figure::{Better, Figure, Summary};
use crate::loaded::Loaded;
use crate::one_processor::OneProcessor;
use crate::peer::MSS_BYTES;
use crate::run::Run;
use crate::transfer::Waited;
use crate::tun_host::{Flow, TunHost};
use anyhow::{Result, ensure};
use fatpath_policy::our_window_laws;
use std::net::Ipv4Addr;
use std::time::Duration;

const WINDOWS_PKTS: [u32; 4] = [100, 1_000, 10_000, 20_000];
const SAMPLES: usize = 5;
/// Of a sample, at least.
const ACKS: u32 = 4_000;
/// The kernel's own, the first of which the others are compared with.
const KERNELS: [&str; 2] = ["reno", "cubic"];
/// Some count for nothing: see [`Host::sample_ns`].
const MOST_CONNECTIONS: u32 = 1_000;
/// An ACK that took so long may have waited for the processor.
const SUSPECT: Duration = Duration::from_micros(100);

/// Without loss: of every fp_ law the ratio of the largest window to the smallest; the worst of them.
pub const CLEAN: Figure = Figure {
    name: "law.ack_cost_by_window",
    what: "kernel: processor time of an ACK at a window of 20,000 segments over that at 100; the worst fp_ law",
    unit: "ratio",
    better: Better::Lower,
    goal: None,
    summary: Summary::Worst,
    measure: |run| measure(run, Loss::None),
};

/// The same with one loss in each round trip.
pub const LOSSY: Figure = Figure {
    name: "law.ack_cost_by_window.lossy",
    what: "the same with one loss in each of two round trips",
    measure: |run| measure(run, Loss::EachRoundTrip),
    ..CLEAN
};

#[derive(Clone, Copy, PartialEq)]
enum Loss {
    None,
    EachRoundTrip,
}

/// The ratios of the laws of ours, and a line for each law.
fn measure(run: &Run, loss: Loss) -> Result<Vec<f64>> {
    let alone = Alone::wait(run)?;
    let laws: Vec<String> = KERNELS
        .map(String::from)
        .into_iter()
        .chain(our_window_laws())
        .collect();
    let loaded = Loaded::start(run, &alone, &policy(&laws), None)?;
    let host = TunHost::make()?;
    let _one = OneProcessor::keep()?;
    let mut costs_ns = vec![vec![Vec::new(); WINDOWS_PKTS.len()]; laws.len()];
    for _ in 0..SAMPLES {
        for window in 0..WINDOWS_PKTS.len() {
            for (law, costs) in costs_ns.iter_mut().enumerate() {
                run.check()?;
                costs[window].push(sample_ns(&host, law, window, loss)?);
            }
        }
    }
    drop(loaded);
    let medians = |costs: &Vec<Vec<f64>>| -> Vec<f64> {
        let median = |samples: &Vec<f64>| Summary::Median.of(samples).unwrap_or(f64::NAN);
        costs.iter().map(median).collect()
    };
    let costs_ns: Vec<Vec<f64>> = costs_ns.iter().map(medians).collect();
    for (law, costs) in laws.iter().zip(&costs_ns) {
        run.say(line(law, costs, &costs_ns[0]));
    }
    Ok(costs_ns[KERNELS.len()..]
        .iter()
        .map(|costs| ratio(costs))
        .collect())
}

fn ratio(costs_ns: &[f64]) -> f64 {
    costs_ns[WINDOWS_PKTS.len() - 1] / costs_ns[0]
}

/// What an ACK costs at each window, and how much of that is the law's: more than under the kernel's reno.
fn line(law: &str, costs_ns: &[f64], of_reno_ns: &[f64]) -> String {
    let each = WINDOWS_PKTS.iter().zip(costs_ns.iter().zip(of_reno_ns));
    let each: Vec<String> = each
        .map(|(window, (ns, reno))| format!("{ns:.0} ns ({:+.0}) at {window}", ns - reno))
        .collect();
    format!("  {law}: {}; ratio {:.2}", each.join(", "), ratio(costs_ns))
}

/// The peer's address tells the policy law and window.
fn peer_address(law: usize, window: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 78, law as u8, 1 + window as u8)
}

fn policy(laws: &[String]) -> String {
    let mut text = String::from("[host.sysctl]\n'net.core.wmem_max' = 'auto'\n");
    for (law, name) in laws.iter().enumerate() {
        for (window, pkts) in WINDOWS_PKTS.iter().enumerate() {
            text += &rule(name, *pkts, peer_address(law, window));
        }
    }
    text
}

/// The kernel's laws begin with their clamp as threshold; ours take it for no knowledge of the path.
fn rule(law: &str, window_pkts: u32, peer: Ipv4Addr) -> String {
    let threshold = match KERNELS.contains(&law) {
        true => String::new(),
        false => format!("initial_ssthresh = {window_pkts}\n"),
    };
    // The kernel doubles it; the memory of a segment is about twice its data.
    let buffer_bytes = 4 * window_pkts * MSS_BYTES + (1 << 20);
    format!(
        "[[rule]]\nname = '{law}-{window_pkts}'\ndestination = ['{peer}']\ncongestion_control = '{law}'\n{threshold}\
         initial_window = {window_pkts}\ncwnd_clamp = {window_pkts}\nsend_buffer = {buffer_bytes}\n"
    )
}

/// Time of an ACK, over as many connections as it takes. One that sent again what was not lost, because this
/// thread was kept from acknowledging it, counts for nothing.
fn sample_ns(host: &TunHost, law: usize, window: usize, loss: Loss) -> Result<f64> {
    let (round_trips, lost_pkts) = match loss {
        Loss::None => (2.max(2 * ACKS / WINDOWS_PKTS[window]), 0),
        Loss::EachRoundTrip => (2, 2),
    };
    let (mut all, mut connections) = (Spent::default(), 0);
    while all.acks < ACKS {
        connections += 1;
        ensure!(
            connections <= MOST_CONNECTIONS,
            "the kernel repeats what was not lost"
        );
        let (mut flow, mut spent) = (full_flow(host, law, window)?, Spent::default());
        round_trip(&mut flow, &mut Spent::default(), Loss::None)?;
        for _ in 0..round_trips {
            round_trip(&mut flow, &mut spent, loss)?;
        }
        if flow.peer.resent_pkts() <= lost_pkts {
            all.acks += spent.acks;
            all.time += spent.time;
        }
    }
    Ok(all.time.as_nanos() as f64 / f64::from(all.acks))
}

fn full_flow(host: &TunHost, law: usize, window: usize) -> Result<Flow<'_>> {
    let flow = host.flow(peer_address(law, window))?;
    let (has, wanted) = (flow.peer.on_way_pkts(), WINDOWS_PKTS[window]);
    ensure!(
        has + 2 >= wanted,
        "{has} segments on their way instead of {wanted}"
    );
    Ok(flow)
}

/// Processor time of ACKs.
#[derive(Default)]
struct Spent {
    acks: u32,
    time: Duration,
}

/// Until what is on its way now has arrived. The segment that is lost is the first after what was lost in the
/// round trip before has arrived.
fn round_trip(flow: &mut Flow, spent: &mut Spent, loss: Loss) -> Result<()> {
    let acks = flow.peer.on_way_pkts().div_ceil(2);
    let mut is_to_lose = loss == Loss::EachRoundTrip;
    let mut waited = Waited::now()?;
    for _ in 0..acks {
        if is_to_lose && !flow.peer.has_hole() {
            flow.peer.lose();
            is_to_lose = false;
        }
        let Some(took) = flow.peer.acknowledge()? else {
            break;
        };
        let has_waited = took > SUSPECT && !waited.since()?.is_zero();
        if has_waited {
            waited = Waited::now()?;
        } else {
            spent.acks += 1;
            spent.time += took;
        }
        flow.fill()?;
    }
    Ok(())
}
