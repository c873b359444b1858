// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many packets a second one core polices: the kernel runs the program of a police at XDP again and
//! again on one frame (BPF_PROG_TEST_RUN) and says what a run takes. The driver's own work is not in it.

use crate::alone::Alone;
use crate::figure::{Better, Figure, Summary};
use crate::run::Run;
use crate::wire::Wire;
use anyhow::{Result, ensure};
use fatpath_kernel::{Hook, Orders, Police, PoliceMark, PoliceMode};
use std::path::Path;

const SAMPLES: u32 = 15;
/// A tenth of a second each: one program longer would hold the processor from others.
const RUNS: u32 = 1_000_000;
const PINS: &str = "/sys/fs/bpf/fatpath-bench-police";
pub(super) const MARK: u16 = 0x200;
/// Ethernet, IPv4, TCP, timestamps and 1448 bytes.
pub(super) const FRAME_BYTES: usize = 1514;

/// Median of fifteen samples.
pub const PASS: Figure = Figure {
    name: "police.pass_mpps",
    what: "million unmarked packets a second and core that the police passes, at XDP",
    unit: "million/s",
    better: Better::Higher,
    goal: Some(1.0),
    summary: Summary::Median,
    measure: |run| measure(run, 0),
};

/// Median of fifteen samples.
pub const DROP: Figure = Figure {
    name: "police.drop_mpps",
    what: "million marked packets a second and core that the police drops, at XDP",
    unit: "million/s",
    better: Better::Higher,
    goal: Some(3.0),
    summary: Summary::Median,
    measure: |run| measure(run, MARK),
};

fn measure(run: &Run, bits: u16) -> Result<Vec<f64>> {
    let alone = Alone::wait(run)?;
    // Pins of a killed run; its interface went with its namespace.
    let _ = std::fs::remove_dir_all(PINS);
    let wire = Wire::lay(&alone)?;
    let orders = Orders {
        mode: PoliceMode::Drop,
        mark: PoliceMark::Bits(MARK),
        exceptions: Vec::new(),
        watches: false,
        hook: Some(Hook::Xdp),
    };
    let put = || Police::put(Path::new(PINS), "to-client", &orders);
    let police = wire.server.run(put)??;
    let samples = (0..SAMPLES).map(|_| sample(run, &police, bits)).collect();
    wire.server.run(|| police.take_away())??;
    samples
}

fn sample(run: &Run, police: &Police, bits: u16) -> Result<f64> {
    run.check()?;
    let done = police.rehearse(&frame(bits), RUNS)?;
    ensure!(done.is_dropped == (bits != 0), "the verdict is wrong");
    run.say(format!("  {} ns a packet", done.run_ns));
    Ok(1e3 / f64::from(done.run_ns.max(1)))
}

pub(super) fn frame(bits: u16) -> Vec<u8> {
    let mut frame = vec![0; FRAME_BYTES];
    frame[12] = 8;
    frame[14] = 0x45;
    frame[16..18].copy_from_slice(&(FRAME_BYTES as u16 - 14).to_be_bytes());
    frame[23] = 6;
    let flags = 8 << 12 | 0x10 | bits;
    frame[46..48].copy_from_slice(&flags.to_be_bytes());
    frame
}
