// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether as many packets get lost as were asked for: iperf3 with UDP over 1 Gb/s, 100 ms round trip
//! and 1 % independent loss, others in each run. The kernels at both ends count, which know nothing of
//! the link; what they miss must be exactly what the link says that it lost. Not iperf3: it guesses from
//! gaps, does not see one at the end, and takes for loss what overflows its socket.

use crate::alone::{Alone, NETWORK};
use crate::emulated::forwarded;
use crate::figure::{Better, Figure, Summary};
use crate::run::Run;
use anyhow::{Context, Result, ensure};
use fatpath_emulator::unshaped::{iperf3, two_hosts};
use fatpath_emulator::{CellSpec, ChainSpec, DropCause, Network, Topology};
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const RATE_BPS: u64 = 1_000_000_000;
const DELAY_NS: u64 = 50_000_000;
/// Rate × round trip: no burst of the sender fills it.
const QUEUE_BYTES: u64 = 12_500_000;
const LOSS: f64 = 0.01;
const SENT_BPS: u64 = 900_000_000;
/// Of that, what the machine must manage to send.
const LEAST_SENT: f64 = 0.95;
const SECONDS: &str = "30";
/// Of what is still on the way when iperf3 has ended; more than the delay and the queue.
const REST: Duration = Duration::from_millis(500);

/// One run. 2.576 deviations hold 99 % of what is right, so one right run of a hundred fails.
pub const FIGURE: Figure = Figure {
    name: "emulator.loss_error_sigma",
    what: "UDP at 900 Mb/s over 1 % loss: what the receiver misses, in deviations from 1 %",
    unit: "standard deviations",
    better: Better::Lower,
    goal: Some(2.576),
    summary: Summary::Worst,
    measure,
};

/// Packets of all protocols from the client to the server, by their kernels.
struct Outcome {
    sent: u64,
    received: u64,
}

fn measure(run: &Run) -> Result<Vec<f64>> {
    let _alone = Alone::wait(run)?;
    run.check()?;
    let seed = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos() as u64;
    let (Outcome { sent, received }, stats) = forwarded(&path(seed), datagrams)?;
    let total = &stats.links[0].directions[0].total;
    let dropped = |cause| total.dropped(cause).packets;
    let queue_full = dropped(DropCause::QueueFull);
    ensure!(queue_full == 0, "the queue dropped {queue_full} packets");
    let lost = dropped(DropCause::Loss);
    ensure!(
        received + lost == sent,
        "seed {seed}: {received} of {sent} packets came, and the link says that it lost {lost}"
    );
    let sigma = deviations(sent as f64, lost as f64);
    run.say(format!(
        "  seed {seed}: {lost} of {sent} lost ({:.4} %), {sigma:+.2} deviations",
        100.0 * lost as f64 / sent as f64
    ));
    Ok(vec![sigma])
}

/// IPv4 only, so that all packets are in the counts of one protocol.
fn path(seed: u64) -> Topology {
    let direction = ChainSpec::of([CellSpec::delay(DELAY_NS)]);
    let mut topology = two_hosts(NETWORK, &direction);
    let link = &mut topology.links[0];
    link.ends.iter_mut().for_each(|end| end.ipv6 = None);
    let cells = vec![
        CellSpec::rate(RATE_BPS, Some(QUEUE_BYTES)),
        CellSpec::loss(LOSS),
        CellSpec::delay(DELAY_NS),
    ];
    link.directions[0] = ChainSpec { cells, seed };
    topology
}

fn datagrams(network: &Network) -> Result<Outcome> {
    let arguments = ["-u", "-b", &SENT_BPS.to_string(), "-t", SECONDS];
    let result = iperf3(network, &arguments)?;
    let sent_bps = result["end"]["sum"]["bits_per_second"].as_f64();
    let sent_bps = sent_bps.context("iperf3 does not say what it sent")?;
    ensure!(
        sent_bps >= LEAST_SENT * SENT_BPS as f64,
        "the machine was too slow: only {:.0} Mb/s were sent",
        sent_bps / 1e6
    );
    sleep(REST);
    // Not one is a super-packet, which would be one in these.
    Ok(Outcome {
        sent: packets(network, "client", "OutRequests")?,
        received: packets(network, "server", "InReceives")?,
    })
}

/// What a host's kernel counts of IPv4, by the name in /proc/net/snmp.
fn packets(network: &Network, host: &str, name: &str) -> Result<u64> {
    let host = network.host(host).expect("`two_hosts` names it");
    let table = host.run(|| std::fs::read_to_string("/proc/thread-self/net/snmp"))??;
    let mut rows = table.lines().filter(|line| line.starts_with("Ip: "));
    let (names, values) = (
        rows.next().unwrap_or_default(),
        rows.next().unwrap_or_default(),
    );
    let mut named = names.split(' ').zip(values.split(' '));
    let value = named.find(|(found, _)| *found == name);
    let (_, value) = value.with_context(|| format!("the kernel does not count {name}"))?;
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
