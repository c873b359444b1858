// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the law AIMD(a, b) does on the kernel what its formula says: the mean window
//! of a flow under random loss against sqrt(a (2 - b) / (2 b p)) segments.

use crate::alone::{Alone, NETWORK};
use crate::emulated::forwarded;
use crate::figure::{Better, Figure, Summary};
use crate::loaded::Loaded;
use crate::run::Run;
use anyhow::{Context, Result, ensure};
use fatpath_api::TunedFlow;
use fatpath_emulator::unshaped::two_hosts;
use fatpath_emulator::{CellSpec, ChainSpec, Network, Stats, Topology};
use fatpath_kernel::Kernel;
use rustix::net::sockopt::set_socket_linger;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// (a, b): Reno, and two of the WAD's kind (Dunigan et al. 2002).
const PARAMETERS: [(f64, f64); 3] = [(1.0, 0.5), (4.0, 0.125), (6.0, 0.3)];
const LOSS: f64 = 0.001;
/// Short, so that half a minute holds hundreds of round trips between losses and thousands in all.
const DELAY_NS: u64 = 5_000_000;
const START_UP: Duration = Duration::from_secs(3);
const WATCHED: Duration = Duration::from_secs(25);
/// No fraction of the round-trip time.
const INTERVAL: Duration = Duration::from_millis(17);
/// Of the busy time that may be spent waiting for anything but the congestion window.
const MAX_OTHERWISE_LIMITED: f64 = 0.02;

/// Worst of the three parameter pairs.
pub const FIGURE: Figure = Figure {
    name: "law.aimd_window_error",
    what: "fp_aimd's mean window under 0.1 % loss, relative error to its formula",
    unit: "relative error",
    better: Better::Lower,
    goal: Some(0.25),
    summary: Summary::Worst,
    measure,
};

fn measure(run: &Run) -> Result<Vec<f64>> {
    let alone = Alone::wait(run)?;
    let error = |(a, b)| {
        let seen = watch(run, &alone, a, b)?;
        let formula_pkts = formula_pkts(a, b, LOSS);
        let error = seen.cwnd_pkts / formula_pkts - 1.0;
        run.say(format!(
            "  ({a}, {b}): {:.1} segments, formula {formula_pkts:.1}, error {error:+.3}; {seen}",
            seen.cwnd_pkts
        ));
        Ok(error)
    };
    PARAMETERS.into_iter().map(error).collect()
}

/// Long-run mean window, segments, under a loss rate `p`. Source: bpf/cc/aimd.h.
fn formula_pkts(a: f64, b: f64, p: f64) -> f64 {
    (a * (2.0 - b) / (2.0 * b * p)).sqrt()
}

/// What was seen of one flow.
struct Seen {
    /// Mean over the watched time.
    cwnd_pkts: f64,
    samples: usize,
    /// Of the link, over the whole flow.
    lost: u64,
    loss: f64,
    srtt_us: u32,
}

impl std::fmt::Display for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} samples, {} segments lost ({:.4} %), round trip {:.1} ms",
            self.samples,
            self.lost,
            100.0 * self.loss,
            f64::from(self.srtt_us) / 1e3
        )
    }
}

/// One flow under AIMD(a, b), from its beginning to the end of the watched time.
fn watch(run: &Run, alone: &Alone, a: f64, b: f64) -> Result<Seen> {
    let ((windows, last), stats) = forwarded(&path(), |network| {
        let loaded = Loaded::start(run, alone, &policy(a, b), None)?;
        watch_transfer(run, network, &loaded.kernel()?)
    })?;
    seen(&windows, &last, &stats)
}

/// Loss on the way of the data only: a lost ACK is not a congestion event.
fn path() -> Topology {
    let direction = ChainSpec::of([CellSpec::delay(DELAY_NS)]);
    let mut topology = two_hosts(NETWORK, &direction);
    topology.links[0].directions[0]
        .cells
        .insert(0, CellSpec::loss(LOSS));
    topology
}

/// Buffers that hold many times the window, so that nothing else limits the sender.
fn policy(a: f64, b: f64) -> String {
    format!(
        "[host.sysctl]\n'net.core.rmem_max' = 'auto'\n'net.core.wmem_max' = 'auto'\n\
         [[rule]]\nname = 'path'\ndestination = ['10.99.0.0/24']\n\
         send_buffer = '4MiB'\nreceive_buffer = '4MiB'\n\
         congestion_control = {{ law = 'fp_aimd', a = {a}, b = {b} }}\n"
    )
}

/// The windows of one bulk transfer, and the flow as it was last.
fn watch_transfer(run: &Run, network: &Network, kernel: &Kernel) -> Result<(Vec<f64>, TunedFlow)> {
    let (sender, receiver) = connection(network)?;
    thread::scope(|scope| {
        scope.spawn(|| while (&sender).write(&[0; 65536]).is_ok() {});
        scope.spawn(|| while matches!((&receiver).read(&mut [0; 65536]), Ok(1..)) {});
        let watched = windows(run, kernel, sender.local_addr()?);
        for end in [&sender, &receiver] {
            // Of no interest any more: a reset, so that no socket outlives its namespace.
            let _ = set_socket_linger(end, Some(Duration::ZERO));
            let _ = end.shutdown(Shutdown::Both);
        }
        watched
    })
}

fn connection(network: &Network) -> Result<(TcpStream, TcpStream)> {
    let host = |name| network.host(name).expect("`two_hosts` names it");
    let listener = host("server").run(|| TcpListener::bind("10.99.0.2:0"))??;
    let address = listener.local_addr()?;
    let sender = host("client").run(|| TcpStream::connect(address))??;
    Ok((sender, listener.accept()?.0))
}

fn windows(run: &Run, kernel: &Kernel, local: SocketAddr) -> Result<(Vec<f64>, TunedFlow)> {
    run.pause(START_UP)?;
    let start = Instant::now();
    let mut windows = Vec::new();
    loop {
        run.pause(INTERVAL)?;
        let mut flows = kernel.flows()?.into_iter();
        let flow = flows.find(|flow| flow.flow.local == local);
        let flow = flow.context("the flow is not among those that are tuned")?;
        windows.push(f64::from(flow.measures.cwnd_pkts));
        if start.elapsed() > WATCHED {
            return Ok((windows, flow));
        }
    }
}

/// Refuses a run that shows something else than the law.
fn seen(windows: &[f64], last: &TunedFlow, stats: &Stats) -> Result<Seen> {
    let total = &stats.links[0].directions[0].total;
    let limits = &last.limited;
    ensure!(
        limits.busy_s - limits.network_s <= MAX_OTHERWISE_LIMITED * limits.busy_s,
        "the sender was held back by more than its congestion window: {limits:?}"
    );
    ensure!(last.measures.law == "fp_aimd", "{}", last.measures.law);
    let lost = total.dropped_total().packets;
    Ok(Seen {
        cwnd_pkts: windows.iter().sum::<f64>() / windows.len() as f64,
        samples: windows.len(),
        lost,
        loss: lost as f64 / total.arrived.packets as f64,
        srtt_us: last.measures.srtt_us,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formula_for_reno_is_mathis_s() {
        // sqrt(3/2) / sqrt(p): Mathis et al. 1997, without delayed ACKs.
        assert!((formula_pkts(1.0, 0.5, 0.001) - (1.5f64 / 0.001).sqrt()).abs() < 1e-9);
        assert!((formula_pkts(4.0, 0.125, 0.001) - 173.2).abs() < 0.1);
        assert!((formula_pkts(6.0, 0.3, 0.001) - 130.4).abs() < 0.1);
    }
}
