// SPDX-License-Identifier: MIT OR Apache-2.0
//! One connection: its handshake, its two directions, its end.

use crate::findings::findings;
use crate::half::{Half, Room};
use crate::report::{Connection, Direction, Ended, Handshake, Near};
use crate::segment::{End, Segment, flag};
use crate::verdict::Verdict;

/// A capture is near an end whose share of the round trip is below this.
const NEAR_SHARE: f64 = 0.1;

/// Round trips below this say nothing of where a capture was made: processing takes as long.
const LEAST_RTT_US: f64 = 200.0;

/// What is known of the handshake, times of the first of each.
#[derive(Clone, Copy, Debug, Default)]
struct Opening {
    syn: Option<(u32, i64)>,
    syn_ack: Option<(u32, i64)>,
    ack_ns: Option<i64>,
    is_syn_repeated: bool,
    is_syn_ack_repeated: bool,
    asks_ecn: bool,
    takes_ecn: bool,
}

/// The state of a connection.
#[derive(Clone, Debug)]
pub(crate) struct State {
    flow: u64,
    ends: [End; 2],
    first_ns: i64,
    last_ns: i64,
    opening: Opening,
    halves: [Half; 2],
    fins: [bool; 2],
    reset: Option<Ended>,
}

/// The side of a segment's sender: `CLIENT` or `SERVER`.
type Side = usize;
const CLIENT: Side = 0;
const SERVER: Side = 1;

impl State {
    /// A connection of which this is the first segment.
    pub fn new(flow: u64, segment: &Segment) -> State {
        // A SYN-ACK comes from the server.
        let is_answer = segment.has(flag::SYN | flag::ACK);
        let ends = match is_answer {
            true => [segment.destination, segment.source],
            false => [segment.source, segment.destination],
        };
        State {
            flow,
            ends,
            first_ns: segment.time_ns,
            last_ns: segment.time_ns,
            opening: Opening::default(),
            halves: [Half::default(), Half::default()],
            fins: [false; 2],
            reset: None,
        }
    }

    /// Whether this segment begins another connection between the same ends.
    pub fn is_succeeded_by(&self, segment: &Segment) -> bool {
        if !segment.has(flag::SYN) || segment.has(flag::ACK) {
            return false;
        }
        let is_same = self.opening.syn.is_some_and(|(seq, _)| seq == segment.seq);
        // A simultaneous open has a SYN of each end.
        let is_simultaneous = self.side(segment) == SERVER
            && self.opening.syn_ack.is_none()
            && self.opening.ack_ns.is_none()
            && !self.is_over();
        !(is_same || is_simultaneous)
    }

    /// Its number.
    pub fn flow(&self) -> u64 {
        self.flow
    }

    /// Client and server.
    pub fn ends(&self) -> [End; 2] {
        self.ends
    }

    /// Whether the client sent this.
    pub fn is_from_client(&self, segment: &Segment) -> bool {
        self.side(segment) == CLIENT
    }

    /// The sender's, and its peer's.
    pub fn halves_of(&self, segment: &Segment) -> [&Half; 2] {
        let [client, server] = &self.halves;
        match self.side(segment) {
            CLIENT => [client, server],
            _ => [server, client],
        }
    }

    /// All that is held of it, bytes.
    pub fn bytes(&self) -> usize {
        let heap = self.halves.iter().map(Half::heap_bytes);
        size_of::<State>() + heap.sum::<usize>()
    }

    /// Whether nothing more is expected.
    pub fn is_over(&self) -> bool {
        self.reset.is_some() || self.fins == [true; 2]
    }

