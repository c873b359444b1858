// SPDX-License-Identifier: MIT OR Apache-2.0
//! The transport from memory to memory over loopback: a thread for each end, encrypted, one flow, datagrams that fit
//! Ethernet. Nothing is read or written, but each byte is sealed, sent, and opened.

pub mod over_quinn;
pub mod segmentation_off;
pub mod sim_error;

use crate::alone::Alone;
use crate::cpu_time;
use crate::figure::{Better, Figure, Summary};
use crate::run::Run;
use anyhow::{Context, Result, ensure};
use fatpath_cc::Law;
use fatpath_driver::{Bound, RecvEnd, SendEnd, Sink, Socket, Source};
use fatpath_tcp::TcpSpec;
use fatpath_transport::frame::Write;
use fatpath_transport::{CloseCode, Extent, FlowSecret, Run as Stretch, Secret, Spec};
use std::net::{IpAddr, Ipv4Addr};
use std::thread;
use std::time::{Duration, Instant};

const RUNS: u32 = 5;
const BYTES: u64 = 5_000_000_000;
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const RTT: Duration = Duration::from_micros(100);
const WAIT: Duration = Duration::from_millis(10);
/// More than any run moves.
const ENDLESS_BYTES: u64 = 1 << 40;

pub const GBPS: Figure = Figure {
    name: "transport.gbps",
    what: "memory to memory over loopback, encrypted, one flow, datagrams of 1452 bytes",
    unit: "Gb/s",
    better: Better::Higher,
    goal: Some(10.0),
    summary: Summary::Median,
    measure: |run| measure(run, |taken, _| BYTES as f64 * 8e-9 / taken.as_secs_f64()),
};

pub const CPU: Figure = Figure {
    name: "transport.cpu_s_per_gb",
    what: "processor time of both ends for it",
    unit: "s/GB",
    better: Better::Lower,
    goal: Some(1.4),
    summary: Summary::Median,
    measure: |run| measure(run, |_, cpu| cpu.as_secs_f64() / (BYTES as f64 / 1e9)),
};

struct Zeros;

impl Source for Zeros {
    fn read(&mut self, _: &Stretch, into: &mut [u8]) {
        into.fill(0);
    }
}

#[derive(Default)]
struct Counted(u64);

impl Sink for Counted {
    fn write(&mut self, _: usize, writes: &[Write<'_>]) {
        self.0 += writes
            .iter()
            .map(|write| write.bytes.len() as u64)
            .sum::<u64>();
    }
}

fn measure(run: &Run, of: fn(Duration, Duration) -> f64) -> Result<Vec<f64>> {
    let _alone = Alone::wait(run)?;
    let one = |n: u32| {
        run.check()?;
        let (begun, cpu) = (Instant::now(), cpu_time::own());
        moved(n as u8, BYTES)?;
        let (taken, cpu) = (begun.elapsed(), cpu_time::own() - cpu);
        run.say(format!(
            "  run {n} of {RUNS}: {:.2} Gb/s, {:.2} s of processor",
            BYTES as f64 * 8e-9 / taken.as_secs_f64(),
            cpu.as_secs_f64()
        ));
        Ok(of(taken, cpu))
    };
    (1..=RUNS).map(one).collect()
}

fn moved(number: u8, bytes: u64) -> Result<()> {
    let here = || Ends::socket(HERE);
    Ends::new(&spec()?, number, [here()?, here()?], RTT)?.move_all(bytes)
}

/// As the mover's.
fn spec() -> Result<Spec> {
    let of_tcp = Spec::default().tcp;
    Ok(Spec {
        tcp: TcpSpec {
            law: Law::named("fp_bbr").context("the law of movers")?,
            pacing: true,
            knows_sending: true,
            ..of_tcp
        },
        ..Spec::default()
    })
}

/// The ends of one flow over UDP sockets.
struct Ends {
    sender: SendEnd,
    receiver: RecvEnd,
}

impl Ends {
    /// The thread that calls this is in the namespace that is to have the socket.
    fn socket(address: IpAddr) -> Result<(Socket, Bound)> {
        let first = std::process::id() as u16;
        Ok(Socket::bind(address, 50_000..=51_000, first)?)
    }

    /// Of the sender's socket and the receiver's. Each `number` has a secret of its own.
    fn new(spec: &Spec, number: u8, sockets: [(Socket, Bound); 2], rtt: Duration) -> Result<Ends> {
        let [(here, _), (there, at)] = sockets;
        Ok(Ends {
            sender: SendEnd::new(here, spec, flow(number)?, Some(at.address), rtt)?,
            receiver: RecvEnd::new(there, spec, flow(number)?, None, rtt)?,
        })
    }

    /// Moves so much, a thread for each end, until all has arrived and the receiver knows it.
    fn move_all(self, bytes: u64) -> Result<()> {
        let (mut sender, mut receiver) = (self.sender, self.receiver);
        let receiving = thread::spawn(move || {
            let mut sink = Counted::default();
            receiver.expect_data(true);
            while receiver.closed_by_peer().is_none() {
                receiver.step(&mut sink, WAIT)?;
            }
            anyhow::Ok(sink.0)
        });
        sender.send(extent(bytes));
        while !sender.is_done() {
            sender.step(&mut Zeros, WAIT)?;
        }
        while !receiving.is_finished() {
            sender.close(CloseCode(0));
            sender.step(&mut Zeros, WAIT)?;
        }
        let arrived = receiving.join().ok().context("the receiver's thread")??;
        ensure!(arrived == bytes, "{arrived} bytes of {bytes} arrived");
        Ok(())
    }

    /// Moves what it can for so long. Bytes of segments that arrived in order.
    fn move_for(self, lasts: Duration) -> Result<u64> {
        let (mut sender, mut receiver) = (self.sender, self.receiver);
        let end = Instant::now() + lasts;
        let receiving = thread::spawn(move || {
            receiver.expect_data(true);
            while Instant::now() < end {
                receiver.step(&mut Counted::default(), WAIT)?;
            }
            anyhow::Ok(receiver.figures().delivered_bytes)
        });
        sender.send(extent(ENDLESS_BYTES));
        while Instant::now() < end {
            sender.step(&mut Zeros, WAIT)?;
        }
        receiving.join().ok().context("the receiver's thread")?
    }
}

fn extent(bytes: u64) -> Extent {
    Extent {
        object: 0,
        offset: 0,
        bytes,
    }
}

fn flow(number: u8) -> Result<FlowSecret> {
    let flow = Secret::agree(&[number; 32], &[1; 32]).next_flow();
    flow.context("a new secret has flows")
}
