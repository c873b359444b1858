// SPDX-License-Identifier: MIT OR Apache-2.0
//! An emulated path for a figure: two hosts, and packets forwarded while something is measured.

use crate::alone::{Alone, NETWORK};
use crate::run::Run;
use anyhow::{Result, ensure};
use fatpath_emulator::unshaped::{iperf3, received_bps, two_hosts};
use fatpath_emulator::{CellSpec, ChainSpec, ForwardOptions, Network, Stats, Topology};

const TCP_RUNS: u32 = 5;
const TCP_SECONDS: &str = "5";

/// Two hosts, `delay_ms` from each other and back. On the way from the client a bottleneck has a queue of one
/// bandwidth-delay product, and what it let through is lost with this probability.
pub fn long_path(rate_bps: u64, delay_ms: u64, loss: f64, seed: u64) -> Topology {
    let delay_ns = delay_ms * 1_000_000;
    let bdp_bytes = delay_ms * 2 * rate_bps / 8000;
    let mut topology = two_hosts(NETWORK, &ChainSpec::of([CellSpec::delay(delay_ns)]));
    let mut cells = vec![CellSpec::rate(rate_bps, Some(bdp_bytes))];
    if loss > 0.0 {
        cells.push(CellSpec::loss(loss));
    }
    cells.push(CellSpec::delay(delay_ns));
    topology.links[0].directions[0] = ChainSpec { cells, seed };
    topology
}

/// Brings `topology` up, forwards while `measure` works, and takes it down. Refused when the
/// emulator missed packets: the path was then another than the figure's.
pub fn forwarded<T>(
    topology: &Topology,
    measure: impl FnOnce(&Network) -> Result<T>,
) -> Result<(T, Stats)> {
    let network = Network::up(topology)?;
    let (measured, stats) =
        network.forward_while(ForwardOptions::default(), |_| measure(&network))?;
    let measured = measured?;
    for direction in stats.links.iter().flat_map(|link| &link.directions) {
        let missed = direction.missed_packets;
        ensure!(
            missed == 0,
            "the emulator was too slow: {missed} packets missed"
        );
    }
    Ok((measured, stats))
}

/// What one TCP flow gets over a link without rate, delay or loss, in Gb/s, five times.
pub fn tcp_gbps(run: &Run, exact: bool) -> Result<Vec<f64>> {
    let _alone = Alone::wait(run)?;
    let mut topology = two_hosts(NETWORK, &ChainSpec::default());
    topology.links[0].exact = exact;
    let gbps = |n| {
        run.check()?;
        let flow = |network: &Network| Ok(iperf3(network, &["-t", TCP_SECONDS])?);
        let (result, _) = forwarded(&topology, flow)?;
        let gbps = received_bps(&result)? / 1e9;
        run.say(format!("  run {n} of {TCP_RUNS}: {gbps:.2} Gb/s"));
        Ok(gbps)
    };
    (1..=TCP_RUNS).map(gbps).collect()
}