    /// Takes the next segment.
    pub fn take(&mut self, segment: &Segment, room: Room) -> Verdict {
        let mut verdict = Verdict::default();
        let side = self.side(segment);
        self.last_ns = self.last_ns.max(segment.time_ns);
        self.open(segment, side);
        let rtt_ns = self.rtt_ns();
        let [own, peer] = self.both(side);
        own.sends(segment);
        let is_same_window = own.has_offered(segment.window);
        let window_bytes = own.offers(segment, &mut verdict);
        peer.is_echoed(segment);
        if segment.has(flag::ACK) && !segment.has(flag::RST) {
            let report = &mut own.report;
            peer.acked(segment, window_bytes, is_same_window, &mut verdict, report);
        }
        let is_peer_closed = peer.has_offered(0);
        own.data(segment, rtt_ns, is_peer_closed, room, &mut verdict);
        self.close(segment, side);
        verdict
    }

    /// What the next segments touch beside its own bytes.
    pub fn prefetch(&self) {
        self.halves.iter().for_each(Half::prefetch);
    }

    fn side(&self, segment: &Segment) -> Side {
        usize::from(segment.source != self.ends[CLIENT])
    }

    fn both(&mut self, side: Side) -> [&mut Half; 2] {
        let [client, server] = &mut self.halves;
        match side {
            CLIENT => [client, server],
            _ => [server, client],
        }
    }

    fn open(&mut self, segment: &Segment, side: Side) {
        let opening = &mut self.opening;
        if !segment.has(flag::SYN) {
            let is_ack = side == CLIENT && segment.has(flag::ACK) && opening.syn_ack.is_some();
            if is_ack && opening.ack_ns.is_none() {
                opening.ack_ns = Some(segment.time_ns);
            }
            return;
        }
        let is_ack = segment.has(flag::ACK);
        let (kept, is_repeated) = match is_ack {
            true => (&mut opening.syn_ack, &mut opening.is_syn_ack_repeated),
            false => (&mut opening.syn, &mut opening.is_syn_repeated),
        };
        *is_repeated |= kept.is_some();
        kept.get_or_insert((segment.seq, segment.time_ns));
        match is_ack {
            true => opening.takes_ecn = segment.has(flag::ECE) && !segment.has(flag::CWR),
            false => opening.asks_ecn = segment.has(flag::ECE | flag::CWR),
        }
        let [own, peer] = self.both(side);
        own.syn_options(segment);
        peer.peer_options(&own.report);
        own.peer_options(&peer.report);
    }

    fn close(&mut self, segment: &Segment, side: Side) {
        if segment.has(flag::FIN) {
            self.fins[side] = true;
        }
        if !segment.has(flag::RST) || self.reset.is_some() {
            return;
        }
        let is_refusal = side == SERVER
            && self.opening.syn.is_some()
            && self.opening.syn_ack.is_none()
            && !self.halves[SERVER].has_data();
        self.reset = Some(match () {
            () if self.fins == [true; 2] => Ended::ResetAfterClose,
            () if is_refusal => Ended::Refused,
            () if side == CLIENT => Ended::ResetByClient,
            () => Ended::ResetByServer,
        });
    }

    /// From one end to the other and back: what is measured on both sides of the capture.
    fn rtt_ns(&self) -> Option<i64> {
        let [client, server] = &self.halves;
        match (client.smoothed_rtt_ns(), server.smoothed_rtt_ns()) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (one, other) => one.or(other),
        }
    }

    /// The report; nothing more is to come.
    pub fn finish(&mut self) -> Connection {
        let sides_us = self.sides_us();
        let [client, server] = &mut self.halves;
        let from_client = client.finish(self.last_ns);
        let from_server = server.finish(self.last_ns);
        let mut connection = Connection {
            flow: self.flow,
            client: self.ends[CLIENT],
            server: self.ends[SERVER],
            first_ns: self.first_ns,
            duration_us: self.last_ns.saturating_sub(self.first_ns) as f64 / 1000.0,
            handshake: self.opening.handshake(),
            ended: self.ended(),
            near: near(sides_us),
            unknown: Vec::new(),
            from_client,
            from_server,
            findings: Vec::new(),
        };
        connection.unknown = unknown(&connection);
        connection.findings = findings(&connection);
        connection
    }

    /// Least times from the capture to the client and back, and to the server and back.
    fn sides_us(&self) -> [Option<f64>; 2] {
        let us = |ns: i64| ns as f64 / 1000.0;
        let handshake = self.opening.handshake();
        let by_data = [SERVER, CLIENT].map(|side| self.halves[side].min_rtt_ns().map(us));
        match handshake {
            Some(one) => [
                one.client_rtt_us.or(by_data[0]),
                one.server_rtt_us.or(by_data[1]),
            ],
            None => by_data,
        }
    }

    fn ended(&self) -> Ended {
        match (self.reset, self.fins) {
            (Some(reset), _) => reset,
            (None, [true, true]) => Ended::Closed,
            (None, [false, false]) => Ended::No,
            (None, _) => Ended::HalfClosed,
        }
    }
}

