// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end that has the data.

use super::connection::{Connection, each, newest, wait};
use crate::beside::{Quiet, silent_beside};
use crate::waits::Chronograph;
use crate::{LATE, Source, StepError, Waits};
use fatpath_tcp::SenderFigures;
use fatpath_transport::{CloseCode, Extent, Queue, Record};
use std::io;
use std::time::{Duration, Instant};

/// Sealed before the kernel is asked to take it.
const BATCH_BYTES: usize = 128 << 10;
/// Such batches of a connection in one step, at most: what others have room for does not wait.
const MOST_BATCHES: usize = 2;

/// The sending end over connections.
pub struct SendEnd {
    connections: Vec<Connection>,
    queue: Queue,
    silence: Duration,
    limit_bps: Option<u64>,
    closed_by_peer: Option<CloseCode>,
    /// How many ended or were given up, and how they stood.
    given_up: usize,
    given_up_figures: SenderFigures,
    waits: Waits,
    /// Waits of connections that had something to send, which the kernel's chronograph divides: as it was when that was done
    /// last.
    undivided_ns: u64,
    chronograph: Chronograph,
}

impl SendEnd {
    /// Over `connections`, one at least, which share `limit_bps`. One that ends, or is silent beside others, leaves them what
    /// it had; when none is heard for `silence`, all has ended. `law`: congestion control, where the kernel has it and lets
    /// this user choose.
    ///
    /// # Errors
    /// The kernel's.
    pub fn new(
        connections: Vec<Connection>,
        silence: Duration,
        limit_bps: Option<u64>,
        law: &str,
    ) -> io::Result<SendEnd> {
        for connection in &connections {
            connection.prefer_law(law);
        }
        let end = SendEnd {
            connections,
            queue: Queue::default(),
            silence,
            limit_bps,
            closed_by_peer: None,
            given_up: 0,
            given_up_figures: SenderFigures::default(),
            waits: Waits::default(),
            undivided_ns: 0,
            chronograph: Chronograph::default(),
        };
        end.share_limit()?;
        Ok(end)
    }

    fn share_limit(&self) -> io::Result<()> {
        let Some(limit_bps) = self.limit_bps else {
            return Ok(());
        };
        // The kernel takes 0 for no limit.
        let bytes_per_s = (limit_bps / 8 / self.connections.len() as u64).max(1);
        let mut connections = self.connections.iter();
        connections.try_for_each(|connection| connection.limit(bytes_per_s))
    }

    /// This is to be sent, after what was given before.
    pub fn send(&mut self, extent: Extent) {
        self.queue.push(extent);
    }

    /// Bytes that were given and have not left.
    pub fn unsent_bytes(&self) -> u64 {
        self.queue.bytes()
    }

    /// The lowest byte of what was given that may not have arrived: its object, and where in it; `None`: all has.
    pub fn lowest(&self) -> Option<(u32, u64)> {
        let of_connections = self.connections.iter().filter_map(Connection::lowest);
        of_connections.chain(self.queue.lowest()).min()
    }

    /// All that was given has arrived.
    pub fn is_done(&self) -> bool {
        self.lowest().is_none()
    }

    /// Connections that ended, or were silent, while others went on: these have done their work, too.
    pub fn given_up(&self) -> usize {
        self.given_up
    }

    /// Tells the receiver that this is the end.
    ///
    /// # Errors
    /// The connection cannot go on.
    pub fn close(&mut self, code: CloseCode) -> Result<(), StepError> {
        for connection in &mut self.connections {
            connection.seal(|sealer, records| sealer.close(code, records).map(|()| true))?;
            connection.write()?;
        }
        Ok(())
    }

    /// When something that verifies came last, or the program said that the other end lives; until then, when this end began.
    pub fn heard(&self) -> Instant {
        newest(&self.connections)
    }

    /// The program knows by another way that the other end lives, which waits for a disk perhaps: it is not silent.
    pub fn peer_is_alive(&mut self) {
        let connections = self.connections.iter_mut();
        connections.for_each(Connection::peer_is_alive);
    }

    /// How the kernel's TCP stands: segments of all connections, and the longest round-trip time.
    pub fn figures(&self) -> SenderFigures {
        let connections = self.connections.iter();
        connections.fold(self.given_up_figures, |sum, connection| SenderFigures {
            srtt_us: sum.srtt_us.max(connection.rtt().as_micros() as u32),
            ..counts(sum, connection)
        })
    }

