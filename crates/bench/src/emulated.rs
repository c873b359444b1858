// SPDX-License-Identifier: MIT OR Apache-2.0
//! An emulated path for a figure: two hosts, and packets forwarded while something is measured.

use anyhow::{Result, ensure};
use fatpath_emulator::{ForwardOptions, Network, Stats, Topology};

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