impl Opening {
    fn handshake(&self) -> Option<Handshake> {
        let (_, syn_ns) = self.syn?;
        let us = |from: i64, to: i64| to.saturating_sub(from).max(0) as f64 / 1000.0;
        let once = |time: Option<f64>, is_repeated: bool| time.filter(|_| !is_repeated);
        let server = self.syn_ack.map(|(_, at)| us(syn_ns, at));
        let client = self.syn_ack.zip(self.ack_ns);
        let client = client.map(|((_, from), to)| us(from, to));
        let is_repeated = self.is_syn_repeated || self.is_syn_ack_repeated;
        Some(Handshake {
            rtt_us: once(self.ack_ns.map(|at| us(syn_ns, at)), is_repeated),
            server_rtt_us: once(server, is_repeated),
            client_rtt_us: once(client, self.is_syn_ack_repeated),
            took_us: self.ack_ns.map(|at| us(syn_ns, at)),
            is_ecn_agreed: self.asks_ecn && self.takes_ecn,
        })
    }
}

/// By the times from the capture to the two ends.
fn near(sides_us: [Option<f64>; 2]) -> Near {
    let [Some(client_us), Some(server_us)] = sides_us else {
        return Near::Unknown;
    };
    let whole_us = client_us + server_us;
    match () {
        () if whole_us < LEAST_RTT_US => Near::Unknown,
        () if client_us < NEAR_SHARE * whole_us => Near::Client,
        () if server_us < NEAR_SHARE * whole_us => Near::Server,
        () => Near::Middle,
    }
}

fn unknown(connection: &Connection) -> Vec<&'static str> {
    let ways = [&connection.from_client, &connection.from_server];
    let any = |is: fn(&Direction) -> bool| ways.iter().any(|way| is(way));
    let cases = [
        (
            connection.handshake.is_none(),
            "the handshake was not captured: windows are not scaled, so those of this connection may be larger, and \
             client and server may be exchanged",
        ),
        (
            any(|way| way.packets == 0),
            "one direction was not captured: round-trip times, windows and losses need both",
        ),
        (
            any(|way| way.unseen_bytes > 0),
            "data was acknowledged that is not in the capture: the capture missed packets, and counts are too low",
        ),
        (
            any(|way| way.cut_options > 0),
            "options were cut: capture 128 bytes of each packet at least (tcpdump -s 128)",
        ),
        (
            any(|way| way.super_packets > 0),
            "segments above the MSS: an interface with offload cuts them on their way, so packets are counted before, \
             and times between them are not those of the wire",
        ),
        (
            is_before_losses(connection),
            "made near the receiver or on the way: segments that were lost before the capture are known by their \
             retransmission only",
        ),
    ];
    let told = cases.into_iter().filter(|(holds, _)| *holds);
    told.map(|(_, text)| text).collect()
}

/// Where losses may lie before the capture.
fn is_before_losses(connection: &Connection) -> bool {
    let client_sends = connection.from_client.data_packets > connection.from_server.data_packets;
    match connection.near {
        Near::Client => !client_sends,
        Near::Server => client_sends,
        Near::Middle => true,
        Near::Unknown => false,
    }
}
