// SPDX-License-Identifier: MIT OR Apache-2.0
//! An emulated path for a figure: two hosts, and packets forwarded while something is measured.

use crate::alone::{Alone, NETWORK};
use crate::run::Run;
use anyhow::{Result, ensure};
use fatpath_emulator::unshaped::{iperf3, received_bps, two_hosts};
use fatpath_emulator::{ChainSpec, ForwardOptions, Network, Stats, Topology};

const TCP_RUNS: u32 = 5;
const TCP_SECONDS: &str = "5";

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
