// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end that data come from, and that knows how TCP stands.

use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use fatpath_driver::{PlainSendEnd, SendEnd};
use fatpath_scenario::{Requests, transport};
use fatpath_tcp::SenderFigures;
use fatpath_transport::{Extent, Secret, Spec};

use crate::control::{Asked, Control, Message};
use crate::ends::Sending;
use crate::log::{Connection, Log};
use crate::receive::{bind, socket_requests, spec};
use crate::report::{Interval, Report};

/// More than any flow moves.
const ENDLESS_BYTES: u64 = 1 << 60;
/// How long a step waits.
const WAIT: Duration = Duration::from_millis(10);
/// The same where the kernel's TCP does the rest: one connection's transfers are timed, those of several are not, and many
/// that look often take the processor from the others.
const WAIT_OF_ONE: Duration = Duration::from_millis(1);
const WAIT_OF_SEVERAL: Duration = Duration::from_millis(20);
/// How long connections may take to open.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// What each connection is to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// As much as can be.
    Endless,
    /// So many bytes.
    Bytes(u64),
    /// So many bytes again and again.
    Chunks(Chunks),
}

/// A pause follows each chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunks {
    pub(crate) bytes: u64,
    pub(crate) first_bytes: u64,
    /// From the beginning of one to that of the next, if all of it has arrived by then.
    pub(crate) every: Duration,
    /// `None`: until the flow ends.
    pub(crate) count: Option<u64>,
}

impl Chunks {
    /// Of the chunk with this number, from 0: they follow one another.
    fn extent(&self, number: u64) -> Extent {
        let (offset, bytes) = match number.checked_sub(1) {
            None => (0, self.first_bytes),
            Some(whole) => {
                let before = whole.saturating_mul(self.bytes);
                (self.first_bytes.saturating_add(before), self.bytes)
            }
        };
        Extent {
            object: 0,
            offset,
            bytes,
        }
    }
}

/// What one connection did.
struct Sent {
    /// At the end of each interval, and at last.
    figures: Vec<SenderFigures>,
    /// Until it stopped, or knew that all had arrived.
    lasted: Duration,
    /// How long each chunk took until all of it was known to have arrived.
    chunks: Vec<Duration>,
}

/// Sends `load` by each connection, as `asked` says, when `begin` returns. What happens is logged in the folder `log`.
///
/// # Errors
/// What is out of range, the other end's, or the network's.
pub(crate) fn one(
    mut control: Control,
    asked: Asked,
    load: Load,
    log: Option<&Path>,
    begin: impl FnOnce(),
) -> Result<Report> {
    let (spec, requests) = spec(&asked)?;
    control.say(&Message::Asked(asked.clone()))?;
    let Message::Ready { random, ports } = control.answer()? else {
        bail!("the other end does not begin as `fatpath flow receive` does");
    };
    ensure!(
        ports.len() == asked.streams as usize,
        "the other end has {} ports for {} connections",
        ports.len(),
        asked.streams
    );
    let mut streams = match asked.kernel_port {
        Some(_) => plain_streams(&asked, &requests, &ports)?,
        None => {
            let fragments = requests.ends.fragment == Some(true);
            streams(&asked, &spec, fragments, &random, &ports)?
        }
    };
    if let Some(folder) = log {
        (streams.iter_mut().zip(1..)).try_for_each(|(one, number)| {
            one.log(number, law(&asked, &spec, &requests), &spec, folder)
        })?;
    }
    control.say(&Message::Go)?;
    begin();
    let sent = send(streams, &asked, load)?;
    control.say(&Message::Done)?;
    match control.answer()? {
        Message::Arrived { streams } => Ok(report(&asked, &spec, &sent, &streams)),
        _ => bail!("the other end does not end as `fatpath flow receive` does"),
    }
}

/// A connection.
struct Stream {
    end: Box<dyn Sending>,
    ends: [SocketAddr; 2],
    wait: Duration,
    log: Option<Log>,
}

/// The name of the law, as the kernel knows it; empty: the host's own.
fn law(asked: &Asked, spec: &Spec, requests: &Requests) -> String {
    match asked.kernel_port {
        Some(_) => (requests.law.as_ref()).map_or(String::new(), |law| law.name.clone()),
        None => format!("fp_{}", spec.tcp.law.spec().name),
    }
}

impl Stream {
    fn log(&mut self, number: u64, law: String, spec: &Spec, folder: &Path) -> Result<()> {
        let connection = Connection {
            number,
            ends: self.ends,
            law,
            mss_bytes: transport::mss_bytes(spec),
        };
        self.log = Some(Log::begin(folder, connection)?);
        Ok(())
    }
}

