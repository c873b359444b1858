// SPDX-License-Identifier: MIT OR Apache-2.0
//! An emulated path for a figure: two hosts, and packets forwarded while something is measured.

use anyhow::{Result, ensure};
use fatpath_emulator::{Control, ForwardOptions, Network, Stats, Topology};
use std::thread;

/// Brings `topology` up, forwards while `measure` works, and takes it down. Refused when the
/// emulator missed packets: the path was then another than the figure's.
pub fn forwarded<T>(
    topology: &Topology,
    measure: impl FnOnce(&Network) -> Result<T>,
) -> Result<(T, Stats)> {
    let network = Network::up(topology)?;
    let control = Control::new()?;
    let (measured, stats) = thread::scope(|scope| {
        let forwarder = scope.spawn(|| network.forward(ForwardOptions::default(), &control));
        let measured = measure(&network);
        control.stop();
        let stats = forwarder.join().expect("the forwarder does not panic");
        (measured, stats)
    });
    let (measured, stats) = (measured?, stats?);
    for direction in stats.links.iter().flat_map(|link| &link.directions) {
        let missed = direction.missed_packets;
        ensure!(
            missed == 0,
            "the emulator was too slow: {missed} packets missed"
        );
    }
    Ok((measured, stats))
}
