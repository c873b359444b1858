// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end that data go to, and are counted at.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use fatpath_driver::{RecvEnd, Sink, Socket, StepError};
use fatpath_scenario::{Requests, transport};
use fatpath_transport::frame::Write;
use fatpath_transport::{Secret, Spec};

use crate::control::{Asked, Control, Message};

/// As the mover's.
const PORTS: std::ops::RangeInclusive<u16> = 50_000..=51_000;
/// Threads and sockets of one flow.
pub(crate) const MOST_STREAMS: u32 = 128;
/// Intervals of one connection.
const MOST_INTERVALS: u64 = 10_000;
/// How soon a thread sees that the other end has ended.
const WAIT: Duration = Duration::from_millis(5);

/// What arrives is gone.
struct Nothing;

impl Sink for Nothing {
    fn write(&mut self, _: usize, _: &[Write<'_>]) {}
}

/// What both ends make of what the sender wants, and what that was.
///
/// # Errors
/// What is out of range.
pub(crate) fn spec(asked: &Asked) -> Result<(Spec, Requests)> {
    ensure!(
        asked.version == env!("CARGO_PKG_VERSION"),
        "the other end is fatpath {}, and this one {}",
        asked.version,
        env!("CARGO_PKG_VERSION")
    );
    ensure!(
        (1..=MOST_STREAMS).contains(&asked.streams),
        "--streams: give 1 to {MOST_STREAMS}"
    );
    let lasts_ns = asked.lasts_ns.unwrap_or(0);
    ensure!(
        asked.interval_ns > 0 && lasts_ns / asked.interval_ns <= MOST_INTERVALS,
        "--interval: give at least a {MOST_INTERVALS}th of --lasts"
    );
    let requests = Requests::of_texts(&asked.tcp).map_err(anyhow::Error::msg)?;
    let spec = transport::spec(&requests, asked.datagram_bytes).map_err(anyhow::Error::msg)?;
    Ok((spec, requests))
}

/// Binds a socket of the same family as `like`, and says where.
pub(crate) fn bind(like: IpAddr, first: u16) -> Result<(Socket, SocketAddr)> {
    let address: IpAddr = match like {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let (socket, bound) = Socket::bind(address, PORTS, first)?;
    Ok((socket, bound.address))
}

/// 32 random bytes.
pub(crate) fn random() -> Result<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).context("the kernel gives no random bytes")?;
    Ok(bytes)
}

/// Takes one flow, of whoever is at the other end of `control`.
///
/// # Errors
/// The other end asks for what is out of range, or goes; or the sockets'.
pub(crate) fn one(mut control: Control) -> Result<()> {
    let taken = take(&mut control);
    if let Err(error) = &taken {
        // It may be gone; then this is what remains to be said here.
        let _ = control.say(&Message::Failed(format!("{error:#}")));
    }
    taken
}

fn take(control: &mut Control) -> Result<()> {
    let Message::Asked(asked) = control.answer()? else {
        bail!("the other end does not begin as `fatpath flow send` does");
    };
    let (spec, _) = spec(&asked)?;
    let random = random()?;
    let (ends, ports) = ends(&asked, &spec, &random)?;
    control.say(&Message::Ready { random, ports })?;
    match control.answer()? {
        Message::Go => {}
        _ => bail!("the other end does not go on as `fatpath flow send` does"),
    }
    let streams = receive(ends, &asked, &spec, control)?;
    control.say(&Message::Arrived { streams })
}

fn ends(asked: &Asked, spec: &Spec, random: &[u8; 32]) -> Result<(Vec<RecvEnd>, Vec<u16>)> {
    let mut secret = Secret::agree(&asked.random, random);
    let rtt = Duration::from_nanos(asked.rtt_ns);
    let first = u16::from_be_bytes([random[0], random[1]]);
    let one = |_| {
        let flow = secret.next_flow().context("a new secret has flows")?;
        let (socket, here) = bind(asked.address, first)?;
        let end = RecvEnd::new(socket, spec, flow, None, rtt)?;
        Ok((end, here.port()))
    };
    let both: Result<Vec<_>> = (0..asked.streams).map(one).collect();
    Ok(both?.into_iter().unzip())
}

/// Until the sender has ended, or for as long as it sends.
fn receive(
    ends: Vec<RecvEnd>,
    asked: &Asked,
    spec: &Spec,
    control: &mut Control,
) -> Result<Vec<Vec<u64>>> {
    let has_ended = AtomicBool::new(false);
    let clock = Clock {
        begun: Instant::now(),
        lasts: asked.lasts_ns.map(Duration::from_nanos),
        interval: Duration::from_nanos(asked.interval_ns),
    };
    thread::scope(|scope| {
        let threads: Vec<_> = ends
            .into_iter()
            .map(|end| scope.spawn(|| count(end, spec, &clock, &has_ended)))
            .collect();
        let done = control.wait();
        has_ended.store(true, Ordering::Relaxed);
        let counts = threads.into_iter().map(|thread| {
            let joined = thread.join().ok().context("a receiving thread")?;
            Ok(joined?)
        });
        let counts: Result<Vec<_>> = counts.collect();
        match done? {
            Message::Done => counts,
            _ => bail!("the other end does not end as `fatpath flow send` does"),
        }
    })
}

struct Clock {
    begun: Instant,
    lasts: Option<Duration>,
    interval: Duration,
}

/// Bytes that had arrived in order at the end of each interval.
fn count(
    mut end: RecvEnd,
    spec: &Spec,
    clock: &Clock,
    has_ended: &AtomicBool,
) -> Result<Vec<u64>, StepError> {
    let mut counts = vec![];
    let lasts = clock.lasts.unwrap_or(Duration::MAX);
    loop {
        let now = clock.begun.elapsed();
        while now.min(lasts) >= clock.interval * (counts.len() as u32 + 1)
            && counts.len() < MOST_INTERVALS as usize
        {
            counts.push(delivered_bytes(&end, spec));
        }
        if now >= lasts || has_ended.load(Ordering::Relaxed) {
            counts.push(delivered_bytes(&end, spec));
            return Ok(counts);
        }
        end.step(&mut Nothing, WAIT.min(lasts - now))?;
    }
}

/// TCP counts what is in its segments; a run's header is in each.
fn delivered_bytes(end: &RecvEnd, spec: &Spec) -> u64 {
    let data = u64::from(transport::mss_bytes(spec));
    let segment = data + u64::from(Spec::RUN_HEADER_BYTES);
    let bytes = end.figures().delivered_bytes;
    let rest = (bytes % segment).saturating_sub(u64::from(Spec::RUN_HEADER_BYTES));
    bytes / segment * data + rest
}
