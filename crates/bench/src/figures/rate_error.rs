// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far the rate that packet trains find is from the emulated bottleneck's: over paths of 10 Mb/s to 5 Gb/s, 1 to
//! 200 ms, queues of 0.1 to 2 times rate times round-trip time, with loss and with others' traffic. What is said of a
//! path beside its rate is printed for each.

use crate::alone::{Alone, NETWORK};
use crate::figure::{Better, Figure, Summary};
use crate::run::Run;
use anyhow::{Context, Result};
use fatpath_emulator::unshaped::two_hosts;
use fatpath_emulator::{CellSpec, ChainSpec, ForwardOptions, Network, Topology};
use fatpath_probe::{Patience, Receiver, Secret, send, set_udp_segment};
use fatpath_train::{Estimate, Limits, Response, Search};
use fatpath_units::show_rate;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Of the errors of all paths.
pub const MEDIAN: Figure = Figure {
    name: "measure.rate_error",
    what: "rate of a bottleneck by packet trains against the emulator's, median of the paths",
    unit: "share",
    better: Better::Lower,
    goal: Some(0.05),
    summary: Summary::Median,
    measure,
};

/// Of the same paths.
pub const WORST: Figure = Figure {
    name: "measure.rate_error_worst",
    what: "the same, worst path",
    goal: Some(0.2),
    summary: Summary::Worst,
    ..MEDIAN
};

/// Of the path's rate, what a measurement may send: its packets in a second.
const MOST_SECONDS: f64 = 1.0;

/// The emulated bottleneck's queue holds five packets at least.
const LEAST_QUEUE_BYTES: f64 = 7_500.0;

/// A packet of the others' traffic, most packets of it in a burst (64 KB), and the least time between bursts.
const CROSS_PACKET_BYTES: usize = 1_500;
const CROSS_BURST_PACKETS: usize = 43;
const CROSS_GAP: Duration = Duration::from_micros(100);

const SECRET: [u8; 32] = *b"the trains of measure.rate_error";
const SERVER: [u8; 4] = [10, 99, 0, 2];

#[derive(Clone, Copy, Debug)]
struct Path {
    rate_bps: u64,
    rtt_ms: u64,
    /// Of rate times round-trip time.
    queue_bdp: f64,
    loss: f64,
    /// Share of the rate that others take.
    cross: f64,
}

/// Every rate with every round-trip time and load; the queue and the loss change along with them.
fn grid() -> impl Iterator<Item = Path> {
    const RATES: [u64; 4] = [10_000_000, 100_000_000, 1_000_000_000, 5_000_000_000];
    const SHAPES: [(u64, f64); 4] = [(1, 2.0), (20, 0.1), (20, 1.0), (200, 0.5)];
    let loads = [(0.0, 0.0), (0.001, 0.5)];
    RATES.into_iter().flat_map(move |rate_bps| {
        SHAPES.into_iter().flat_map(move |(rtt_ms, queue_bdp)| {
            let path = move |(loss, cross)| Path {
                rate_bps,
                rtt_ms,
                queue_bdp,
                loss,
                cross,
            };
            loads.into_iter().map(path)
        })
    })
}

/// The errors, one a path. They are measured once for both figures.
fn measure(run: &Run) -> Result<Vec<f64>> {
    static MEASURED: Mutex<Option<Vec<f64>>> = Mutex::new(None);
    let mut measured = MEASURED.lock().expect("nothing panics while it is held");
    if let Some(errors) = &*measured {
        return Ok(errors.clone());
    }
    let _alone = Alone::wait(run)?;
    let errors: Result<Vec<f64>> = grid().map(|path| error(run, path)).collect();
    Ok(measured.insert(errors?).clone())
}

fn error(run: &Run, path: Path) -> Result<f64> {
    run.check()?;
    let network = Network::up(&path.topology())?;
    let (estimate, stats) =
        network.forward_while(ForwardOptions::default(), |_| path.estimate(&network))?;
    let estimate = estimate.with_context(|| format!("{path:?}"))?;
    let rate_bps = path.rate_bps as f64;
    let error = estimate.bottleneck.bps / rate_bps - 1.0;
    let available = estimate.available.bps / (rate_bps * (1.0 - path.cross)) - 1.0;
    let seconds = estimate.sent_bytes as f64 * 8.0 / rate_bps;
    let missed = stats.links[0].directions[0].missed_packets;
    run.say(format!(
        "  {}, {} ms, queue {} bdp, loss {}, cross {}: rate {}{:+.1} % (doubt {:.0} %), available {:+.1} %, sent {seconds:.2} s, \
         emulator late {:.0} µs (p99), missed {missed}",
        show_rate(path.rate_bps), path.rtt_ms, path.queue_bdp, path.loss, path.cross,
        if estimate.bottleneck.at_least { "at least " } else { "" },
        error * 100.0, estimate.bottleneck.doubt * 100.0, available * 100.0, stats.lateness.p99_us,
    ));
    // Too much sent is a measurement that failed, however right it is.
    Ok(if seconds < MOST_SECONDS {
        error.abs()
    } else {
        1.0
    })
}

