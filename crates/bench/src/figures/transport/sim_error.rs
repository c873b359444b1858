// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far the transport over the emulator is from the simulator, by each law of windows: the same TCP, the same link, the same
//! losses by seed. A law's error is that of the medians of its runs. How far the kernel is from the simulator is
//! `law.kernel_sim_error`'s.

use super::Ends;
use crate::alone::Alone;
use crate::emulated::{forwarded, long_path};
use crate::figure::{Better, Figure, Summary};
use crate::run::Run;
use crate::simulated;
use anyhow::{Context, Result};
use fatpath_cc::{Law, LawSpec, window_laws};
use fatpath_driver::{Bound, Socket};
use fatpath_emulator::{Network, Topology};
use fatpath_link::headers::UDP_BYTES;
use fatpath_sim::FlowSpec;
use fatpath_statistics::median;
use fatpath_tcp::{MAX_BLOCKS, TcpSpec};
use fatpath_transport::Spec;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::{ControlFlow, RangeInclusive};
use std::time::Duration;

const SEEDS: RangeInclusive<u8> = 1..=3;
const LASTS: Duration = Duration::from_secs(10);
const RATE_BPS: u64 = 1_000_000_000;
const RTT: Duration = Duration::from_millis(100);
const LOSS: f64 = 0.0001;

pub const FIGURE: Figure = Figure {
    name: "transport.sim_error",
    what: "goodput of every law of windows, transport over the emulator against simulator, 1 Gb/s x 100 ms, 0.01 % of loss: worst error of the medians",
    unit: "ratio - 1",
    better: Better::Lower,
    goal: Some(0.10),
    summary: Summary::Worst,
    measure,
};

fn measure(run: &Run) -> Result<Vec<f64>> {
    let _alone = Alone::wait(run)?;
    window_laws().map(|law| error(run, law)).collect()
}

fn error(run: &Run, law: &LawSpec) -> Result<f64> {
    let spec = spec(law)?;
    let mut mbps = [vec![], vec![]];
    for seed in SEEDS {
        run.check()?;
        let path = long_path(RATE_BPS, RTT.as_millis() as u64 / 2, LOSS, seed.into());
        mbps[0].push(transported_mbps(&spec, &path, seed)?);
        mbps[1].push(simulated_mbps(&spec, &path)?);
    }
    let [transport, simulator] = mbps.each_ref().map(|runs| median(runs));
    let (transport, simulator) = (transport.context("a run")?, simulator.context("a run")?);
    let error = simulator / transport - 1.0;
    run.say(format!(
        "  fp_{}: {:+.1} %, transport {:.1?}, simulator {:.1?} Mb/s",
        law.name,
        error * 100.0,
        mbps[0],
        mbps[1]
    ));
    Ok(error)
}

/// What the two have in common; AIMD's parameters are those of experiments/agreement.toml.
fn spec(law: &LawSpec) -> Result<Spec> {
    let mut tcp = TcpSpec {
        law: Law::named(law.name).context("it has its name of the table")?,
        sack_blocks: MAX_BLOCKS as u8,
        ..TcpSpec::default()
    };
    if law.name == "aimd" {
        tcp.law = tcp.law.with_all(&[("a", 6.0), ("b", 0.3)])?;
    }
    tcp.start.hystart = law.hystart;
    Ok(Spec {
        tcp,
        ..Spec::default()
    })
}

fn transported_mbps(spec: &Spec, path: &Topology, seed: u8) -> Result<f64> {
    let (bytes, _) = forwarded(path, |network| {
        let here = socket(network, "client", 1)?;
        let there = socket(network, "server", 2)?;
        Ends::new(spec, seed, [here, there], RTT)?.move_for(LASTS)
    })?;
    Ok(mbps(bytes))
}

fn socket(network: &Network, host: &str, number: u8) -> Result<(Socket, Bound)> {
    let host = network.host(host).context("`two_hosts` names it")?;
    host.run(|| Ends::socket(IpAddr::V4(Ipv4Addr::new(10, 99, 0, number))))?
}

/// A connection of the simulator begins with a handshake, which the transport's has behind it.
fn simulated_mbps(spec: &Spec, path: &Topology) -> Result<f64> {
    let directions = path.links[0].directions.clone();
    let mut simulation = simulated::path_by(directions, (LASTS + RTT).as_nanos() as u64);
    simulation.flows = vec![FlowSpec {
        tcp: spec.as_tcp(UDP_BYTES),
        ..simulated::unlimited_flow(spec.tcp.law)
    }];
    let outcome = fatpath_sim::run(&simulation, |_| ControlFlow::Continue(()))?;
    Ok(mbps(outcome.flows[0].delivered_bytes))
}

fn mbps(bytes: u64) -> f64 {
    bytes as f64 * 8e-6 / LASTS.as_secs_f64()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests {
    use super::*;

    #[test]
    fn a_simulated_packet_is_as_long_as_a_datagram_on_the_wire() {
        for law in window_laws() {
            let spec = spec(law).unwrap();
            let tcp = spec.as_tcp(UDP_BYTES);
            assert_eq!((tcp.mss_bytes, tcp.header_bytes), (1412, 68));
            assert_eq!(tcp.law.spec().name, law.name);
        }
    }
}
