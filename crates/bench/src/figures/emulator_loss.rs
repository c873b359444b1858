// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether as many packets get lost as were asked for, counted by the program that receives them:
//! iperf3 with UDP over 1 Gb/s, 100 ms round trip and 1 % independent loss.

use crate::alone::{Alone, NETWORK};
use crate::emulated::forwarded;
use crate::figure::{Better, Figure, Summary};
use crate::run::Run;
use anyhow::{Context, Result, ensure};
use fatpath_emulator::unshaped::{iperf3, two_hosts};
use fatpath_emulator::{CellSpec, ChainSpec, DropCause, Namespace, Network, Topology};

const RATE_BPS: u64 = 1_000_000_000;
const DELAY_NS: u64 = 50_000_000;
/// Rate × round trip: no burst of the sender fills it.
const QUEUE_BYTES: u64 = 12_500_000;
const LOSS: f64 = 0.01;
const SENT_BPS: u64 = 900_000_000;
/// Of that, what the machine must manage to send.
const LEAST_SENT: f64 = 0.95;
const SECONDS: &str = "30";

/// One run. 2.576 deviations hold 99 % of what is right.
pub const FIGURE: Figure = Figure {
    name: "emulator.loss_error_sigma",
    what: "UDP at 900 Mb/s over 1 % loss: what the receiver misses, in deviations from 1 %",
    unit: "standard deviations",
    better: Better::Lower,
    goal: Some(2.576),
    summary: Summary::Worst,
    measure,
};

/// What became of the datagrams.
struct Outcome {
    /// Up to the last one that arrived before the receiver stopped counting.
    sent: f64,
    /// That the receiving program missed, less those that its kernel dropped.
    lost: f64,
    /// By the receiver's kernel, for want of room in the socket.
    overflowed: f64,
}

fn measure(run: &Run) -> Result<Vec<f64>> {
    let _alone = Alone::wait(run)?;
    run.check()?;
    let (outcome, stats) = forwarded(&path(), datagrams)?;
    let total = &stats.links[0].directions[0].total;
    let queue_full = total.dropped(DropCause::QueueFull).packets;
    ensure!(queue_full == 0, "the queue dropped {queue_full} packets");
    let sigma = deviations(outcome.sent, outcome.lost);
    run.say(format!(
        "  {} of {} lost ({:.4} %), {sigma:+.2} deviations; the socket overflowed by {}",
        outcome.lost,
        outcome.sent,
        100.0 * outcome.lost / outcome.sent,
        outcome.overflowed
    ));
    Ok(vec![sigma])
}

fn path() -> Topology {
    let direction = ChainSpec::of([CellSpec::delay(DELAY_NS)]);
    let mut topology = two_hosts(NETWORK, &direction);
    topology.links[0].directions[0] = ChainSpec::of([
        CellSpec::rate(RATE_BPS, Some(QUEUE_BYTES)),
        CellSpec::loss(LOSS),
        CellSpec::delay(DELAY_NS),
    ]);
    topology
}

fn datagrams(network: &Network) -> Result<Outcome> {
    let arguments = ["-u", "-b", &SENT_BPS.to_string(), "-t", SECONDS];
    let result = iperf3(network, &arguments)?;
    let number = |of, name| {
        let value = result["end"][of][name].as_f64();
        value.with_context(|| format!("iperf3 names no {of}.{name}"))
    };
    let sent_bps = number("sum", "bits_per_second")?;
    ensure!(
        sent_bps >= LEAST_SENT * SENT_BPS as f64,
        "the machine was too slow: only {:.0} Mb/s were sent",
        sent_bps / 1e6
    );
    let server = network.host("server").expect("`two_hosts` names it");
    let overflowed = receive_buffer_errors(server)? as f64;
    Ok(Outcome {
        sent: number("sum_received", "packets")?,
        lost: number("sum_received", "lost_packets")? - overflowed,
        overflowed,
    })
}

/// `RcvbufErrors` of UDP over IPv4.
fn receive_buffer_errors(host: &Namespace) -> Result<u64> {
    let table = host.run(|| std::fs::read_to_string("/proc/thread-self/net/snmp"))??;
    let mut rows = table.lines().filter(|line| line.starts_with("Udp: "));
    let (names, values) = (
        rows.next().unwrap_or_default(),
        rows.next().unwrap_or_default(),
    );
    let mut named = names.split(' ').zip(values.split(' '));
    let value = named.find(|(name, _)| *name == "RcvbufErrors");
    let (_, value) = value.context("the kernel does not count RcvbufErrors")?;
    Ok(value.parse()?)
}

/// How far `lost` of `sent` is from what is expected, in standard deviations.
fn deviations(sent: f64, lost: f64) -> f64 {
    (lost - sent * LOSS) / (sent * LOSS * (1.0 - LOSS)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_deviation_of_a_million_is_about_a_hundred() {
        assert!((deviations(1e6, 10_099.5) - 1.0).abs() < 0.001);
        assert!((deviations(1e6, 9_900.5) + 1.0).abs() < 0.001);
    }
}
