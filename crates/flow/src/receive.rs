// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end that data go to, and are counted at.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use fatpath_driver::{PlainRecvEnd, RecvEnd, Socket, SocketRequests};
use fatpath_link::headers::TIMESTAMP_BYTES;
use fatpath_scenario::{EndSettings, Requests, transport};
use fatpath_transport::{Secret, Spec};

use crate::control::{Asked, Control, Message};
use crate::ends::{Datagrams, Receiving};

/// As the mover's.
const PORTS: std::ops::RangeInclusive<u16> = 50_000..=51_000;
/// Threads and sockets of one flow.
pub(crate) const MOST_STREAMS: u32 = 128;
/// Intervals of one connection.
const MOST_INTERVALS: u64 = 10_000;
/// How soon a thread sees that the other end has ended.
const WAIT: Duration = Duration::from_millis(5);
/// The same where nothing else is to do in time.
const PLAIN_WAIT: Duration = Duration::from_millis(50);

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
    if asked.kernel_port.is_some() {
        socket_requests(&requests)?;
        return Ok((Spec::default(), requests));
    }
    let spec = transport::spec(&requests, asked.datagram_bytes).map_err(anyhow::Error::msg)?;
    Ok((spec, requests))
}

/// What a socket of the kernel's TCP can be asked for.
///
/// # Errors
/// There is more.
pub(crate) fn socket_requests(requests: &Requests) -> Result<SocketRequests> {
    let parameters = requests.law.iter().flat_map(|law| &law.parameters);
    ensure!(
        requests.ends == EndSettings::default() && parameters.count() == 0,
        "--tcp: the kernel can be asked for law, mss, window and pacing_rate alone"
    );
    Ok(SocketRequests {
        law: requests.law.as_ref().map(|law| law.name.clone()),
        mss_bytes: requests.mss_bytes.map(|bytes| bytes + TIMESTAMP_BYTES),
        window_bytes: requests.window_bytes,
        pacing_bytes_per_s: requests.pacing_rate_bps.map(|bps| bps / 8),
    })
}

/// Binds a socket of the same family as `like`, and says where.
pub(crate) fn bind(like: IpAddr, first: u16) -> Result<(Socket, SocketAddr)> {
    let (socket, bound) = Socket::bind(any_like(like), PORTS, first)?;
    Ok((socket, bound.address))
}

fn any_like(like: IpAddr) -> IpAddr {
    match like {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
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
    let (spec, requests) = spec(&asked)?;
    let ends = match asked.kernel_port {
        Some(port) => plain_ends(&asked, port, &requests, control)?,
        None => {
            let random = random()?;
            let (ends, ports) = ends(&asked, &spec, &random)?;
            ready(control, random, ports)?;
            ends
        }
    };
    let streams = receive(ends, &asked, control)?;
    control.say(&Message::Arrived { streams })
}

/// Says where it is, and waits until the other end begins.
fn ready(control: &mut Control, random: [u8; 32], ports: Vec<u16>) -> Result<()> {
    control.say(&Message::Ready { random, ports })?;
    match control.answer()? {
        Message::Go => Ok(()),
        _ => bail!("the other end does not go on as `fatpath flow send` does"),
    }
}

/// Of the kernel's TCP: all have connected when the other end begins.
fn plain_ends(
    asked: &Asked,
    port: u16,
    requests: &Requests,
    control: &mut Control,
) -> Result<Ends> {
    let address = SocketAddr::new(any_like(asked.address), port);
    let listener = socket_requests(requests)?
        .listen(address, asked.streams)
        .with_context(|| format!("TCP port {port}"))?;
    ready(control, [0; 32], vec![port; asked.streams as usize])?;
    let accept = |_| {
        let end = PlainRecvEnd::of(listener.accept()?.0)?;
        Ok(Box::new(end) as Box<dyn Receiving>)
    };
    (0..asked.streams).map(accept).collect()
}

type Ends = Vec<Box<dyn Receiving>>;

fn ends(asked: &Asked, spec: &Spec, random: &[u8; 32]) -> Result<(Ends, Vec<u16>)> {
    let mut secret = Secret::agree(&asked.random, random);
    let rtt = Duration::from_nanos(asked.rtt_ns);
    let first = u16::from_be_bytes([random[0], random[1]]);
    let one = |_| {
        let flow = secret.next_flow().context("a new secret has flows")?;
        let (socket, here) = bind(asked.address, first)?;
        let end = Datagrams {
            end: RecvEnd::new(socket, spec, flow, None, rtt)?,
            mss_bytes: transport::mss_bytes(spec),
        };
        Ok((Box::new(end) as Box<dyn Receiving>, here.port()))
    };
    let both: Result<Vec<_>> = (0..asked.streams).map(one).collect();
    Ok(both?.into_iter().unzip())
}

/// Until the sender has ended, or for as long as it sends.
fn receive(ends: Ends, asked: &Asked, control: &mut Control) -> Result<Vec<Vec<u64>>> {
    let has_ended = AtomicBool::new(false);
    let clock = Clock {
        begun: Instant::now(),
        lasts: asked.lasts_ns.map(Duration::from_nanos),
        interval: Duration::from_nanos(asked.interval_ns),
        wait: match asked.kernel_port {
            Some(_) => PLAIN_WAIT,
            None => WAIT,
        },
    };
    thread::scope(|scope| {
        let threads: Vec<_> = ends
            .into_iter()
            .map(|end| scope.spawn(|| count(end, &clock, &has_ended)))
            .collect();
        let done = control.wait();
        has_ended.store(true, Ordering::Relaxed);
        let counts = threads
            .into_iter()
            .map(|thread| thread.join().ok().context("a receiving thread")?);
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
    wait: Duration,
}

/// Bytes that had arrived in order at the end of each interval.
fn count(mut end: Box<dyn Receiving>, clock: &Clock, has_ended: &AtomicBool) -> Result<Vec<u64>> {
    let mut counts = vec![];
    let lasts = clock.lasts.unwrap_or(Duration::MAX);
    loop {
        let now = clock.begun.elapsed();
        while now.min(lasts) >= clock.interval * (counts.len() as u32 + 1)
            && counts.len() < MOST_INTERVALS as usize
        {
            counts.push(end.delivered_bytes());
        }
        if now >= lasts || has_ended.load(Ordering::Relaxed) {
            counts.push(end.delivered_bytes());
            return Ok(counts);
        }
        end.step(clock.wait.min(lasts - now))?;
    }
}
