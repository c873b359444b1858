// SPDX-License-Identifier: MIT OR Apache-2.0
//! One connection over time, for plots: each segment, the ACK line, the window's edge, SACKs, round-trip times. Only of
//! connections that are asked for, and bounded: what comes after is counted, and left out.

use crate::connection::State;
use crate::half::Half;
use crate::segment::{End, Segment};
use crate::verdict::{Retransmission, Verdict};

/// Of all connections that are watched together, so many points: 16 to 24 bytes each.
const MOST_POINTS: usize = 32 << 20;

/// A value at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Since 1970.
    pub time_ns: i64,
    /// Bytes, sequence numbers or ns.
    pub value: i64,
}

/// Sequence numbers at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Since 1970.
    pub time_ns: i64,
    /// The first.
    pub start: i64,
    /// One past the last.
    pub end: i64,
}

/// What a segment was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Sent for the first time.
    New,
    /// Sent again.
    Again(Retransmission),
    /// Sent once, and overtaken.
    OutOfOrder,
    /// A copy that the network made.
    Copy,
    /// A window probe or a keep-alive.
    Probe,
}

impl Mark {
    /// In the order in which they are drawn.
    pub const ALL: [Mark; 9] = [
        Mark::New,
        Mark::OutOfOrder,
        Mark::Copy,
        Mark::Probe,
        Mark::Again(Retransmission::Unclear),
        Mark::Again(Retransmission::AfterTimeout),
        Mark::Again(Retransmission::Fast),
        Mark::Again(Retransmission::TailLossProbe),
        Mark::Again(Retransmission::Timeout),
    ];

    /// For a legend.
    pub fn name(self) -> &'static str {
        match self {
            Mark::New => "segment",
            Mark::OutOfOrder => "out of order",
            Mark::Copy => "copy made on the way",
            Mark::Probe => "probe or keep-alive",
            Mark::Again(Retransmission::Unclear) => "retransmission, unclear why",
            Mark::Again(Retransmission::AfterTimeout) => "retransmission after a timeout",
            Mark::Again(Retransmission::Fast) => "fast retransmission",
            Mark::Again(Retransmission::TailLossProbe) => "tail-loss probe",
            Mark::Again(Retransmission::Timeout) => "timeout",
        }
    }

    fn of(verdict: &Verdict) -> Mark {
        match verdict.retransmission {
            Some(kind) => Mark::Again(kind),
            None if verdict.is_syn_again => Mark::Again(Retransmission::Timeout),
            None if verdict.is_out_of_order => Mark::OutOfOrder,
            None if verdict.is_copy => Mark::Copy,
            None if verdict.is_keep_alive || verdict.is_window_probe => Mark::Probe,
            None => Mark::New,
        }
    }
}

/// What the sender's kernel said of a flow, in the order of time.
#[derive(Clone, Debug, Default)]
pub struct KernelSaid {
    /// Congestion window, bytes.
    pub cwnd: Vec<Point>,
    /// In flight, bytes, as `tcp_packets_in_flight()` has it.
    pub in_flight: Vec<Point>,
    /// Smoothed round-trip time, ns (RFC 6298).
    pub srtt: Vec<Point>,
    /// Data of a full segment.
    pub mss_bytes: u32,
    /// Segments sent again between the first sample and the last.
    pub retransmitted_packets: u64,
}

/// The data of one end and the ACKs of it, in the order of the capture. Sequence numbers count from the first.
#[derive(Clone, Debug, Default)]
pub struct Way {
    /// By [`Mark::ALL`].
    pub segments: [Vec<Span>; Mark::ALL.len()],
    /// Where everything below is acknowledged, when it changes.
    pub acked: Vec<Point>,
    /// Right edge of the peer's window, when it changes.
    pub edge: Vec<Point>,
    /// Blocks that the peer reports, when it did not report them in the ACK before.
    pub sacked: Vec<Span>,
    /// Duplicate ACKs of the peer.
    pub duplicate_acks: Vec<Point>,
    /// ACKs of the peer that close its window.
    pub zero_windows: Vec<Point>,
    /// Sent and not acknowledged, bytes, when it changes.
    pub outstanding: Vec<Point>,
    /// Of it, what is in flight: neither SACKed nor lost, bytes, when it changes.
    pub in_flight: Vec<Point>,
    /// Estimated congestion window, bytes, when it changes.
    pub cwnd: Vec<Point>,
    /// Window of the peer, bytes, when it changes.
    pub window: Vec<Point>,
    /// Each measured round trip from the capture to the peer and back, ns.
    pub rtt: Vec<Point>,
    /// What the sender's kernel said of these data; empty unless somebody knows it.
    pub kernel: KernelSaid,
    last_sack: Vec<(i64, i64)>,
}

/// A connection over time.
#[derive(Clone, Debug)]
pub struct History {
    /// Number of the connection.
    pub flow: u64,
    /// As [`crate::Connection`] has it.
    pub client: End,
    /// The other end.
    pub server: End,
    /// Data of the client.
    pub from_client: Way,
    /// Data of the server.
    pub from_server: Way,
    /// Segments that came when there was no memory for more.
    pub left_out: u64,
}

