// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the emulator carries the path that it is there for: one TCP flow over 5 Gb/s and 50 ms
//! one way, behind a queue of one bandwidth-delay product.

use crate::alone::{Alone, NETWORK};
use crate::emulated::forwarded;
use crate::figure::{Better, Figure, Summary};
use crate::run::Run;
use anyhow::Result;
use fatpath_emulator::unshaped::{iperf3, received_bps, two_hosts};
use fatpath_emulator::{CellSpec, ChainSpec, Network, Topology};

const RUNS: u32 = 3;
const RATE_BPS: u64 = 5_000_000_000;
const DELAY_NS: u64 = 50_000_000;
/// Rate × round trip.
const QUEUE_BYTES: u64 = 62_500_000;
/// Until the flow has left slow start and what was lost then has been retransmitted.
const START_UP_SECONDS: &str = "15";
const SECONDS: &str = "15";
/// IP bytes for each byte of payload: segments of 1,500 bytes, timestamps in each.
const IP_BYTES_A_BYTE: f64 = 1500.0 / 1448.0;
/// A window of two bandwidth-delay products, twice as many bytes in buffers, and room.
const BUFFERS: [(&str, &str); 2] = [
    ("net.ipv4.tcp_rmem", "4096 131072 536870912"),
    ("net.ipv4.tcp_wmem", "4096 16384 536870912"),
];

/// Median of three runs. Share of the rate in IP bytes, which the receiver's payload stands for.
pub const FIGURE: Figure = Figure {
    name: "emulator.shaped_5g_share",
    what: "one TCP flow through 5 Gb/s, 50 ms one way, in steady state: share of the rate",
    unit: "share",
    better: Better::Higher,
    goal: Some(0.95),
    summary: Summary::Median,
    measure,
};

fn measure(run: &Run) -> Result<Vec<f64>> {
    let _alone = Alone::wait(run)?;
    let share = |n| {
        run.check()?;
        let (bps, stats) = forwarded(&path(), bulk_bps)?;
        let share = bps * IP_BYTES_A_BYTE / RATE_BPS as f64;
        let dropped = stats.links[0].directions[0].total.dropped_total().packets;
        run.say(format!(
            "  run {n} of {RUNS}: {share:.3}, payload {:.2} Gb/s, {dropped} dropped by the queue",
            bps / 1e9
        ));
        Ok(share)
    };
    (1..=RUNS).map(share).collect()
}

fn path() -> Topology {
    let direction = ChainSpec::of([
        CellSpec::rate(RATE_BPS, Some(QUEUE_BYTES)),
        CellSpec::delay(DELAY_NS),
    ]);
    two_hosts(NETWORK, &direction)
}

/// Autotuning, not `-w`: that would be capped by net.core.rmem_max, which is one for the machine.
/// Cubic, since the machine's default law may be any.
fn bulk_bps(network: &Network) -> Result<f64> {
    for host in ["client", "server"] {
        let namespace = network.host(host).expect("`two_hosts` names it");
        for (sysctl, value) in BUFFERS {
            namespace.set_sysctl(sysctl, value)?;
        }
    }
    let arguments = ["-C", "cubic", "-t", SECONDS, "-O", START_UP_SECONDS];
    Ok(received_bps(&iperf3(network, &arguments)?)?)
}
