// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether as many packets get lost as were asked for, counted by the program that receives them:
//! iperf3 with UDP over 1 Gb/s, 100 ms round trip and 1 % independent loss, another one in each run.
//! And whether the link says the truth: the kernels at both ends, which know nothing of it, must miss
//! just as many packets as it says that it lost.

use crate::alone::{Alone, NETWORK};
use crate::emulated::forwarded;
use crate::figure::{Better, Figure, Summary};
use crate::run::Run;
use anyhow::{Context, Result, ensure};
use fatpath_emulator::unshaped::{iperf3, two_hosts};
use fatpath_emulator::{CellSpec, ChainSpec, DropCause, Namespace, Network, Topology};
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

/// What became of the datagrams.
struct Outcome {
    /// Up to the last one that arrived before the receiver stopped counting.
    sent: f64,
    /// That the receiving program missed, less those that its kernel dropped.
    lost: f64,
    /// By the receiver's kernel, for want of room in the socket.
    overflowed: f64,
    /// That the sender's kernel sent and the receiver's did not get, of all protocols.
    missing: u64,
}

fn measure(run: &Run) -> Result<Vec<f64>> {
    let _alone = Alone::wait(run)?;
    run.check()?;
    let seed = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos() as u64;
    let (outcome, stats) = forwarded(&path(seed), datagrams)?;
    let there = &stats.links[0].directions[0];
    let dropped = |cause| there.total.dropped(cause).packets;
    let queue_full = dropped(DropCause::QueueFull);
    ensure!(queue_full == 0, "the queue dropped {queue_full} packets");
    let (missing, lost) = (outcome.missing, dropped(DropCause::Loss));
    ensure!(
        missing == lost,
        "seed {seed}: the receiver misses {missing} packets, the link says that it lost {lost}"
    );
    let sigma = deviations(outcome.sent, outcome.lost);
    run.say(format!(
        "  seed {seed}: {} of {} lost ({:.4} %), {sigma:+.2} deviations; the socket overflowed by {}; \
         with iperf3's control connection {missing}, as the link says",
        outcome.lost,
        outcome.sent,
        100.0 * outcome.lost / outcome.sent,
        outcome.overflowed
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
    sleep(REST);
    let [client, server] =
        ["client", "server"].map(|name| network.host(name).expect("`two_hosts` names it"));
    let overflowed = counter(server, "Udp: ", "RcvbufErrors")? as f64;
    // No packet here is a super-packet, which would be one in these: iperf3's datagrams are single.
    let sent_ip = counter(client, "Ip: ", "OutRequests")?;
    let received_ip = counter(server, "Ip: ", "InReceives")?;
    Ok(Outcome {
        sent: number("sum_received", "packets")?,
        lost: number("sum_received", "lost_packets")? - overflowed,
        overflowed,
        missing: sent_ip - received_ip,
    })
}

/// A counter of IPv4 or of a protocol over it, as /proc/net/snmp has them.
fn counter(host: &Namespace, protocol: &str, name: &str) -> Result<u64> {
    let table = host.run(|| std::fs::read_to_string("/proc/thread-self/net/snmp"))??;
    let mut rows = table.lines().filter(|line| line.starts_with(protocol));
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