impl History {
    /// Time of the first segment, since 1970; of those that were kept.
    pub fn first_ns(&self) -> i64 {
        let ways = [&self.from_client, &self.from_server];
        let segments = ways.iter().flat_map(|way| way.segments.iter().flatten());
        let sent = segments.map(|span| span.time_ns);
        let acked = ways.iter().flat_map(|way| way.acked.first());
        sent.chain(acked.map(|point| point.time_ns))
            .min()
            .unwrap_or_default()
    }
}

/// The connections that are watched.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    flows: Vec<u64>,
    histories: Vec<History>,
    points: usize,
}

impl Watched {
    pub fn new(flows: &[u64]) -> Watched {
        Watched {
            flows: flows.to_vec(),
            ..Watched::default()
        }
    }

    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// A connection has taken a segment.
    pub fn take(&mut self, state: &State, segment: &Segment, verdict: &Verdict) {
        if !self.flows.contains(&state.flow()) {
            return;
        }
        let place = self.place(state);
        let history = &mut self.histories[place];
        if self.points >= MOST_POINTS {
            history.left_out += 1;
            return;
        }
        let [own, peer] = state.halves_of(segment);
        let [sends, hears] = match state.is_from_client(segment) {
            true => [&mut history.from_client, &mut history.from_server],
            false => [&mut history.from_server, &mut history.from_client],
        };
        self.points += sends.sent(own, segment, verdict);
        self.points += hears.answered(peer, segment, verdict);
    }

    fn place(&mut self, state: &State) -> usize {
        let found = self.histories.iter().position(|h| h.flow == state.flow());
        found.unwrap_or_else(|| {
            let [client, server] = state.ends();
            self.histories.push(History {
                flow: state.flow(),
                client,
                server,
                from_client: Way::default(),
                from_server: Way::default(),
                left_out: 0,
            });
            self.histories.len() - 1
        })
    }

    pub fn into_histories(self) -> Vec<History> {
        self.histories
    }
}

impl Way {
    /// Whether there is any data to draw.
    pub fn has_data(&self) -> bool {
        self.segments.iter().flatten().any(|s| s.end - s.start > 1)
    }

    /// What lies between two times, with the values that hold when they begin.
    #[must_use]
    pub fn between(&self, from_ns: i64, to_ns: i64) -> Way {
        let is_within = |time_ns: i64| (from_ns..=to_ns).contains(&time_ns);
        let spans = |spans: &Vec<Span>| -> Vec<Span> {
            let within = spans.iter().filter(|span| is_within(span.time_ns));
            within.copied().collect()
        };
        let points = |points: &Vec<Point>| -> Vec<Point> {
            let within = points.iter().filter(|point| is_within(point.time_ns));
            within.copied().collect()
        };
        let held = |all: &Vec<Point>| -> Vec<Point> {
            let before = all.iter().rfind(|point| point.time_ns < from_ns);
            let before = before.map(|point| Point {
                time_ns: from_ns,
                ..*point
            });
            before.into_iter().chain(points(all)).collect()
        };
        Way {
            segments: self.segments.each_ref().map(spans),
            acked: held(&self.acked),
            edge: held(&self.edge),
            sacked: spans(&self.sacked),
            duplicate_acks: points(&self.duplicate_acks),
            zero_windows: points(&self.zero_windows),
            outstanding: held(&self.outstanding),
            in_flight: held(&self.in_flight),
            cwnd: held(&self.cwnd),
            window: held(&self.window),
            rtt: points(&self.rtt),
            kernel: KernelSaid {
                cwnd: held(&self.kernel.cwnd),
                in_flight: points(&self.kernel.in_flight),
                srtt: held(&self.kernel.srtt),
                ..self.kernel
            },
            last_sack: Vec::new(),
        }
    }

    /// Segments of one kind.
    pub fn of(&self, mark: Mark) -> &[Span] {
        let at = Mark::ALL.iter().position(|other| *other == mark);
        at.map_or(&[], |at| &self.segments[at])
    }

    fn sent(&mut self, half: &Half, segment: &Segment, verdict: &Verdict) -> usize {
        let time_ns = segment.time_ns;
        let mark = Mark::of(verdict);
        let length = i64::from(segment.sequence_bytes());
        let mut added = changed(&mut self.outstanding, time_ns, half.outstanding_bytes());
        added += changed(&mut self.in_flight, time_ns, half.in_flight_bytes());
        let Some(start) = half.place_of_data(segment.seq) else {
            return added;
        };
        if length > 0 || mark == Mark::Probe {
            let end = start + length;
            let at = Mark::ALL.iter().position(|other| *other == mark);
            self.segments[at.unwrap_or_default()].push(Span {
                time_ns,
                start,
                end,
            });
            added += 1;
        }
        added
    }

