// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a router pays for its police: unmarked packets that it forwards from one veth pair to another, with
//! the police at tc and at XDP, over those that it forwards without.
//!
//! Three wires lead into the router, one for each. A thread on one processor sends on them in turn; on
//! veth the router's work falls into the sending call, so its time is the sender's. veth has to copy a
//! sender's packet into a page before XDP may see it, which a network card does not: so the figure is tc's,
//! and what XDP reaches is said beside it.

use super::police::{FRAME_BYTES, MARK, frame};
use crate::alone::Alone;
use crate::figure::{Better, Figure, Summary};
use crate::one_processor::OneProcessor;
use crate::run::Run;
use crate::transfer::Waited;
use crate::wire::{Wire, ip};
use anyhow::{Context, Result, ensure};
use fatpath_emulator::Namespace;
use fatpath_kernel::{Hook, Orders, Police, PoliceMark, PoliceMode};
use rustix::net::{
    AddressFamily, MMsgHdr, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType, connect,
    ipproto, sendmmsg, socket_with,
};
use std::io::IoSlice;
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

/// Samples, each the median of as many turns.
const SAMPLES: u32 = 20;
const TURNS_A_SAMPLE: u32 = 10;
/// Long against the first touch of caches, short against the machine's moods.
const SLICE: Duration = Duration::from_millis(40);
const PINS: &str = "/sys/fs/bpf/fatpath-bench-police";
const BATCH: usize = 32;
const ETHERNET_BYTES: usize = 14;

/// How packets of a wire are policed.
const WIRES: [Option<Hook>; 3] = [None, Some(Hook::Tc), Some(Hook::Xdp)];

/// Median of twenty samples.
pub const FIGURE: Figure = Figure {
    name: "police.live_ratio",
    what: "unmarked packets a second and core that a router forwards with the police at tc, over without",
    unit: "ratio",
    better: Better::Higher,
    goal: None,
    summary: Summary::Median,
    measure,
};

fn measure(run: &Run) -> Result<Vec<f64>> {
    let alone = Alone::wait(run)?;
    // Pins of a killed run; its interfaces went with their namespaces.
    let _ = std::fs::remove_dir_all(PINS);
    let wire = Wire::lay(&alone)?;
    lay_router(&wire)?;
    let police = wire.server.run(put_polices)??;
    let samples = samples(run, &wire, &police);
    for police in police {
        police.take_away()?;
    }
    samples
}

fn samples(run: &Run, wire: &Wire, police: &[Police]) -> Result<Vec<f64>> {
    let sources = wire.client.run(|| [0, 1, 2].map(Source::open))?;
    let sources: Vec<Source> = sources.into_iter().collect::<Result<_>>()?;
    let _one = OneProcessor::keep()?;
    let before = forwarded(&wire.server)?;
    let samples: Result<Vec<[f64; 3]>> = (1..=SAMPLES).map(|n| sample(run, &sources, n)).collect();
    let sent: u64 = sources.iter().map(|source| source.sent.get()).sum();
    let got = forwarded(&wire.server)? - before;
    ensure!(got * 100 >= sent * 99, "{got} of {sent} were forwarded");
    for police in police {
        let passed = police.status()?.tallies.unmarked.pkts;
        ensure!(passed * 4 >= sent, "a police saw {passed} of {sent}");
    }
    Ok(samples?.iter().map(|[plain, tc, _]| tc / plain).collect())
}

/// Packets a second and core without, at tc, at XDP.
fn sample(run: &Run, sources: &[Source], n: u32) -> Result<[f64; 3]> {
    run.check()?;
    let mut turns = [const { Vec::new() }; 3];
    for turn in 0..TURNS_A_SAMPLE as usize {
        for next in 0..sources.len() {
            let it = (turn + next) % sources.len();
            turns[it].push(sources[it].packets_per_s(SLICE)?);
        }
    }
    let medians = turns.map(|rates| Summary::Median.of(&rates).unwrap_or_default());
    let [plain, tc, xdp] = medians.map(|rate| rate / 1e6);
    run.say(format!(
        "  sample {n} of {SAMPLES}: {plain:.3} million/s without, {tc:.3} at tc, {xdp:.3} at XDP"
    ));
    Ok(medians)
}