impl Path {
    fn topology(&self) -> Topology {
        let delay = CellSpec::delay(self.rtt_ms * 500_000);
        let bdp_bytes = self.rate_bps as f64 / 8.0 * self.rtt_ms as f64 / 1e3;
        let queue_bytes = (bdp_bytes * self.queue_bdp).max(LEAST_QUEUE_BYTES) as u64;
        let bottleneck = CellSpec::rate(self.rate_bps, Some(queue_bytes));
        let mut topology = two_hosts(NETWORK, &ChainSpec::of([delay.clone()]));
        topology.links[0].directions[0] =
            ChainSpec::of([bottleneck, CellSpec::loss(self.loss), delay]);
        topology
    }

    /// By trains from the client to the server, beside the others' traffic.
    fn estimate(&self, network: &Network) -> Result<Estimate> {
        let (near, far) = sockets(network, 7000)?;
        let (others, _sink) = sockets(network, 7001)?;
        let mut receiver = Receiver::new(far, Secret::new(&SECRET))?;
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let others = scope.spawn(|| self.others(&others, &ended));
            let searched = self.search(&near, &mut receiver);
            ended.store(true, Ordering::Relaxed);
            others.join().expect("it does not panic")?;
            searched
        })
    }

    fn search(&self, near: &UdpSocket, receiver: &mut Receiver) -> Result<Estimate> {
        let mut search = Search::new(Limits::default());
        let patience = Patience {
            first: Duration::from_millis(1000 + 2 * self.rtt_ms),
            next: Duration::from_millis(60),
            all: Duration::from_secs(20),
        };
        // Before the first train the others' traffic is there.
        std::thread::sleep(Duration::from_millis(100 + self.rtt_ms));
        let secret = Secret::new(&SECRET);
        let mut number = 0;
        while let Some(train) = search.next() {
            let (sent, arrived) = std::thread::scope(|scope| {
                let arrived = scope.spawn(|| receiver.receive(number, &train, patience));
                (
                    send(near, &secret, number, &train),
                    arrived.join().expect("it does not panic"),
                )
            });
            let response = Response::of(&train, &sent?, &arrived?.arrivals);
            search.answer(&train, response.ok());
            number += 1;
        }
        search.estimate().context("no train gave a rate")
    }

    /// Sends at the share of the rate that is the others', until `ended`, in bursts as hosts with segmentation offload
    /// do. It sleeps between them: two senders that spin would leave the emulator no processor.
    fn others(&self, socket: &UdpSocket, ended: &AtomicBool) -> Result<()> {
        let payload_bytes = CROSS_PACKET_BYTES - 28;
        set_udp_segment(socket, payload_bytes as u16)?;
        let burst = vec![0; payload_bytes * CROSS_BURST_PACKETS];
        let bytes_per_second = self.rate_bps as f64 * self.cross / 8.0;
        let begun = Instant::now();
        let mut sent_packets = 0;
        while bytes_per_second > 0.0 && !ended.load(Ordering::Relaxed) {
            std::thread::sleep(CROSS_GAP);
            let due_bytes = begun.elapsed().as_secs_f64() * bytes_per_second;
            let due_packets = due_bytes as usize / CROSS_PACKET_BYTES;
            while sent_packets < due_packets {
                let packets = (due_packets - sent_packets).min(CROSS_BURST_PACKETS);
                socket.send(&burst[..payload_bytes * packets])?;
                sent_packets += packets;
            }
        }
        Ok(())
    }
}

/// One at the client, connected to one at the server.
fn sockets(network: &Network, port: u16) -> Result<(UdpSocket, UdpSocket)> {
    let bind = |host: &str, address: SocketAddr| -> Result<UdpSocket> {
        let namespace = network.host(host).context("`two_hosts` names it")?;
        Ok(namespace.run(|| UdpSocket::bind(address))??)
    };
    let far = bind("server", SocketAddr::from((SERVER, port)))?;
    let near = bind("client", SocketAddr::from(([0; 4], port)))?;
    near.connect(far.local_addr()?)?;
    Ok((near, far))
}