    fn answered(&mut self, half: &Half, segment: &Segment, verdict: &Verdict) -> usize {
        let time_ns = segment.time_ns;
        let una = half.una();
        let mut added = changed(&mut self.acked, time_ns, una);
        added += changed(&mut self.outstanding, time_ns, half.outstanding_bytes());
        added += changed(&mut self.in_flight, time_ns, half.in_flight_bytes());
        if let Some(cwnd_bytes) = half.cwnd_estimate_bytes() {
            added += changed(&mut self.cwnd, time_ns, cwnd_bytes);
        }
        if let Some(edge) = half.edge() {
            added += changed(&mut self.edge, time_ns, edge);
            added += changed(&mut self.window, time_ns, edge - una);
        }
        let point = |value| Point { time_ns, value };
        self.rtt.extend(verdict.rtt_ns.map(point));
        let is = [verdict.is_duplicate_ack, verdict.is_zero_window];
        let marks = [&mut self.duplicate_acks, &mut self.zero_windows];
        for (marks, is) in marks.into_iter().zip(is) {
            marks.extend(is.then(|| point(una)));
        }
        added + 3 + self.take_sack(half, segment)
    }

    fn take_sack(&mut self, half: &Half, segment: &Segment) -> usize {
        let blocks = segment.options.sack().iter();
        let place = |number| half.place_of_ack(number);
        let blocks = blocks.filter_map(|(start, end)| Some((place(*start)?, place(*end)?)));
        let blocks: Vec<(i64, i64)> = blocks.filter(|(start, end)| start < end).collect();
        let new = blocks
            .iter()
            .filter(|block| !self.last_sack.contains(block));
        let before = self.sacked.len();
        self.sacked.extend(new.map(|(start, end)| Span {
            time_ns: segment.time_ns,
            start: *start,
            end: *end,
        }));
        self.last_sack = blocks;
        self.sacked.len() - before
    }
}

/// Adds a value that differs from the last; answers how many were added.
fn changed(points: &mut Vec<Point>, time_ns: i64, value: i64) -> usize {
    if points.last().is_some_and(|last| last.value == value) {
        return 0;
    }
    points.push(Point { time_ns, value });
    1
}

/// So many rates in the time over which the first of them is averaged: it does not change faster.
const RATES_IN_WINDOW: i64 = 100;

/// Rates between ACKs, bits a second: over the time `window_ns` before each ACK, and since the first point. Of ACKs that
/// come thick, some.
pub fn goodput(acked: &[Point], window_ns: i64) -> [Vec<Point>; 2] {
    let (mut moving, mut total) = (Vec::new(), Vec::new());
    let Some(first) = acked.first() else {
        return [moving, total];
    };
    let (mut from, mut last_ns) = (0, i64::MIN);
    for to in acked {
        let since_ns = to.time_ns.saturating_sub(window_ns);
        // The last point at or before the window's beginning: a pause counts as a whole.
        while from + 1 < acked.len() && acked[from + 1].time_ns <= since_ns {
            from += 1;
        }
        if to.time_ns.saturating_sub(last_ns) < window_ns / RATES_IN_WINDOW {
            continue;
        }
        last_ns = to.time_ns;
        total.extend(rate(first, to));
        if since_ns >= first.time_ns {
            moving.extend(rate(&acked[from], to));
        }
    }
    [moving, total]
}

fn rate(from: &Point, to: &Point) -> Option<Point> {
    let took_ns = to.time_ns.saturating_sub(from.time_ns);
    let bits = to.value.saturating_sub(from.value) as f64 * 8.0;
    (took_ns > 0).then(|| Point {
        time_ns: to.time_ns,
        value: (bits / (took_ns as f64 / 1e9)) as i64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goodput_is_that_of_the_window_and_of_the_whole() {
        let at = |ms: i64, value: i64| Point {
            time_ns: ms * 1_000_000,
            value,
        };
        // 8 Mb/s for a second, nothing for one, 16 Mb/s for one.
        let first = (0..=1000).map(|ms| at(ms, ms * 1000));
        let last = (2000..=3000).map(|ms| at(ms, 1_000_000 + (ms - 2000) * 2000));
        let acked: Vec<Point> = first.chain(last).collect();
        let [moving, total] = goodput(&acked, 100_000_000);
        let value = |points: &[Point], ms: i64| {
            let found = points.iter().find(|p| p.time_ns == ms * 1_000_000);
            found.unwrap().value
        };
        assert_eq!(
            moving[0].time_ns, 100_000_000,
            "not before a window has passed"
        );
        assert_eq!(value(&moving, 500), 8_000_000);
        assert_eq!(value(&moving, 2000), 0, "the pause");
        assert_eq!(value(&moving, 3000), 16_000_000);
        assert_eq!(value(&total, 3000), 8_000_000);
        assert_eq!(goodput(&[], 1), [vec![], vec![]]);
        let ends_early = [
            at(0, 0),
            Point {
                time_ns: i64::MIN,
                value: i64::MAX,
            },
        ];
        goodput(&ends_early, i64::MAX);
    }
}
