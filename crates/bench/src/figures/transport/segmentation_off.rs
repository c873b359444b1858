// SPDX-License-Identifier: MIT OR Apache-2.0
//! The transport over a veth pair whose devices neither segment nor join packets, so that every datagram passes the kernel
//! by itself; and TCP of the kernel over the same pair, not encrypted, in turn with it.

use super::{Ends, RTT, spec};
use crate::alone::Alone;
use crate::figure::{Better, Figure, Summary};
use crate::run::Run;
use crate::wire::{self, Wire};
use anyhow::Result;
use fatpath_emulator::unshaped::{iperf3_between, received_bps};
use std::time::Instant;

const RUNS: u8 = 3;
const BYTES: u64 = 1_000_000_000;

pub const FIGURE: Figure = Figure {
    name: "transport.gbps_segmentation_off",
    what: "memory to memory over veth without segmentation by devices, encrypted, one flow; TCP's rate is told beside",
    unit: "Gb/s",
    better: Better::Higher,
    goal: None,
    summary: Summary::Median,
    measure,
};

fn measure(run: &Run) -> Result<Vec<f64>> {
    let alone = Alone::wait(run)?;
    let wire = Wire::lay(&alone)?;
    wire.switch_segmentation_off()?;
    let one = |n| {
        run.check()?;
        let (ours, tcp) = (gbps(&wire, n)?, tcp_gbps(&wire)?);
        run.say(format!(
            "  run {n} of {RUNS}: {ours:.2} Gb/s, TCP of the kernel {tcp:.2} Gb/s"
        ));
        Ok(ours)
    };
    (1..=RUNS).map(one).collect()
}

fn gbps(wire: &Wire, number: u8) -> Result<f64> {
    let here = wire.client.run(|| Ends::socket(wire::CLIENT.into()))??;
    let there = wire.server.run(|| Ends::socket(wire::SERVER.into()))??;
    let ends = Ends::new(&spec()?, number, [here, there], RTT)?;
    let begun = Instant::now();
    ends.move_all(BYTES)?;
    Ok(BYTES as f64 * 8e-9 / begun.elapsed().as_secs_f64())
}

fn tcp_gbps(wire: &Wire) -> Result<f64> {
    let address = wire::SERVER.to_string();
    let result = iperf3_between(&wire.client, &wire.server, &address, &["-t", "3"])?;
    Ok(received_bps(&result)? / 1e9)
}