fn streams(
    asked: &Asked,
    spec: &Spec,
    fragments: bool,
    random: &[u8; 32],
    ports: &[u16],
) -> Result<Vec<Stream>> {
    let mut secret = Secret::agree(&asked.random, random);
    let rtt = Duration::from_nanos(asked.rtt_ns);
    let first = u16::from_be_bytes([asked.random[0], asked.random[1]]);
    let one = |port: &u16| {
        let flow = secret.next_flow().context("a new secret has flows")?;
        let (mut socket, here) = bind(asked.address, first)?;
        if fragments {
            socket.let_fragment().context("IP_MTU_DISCOVER")?;
        }
        let there = SocketAddr::new(asked.address, *port);
        Ok(Stream {
            end: Box::new(SendEnd::new(socket, spec, flow, Some(there), rtt)?),
            ends: [here, there],
            wait: WAIT,
            log: None,
        })
    };
    ports.iter().map(one).collect()
}

/// Of the kernel's TCP, all of them connected.
fn plain_streams(asked: &Asked, requests: &Requests, ports: &[u16]) -> Result<Vec<Stream>> {
    let requests = socket_requests(requests)?;
    let connect = |port: &u16| {
        let there = SocketAddr::new(asked.address, *port);
        Ok((there, PlainSendEnd::connect(there, &requests)?))
    };
    let connecting: Vec<_> = ports.iter().map(connect).collect::<Result<_>>()?;
    let connected = connecting.into_iter().map(|(there, end)| {
        end.wait_connected(CONNECT_WITHIN)
            .with_context(|| format!("cannot connect to {there}"))?;
        Ok(Stream {
            ends: [end.local_addr()?, there],
            end: Box::new(end),
            wait: match ports.len() {
                1 => WAIT_OF_ONE,
                _ => WAIT_OF_SEVERAL,
            },
            log: None,
        })
    });
    connected.collect()
}

fn send(streams: Vec<Stream>, asked: &Asked, load: Load) -> Result<Vec<Sent>> {
    let begun = Instant::now();
    thread::scope(|scope| {
        let threads: Vec<_> = streams
            .into_iter()
            .map(|stream| scope.spawn(move || stream.send(asked, load, begun)))
            .collect();
        let joined = threads.into_iter();
        joined
            .map(|thread| thread.join().ok().context("a sending thread")?)
            .collect()
    })
}

impl Stream {
    fn send(mut self, asked: &Asked, load: Load, begun: Instant) -> Result<Sent> {
        let lasts = asked.lasts_ns.map_or(Duration::MAX, Duration::from_nanos);
        let interval = Duration::from_nanos(asked.interval_ns);
        let mut giving = Giving::of(load);
        let mut figures: Vec<SenderFigures> = vec![];
        loop {
            let now = begun.elapsed();
            let due = giving.give(&mut *self.end, now);
            let stands = self.end.figures();
            if let Some(log) = &mut self.log {
                log.note(now, &stands);
            }
            while now.min(lasts) >= interval * (figures.len() as u32 + 1) {
                figures.push(stands);
            }
            if now >= lasts || giving.is_over(&*self.end) {
                figures.push(stands);
                self.log.map_or(Ok(()), |log| log.end(now, &stands))?;
                return Ok(Sent {
                    figures,
                    lasted: now.min(lasts),
                    chunks: giving.took,
                });
            }
            let wait = self.wait.min(lasts - now).min(due.saturating_sub(now));
            self.end.step(wait)?;
        }
    }
}

/// Gives a connection its load in time.
struct Giving {
    chunk: Chunks,
    given: u64,
    begun: Option<Duration>,
    took: Vec<Duration>,
}

impl Giving {
    /// What comes once is one chunk.
    fn of(load: Load) -> Giving {
        let once = |bytes| Chunks {
            bytes,
            first_bytes: bytes,
            every: Duration::ZERO,
            count: Some(1),
        };
        Giving {
            chunk: match load {
                Load::Endless => once(ENDLESS_BYTES),
                Load::Bytes(bytes) => once(bytes),
                Load::Chunks(chunks) => chunks,
            },
            given: 0,
            begun: None,
            took: vec![],
        }
    }

    fn is_all_given(&self) -> bool {
        self.chunk.count.is_some_and(|count| self.given >= count)
    }

    fn is_over(&self, end: &dyn Sending) -> bool {
        self.is_all_given() && end.is_done()
    }

    /// Gives what is due, and says when more is.
    fn give(&mut self, end: &mut dyn Sending, now: Duration) -> Duration {
        if !end.is_done() {
            return Duration::MAX;
        }
        let has_arrived = self.took.len() as u64 == self.given;
        if let Some(begun) = self.begun.filter(|_| !has_arrived) {
            self.took.push(now - begun);
        }
        let due = self.begun.map_or(now, |begun| begun + self.chunk.every);
        if self.is_all_given() || now < due {
            return due;
        }
        end.send(self.chunk.extent(self.given));
        self.given += 1;
        self.begun = Some(now);
        Duration::MAX
    }
}