    /// Takes hellos, gives the kernel what it has room for, and waits for at most `wait` when neither was there to do.
    ///
    /// # Errors
    /// The carrier cannot go on.
    pub fn step(&mut self, source: &mut impl Source, most: Duration) -> Result<(), StepError> {
        let begun = Instant::now();
        let mut has_moved = self.receive()?;
        let SendEnd {
            connections, queue, ..
        } = self;
        let (has_left, ended) = each(connections, |connection| fill(connection, queue, source))?;
        self.give_up(ended)?;
        has_moved |= has_left;
        if begun.elapsed() >= LATE {
            self.peer_is_alive(); // it may have spoken while the source stood
        }
        if let Some(code) = self.closed_by_peer {
            return Err(StepError::Closed(code));
        }
        self.judge_silence()?;
        if !has_moved {
            self.wait(most)?;
        }
        Ok(())
    }

    fn wait(&mut self, most: Duration) -> io::Result<()> {
        let begun = Instant::now();
        let has_data = !self.connections.iter().all(Connection::is_idle);
        wait(&self.connections, most, true)?;
        let waited_ns = begun.elapsed().as_nanos() as u64;
        match has_data {
            true => self.undivided_ns += waited_ns,
            false => self.waits.data_ns += waited_ns,
        }
        Ok(())
    }

    /// For how long steps waited, and for what, since this was asked last. It asks the kernel of each connection: some times a
    /// second are enough.
    pub fn take_waits(&mut self) -> Waits {
        let connections = self.connections.iter().map(Connection::chronograph);
        let now = connections.fold(Chronograph::default(), Chronograph::with);
        let passed = now.since(std::mem::replace(&mut self.chronograph, now));
        let waited_ns = std::mem::take(&mut self.undivided_ns);
        let is_at_limit = self.is_at_limit();
        self.waits.divide(waited_ns, passed, is_at_limit);
        std::mem::take(&mut self.waits)
    }

    /// Of that, for how long all that was given had left, nanoseconds: it is not given again.
    pub fn take_data_ns(&mut self) -> u64 {
        std::mem::take(&mut self.waits.data_ns)
    }

    /// The kernel paces as the limit says.
    fn is_at_limit(&self) -> bool {
        let is_at = |connection: &Connection| {
            let figures = connection.figures();
            figures.is_some_and(|figures| figures.is_paced_to_limit)
        };
        self.limit_bps.is_some() && self.connections.iter().any(is_at)
    }

    fn receive(&mut self) -> Result<bool, StepError> {
        let (mut has_heard, mut closed) = (false, None);
        let (_, ended) = each(&mut self.connections, |connection| {
            if !connection.read()? {
                return Ok(false);
            }
            connection.open(|record| {
                has_heard = true;
                if let Record::Close(code) = record {
                    closed = Some(code);
                }
            })?;
            Ok(true)
        })?;
        self.closed_by_peer = self.closed_by_peer.or(closed);
        self.give_up(ended)?;
        Ok(has_heard)
    }

    /// Of several one may be silent alone, where something between forgot it.
    fn judge_silence(&mut self) -> Result<(), StepError> {
        let connections = self.connections.iter().map(|connection| {
            Some(Quiet {
                silent_for: connection.silent_for(),
                was_heard: true, // or there was no connection
            })
        });
        if let Some(place) = silent_beside(self.silence, connections) {
            let silent = self.connections.swap_remove(place);
            return self.give_up(vec![silent]);
        }
        let is_over = self.heard().elapsed() >= self.silence;
        let connection = self.connections.first().filter(|_| is_over);
        connection.map_or(Ok(()), |connection| {
            Err(StepError::SilentConnection {
                peer: connection.peer(),
                silence_s: self.silence.as_secs(),
            })
        })
    }

    /// What these had is the others'; so is their share of the limit.
    fn give_up(&mut self, connections: Vec<Connection>) -> Result<(), StepError> {
        if connections.is_empty() {
            return Ok(());
        }
        for connection in connections {
            self.given_up += 1;
            self.given_up_figures = counts(self.given_up_figures, &connection);
            let rest = connection.into_rest();
            rest.for_each(|extent| self.queue.push(extent));
        }
        Ok(self.share_limit()?)
    }
}

/// With what this connection has sent.
fn counts(sum: SenderFigures, connection: &Connection) -> SenderFigures {
    let Some(figures) = connection.figures() else {
        return sum;
    };
    SenderFigures {
        sent_pkts: sum.sent_pkts + figures.sent_pkts,
        retransmits: sum.retransmits + figures.retransmits,
        ..sum
    }
}

/// Says whether anything left.
fn fill(
    connection: &mut Connection,
    queue: &mut Queue,
    source: &mut impl Source,
) -> Result<bool, StepError> {
    let mut has_left = false;
    for _ in 0..MOST_BATCHES {
        while connection.outbox_bytes() < BATCH_BYTES
            && connection.seal(|sealer, records| {
                sealer.data(queue, records, |run, into| source.read(run, into))
            })?
        {}
        if connection.is_idle() || !connection.write()? {
            break;
        }
        has_left = true;
        if !connection.is_idle() {
            break; // the kernel is full
        }
    }
    Ok(has_left)
}