/// The server forwards from `r0`, `r1`, `r2` to a neighbour that nobody is.
fn lay_router(wire: &Wire) -> Result<()> {
    let (client, router) = (&wire.client, &wire.server);
    router.set_sysctl("net.ipv4.ip_forward", "1")?;
    ip(router, "link add out type veth peer name end")?;
    ip(router, "addr add 10.80.0.1/16 dev out")?;
    ip(router, "link set end up")?;
    ip(router, "link set out up")?;
    for n in 0..WIRES.len() {
        let peer = router.name();
        ip(
            client,
            &format!("link add s{n} type veth peer name r{n} netns {peer}"),
        )?;
        ip(client, &format!("addr add 10.79.1{n}.1/24 dev s{n}"))?;
        ip(router, &format!("addr add 10.79.1{n}.2/24 dev r{n}"))?;
        ip(client, &format!("link set s{n} up"))?;
        ip(router, &format!("link set r{n} up"))?;
        ip(
            client,
            &format!("route add 10.80.{n}.0/24 via 10.79.1{n}.2"),
        )?;
        let neighbour =
            format!("neigh add 10.80.{n}.2 lladdr 02:00:00:00:00:99 dev out nud permanent");
        ip(router, &neighbour)?;
    }
    Ok(())
}

fn put_polices() -> Result<Vec<Police>> {
    let wires = WIRES.iter().enumerate();
    let policed = wires.filter(|(_, hook)| hook.is_some());
    policed
        .map(|(n, hook)| {
            let orders = Orders {
                mode: PoliceMode::Drop,
                mark: PoliceMark::Bits(MARK),
                exceptions: Vec::new(),
                watches: false,
                hook: *hook,
            };
            Ok(Police::put(Path::new(PINS), &format!("r{n}"), &orders)?)
        })
        .collect()
}

/// Packets that left the router.
fn forwarded(router: &Namespace) -> Result<u64> {
    let output = router
        .command("ip")
        .args(["-j", "-s", "link", "show", "out"])
        .output()?;
    let links: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    links[0]["stats64"]["tx"]["packets"]
        .as_u64()
        .context("no count of packets sent")
}

/// Sends TCP segments that belong to no connection.
struct Source {
    socket: OwnedFd,
    packet: Vec<u8>,
    sent: std::cell::Cell<u64>,
}

impl Source {
    fn open(wire: u8) -> Result<Source> {
        let to = [10, 80, wire, 2];
        let flags = SocketFlags::CLOEXEC;
        // The packet brings its IP header; the kernel fills in source and checksum.
        let socket = socket_with(
            AddressFamily::INET,
            SocketType::RAW,
            flags,
            Some(ipproto::RAW),
        )?;
        connect(&socket, &SocketAddrV4::new(to.into(), 0))?;
        let mut packet = frame(0).split_off(ETHERNET_BYTES);
        packet[8] = 64;
        packet[16..20].copy_from_slice(&to);
        ensure!(
            packet.len() == FRAME_BYTES - ETHERNET_BYTES,
            "the frame is whole"
        );
        Ok(Source {
            socket,
            packet,
            sent: std::cell::Cell::new(0),
        })
    }

    fn packets_per_s(&self, slice: Duration) -> Result<f64> {
        let (start, waited) = (Instant::now(), Waited::now()?);
        let mut pkts = 0;
        while start.elapsed() < slice {
            pkts += self.send_batch()?;
        }
        self.sent.set(self.sent.get() + pkts);
        let took = start.elapsed().saturating_sub(waited.since()?);
        Ok(pkts as f64 / took.as_secs_f64())
    }

    fn send_batch(&self) -> Result<u64> {
        let packet = [IoSlice::new(&self.packet)];
        let mut controls = [(); BATCH].map(|()| SendAncillaryBuffer::default());
        let mut messages = controls
            .each_mut()
            .map(|control| MMsgHdr::new(&packet, control));
        Ok(sendmmsg(&self.socket, &mut messages, SendFlags::empty())? as u64)
    }
}