fn report(asked: &Asked, spec: &Spec, sent: &[Sent], arrived: &[Vec<u64>]) -> Report {
    let lasted = sent.iter().map(|sent| sent.lasted).max();
    let seconds = lasted.unwrap_or_default().as_secs_f64();
    let bytes = arrived.iter().filter_map(|counts| counts.last()).sum();
    let mut report = Report {
        seconds,
        bytes,
        goodput_bps: bytes as f64 * 8.0 / seconds.max(f64::MIN_POSITIVE),
        streams: asked.streams,
        datagram_bytes: spec.datagram_bytes,
        sent_pkts: 0,
        retransmits: 0,
        timeouts: 0,
        congestion_events: asked.kernel_port.is_none().then_some(0),
        undone_events: asked.kernel_port.is_none().then_some(0),
        min_rtt_us: 0,
        chunks_s: (sent.iter().flat_map(|sent| &sent.chunks))
            .map(Duration::as_secs_f64)
            .collect(),
        intervals: intervals(asked, sent, arrived, seconds),
    };
    let last = sent.iter().filter_map(|sent| sent.figures.last());
    last.for_each(|figures| report.add(figures));
    report
}

/// Of all connections together. One that ended earlier stands as it did.
fn intervals(asked: &Asked, sent: &[Sent], arrived: &[Vec<u64>], seconds: f64) -> Vec<Interval> {
    let length = asked.interval_ns as f64 / 1e9;
    let count = (seconds / length - 1e-6).ceil().max(0.0) as usize;
    let bytes_by = |n: usize| -> u64 { arrived.iter().filter_map(|counts| by(counts, n)).sum() };
    let sent_by = |n: usize| sent.iter().filter_map(move |sent| by(&sent.figures, n));
    let again_by = |n: usize| -> u64 { sent_by(n).map(|figures| figures.retransmits).sum() };
    let one = |n: usize| {
        let (start, end) = (n as f64 * length, ((n + 1) as f64 * length).min(seconds));
        Interval {
            start,
            end,
            bits_per_second: (bytes_by(n + 1) - bytes_by(n)) as f64 * 8.0 / (end - start),
            retransmits: again_by(n + 1) - again_by(n),
            srtt_us: (sent_by(n + 1).map(|figures| figures.srtt_us))
                .max()
                .unwrap_or(0),
            cwnd_pkts: (sent_by(n + 1).map(|figures| u64::from(figures.cwnd_pkts))).sum(),
        }
    };
    (0..count).map(one).collect()
}

/// At the end of the `n`th interval, from 1; nothing before the first.
fn by<T: Copy>(counts: &[T], n: usize) -> Option<T> {
    let last = counts.len().checked_sub(1)?;
    Some(counts[n.checked_sub(1)?.min(last)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_follow_one_another_after_a_first_one_of_another_size() {
        let chunks = Chunks {
            bytes: 100,
            first_bytes: 30,
            every: Duration::ZERO,
            count: None,
        };
        let extents = [0, 1, 2].map(|number| chunks.extent(number));
        let extents = extents.map(|extent| (extent.offset, extent.bytes));
        assert_eq!(extents, [(0, 30), (30, 100), (130, 100)]);
    }

    #[test]
    fn intervals_are_of_all_connections_and_the_last_one_may_be_short() {
        let figures = |retransmits, cwnd_pkts| SenderFigures {
            retransmits,
            cwnd_pkts,
            srtt_us: 1000 * cwnd_pkts,
            ..SenderFigures::default()
        };
        let asked = Asked {
            version: String::new(),
            random: [0; 32],
            address: [127, 0, 0, 1].into(),
            streams: 2,
            tcp: vec![],
            kernel_port: None,
            datagram_bytes: 1452,
            lasts_ns: None,
            interval_ns: 1_000_000_000,
            rtt_ns: 0,
        };
        let sent = [
            Sent {
                figures: vec![figures(1, 10), figures(3, 20)],
                lasted: Duration::from_millis(1500),
                chunks: vec![],
            },
            Sent {
                figures: vec![figures(0, 5)],
                lasted: Duration::from_millis(500),
                chunks: vec![Duration::from_millis(400)],
            },
        ];
        let arrived = [vec![1000, 1500], vec![250]];
        let spec = Spec::default();
        let report = report(&asked, &spec, &sent, &arrived);
        assert_eq!((report.bytes, report.seconds), (1750, 1.5));
        assert_eq!(report.chunks_s, [0.4]);
        let seen: Vec<_> = (report.intervals.iter())
            .map(|one| (one.end, one.bits_per_second, one.retransmits, one.cwnd_pkts))
            .collect();
        assert_eq!(seen, [(1.0, 10_000.0, 1, 15), (1.5, 8000.0, 2, 25)]);
        assert_eq!(
            (report.retransmits, report.intervals[1].srtt_us),
            (3, 20_000)
        );
    }
}
