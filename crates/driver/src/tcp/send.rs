// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end that has the data.

use super::connection::{Connection, newest, wait};
use crate::{LATE_NS, Source, StepError};
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
    closed_by_peer: Option<CloseCode>,
}

impl SendEnd {
    /// Over `connections`, one at least, which share `limit_bps`. One that is not heard for `silence` ends all. `law`:
    /// congestion control, where the kernel has it and lets this user choose.
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
            if let Some(limit_bps) = limit_bps {
                // The kernel takes 0 for no limit.
                connection.limit((limit_bps / 8 / connections.len() as u64).max(1))?;
            }
        }
        Ok(SendEnd {
            connections,
            queue: Queue::default(),
            silence,
            closed_by_peer: None,
        })
    }

    /// This is to be sent, after what was given before.
    pub fn send(&mut self, extent: Extent) {
        self.queue.push(extent);
    }

    /// Bytes that were given and have not left.
    pub fn unsent_bytes(&self) -> u64 {
        self.queue.bytes()
    }

    /// The lowest byte of what was given that will be read again: what a connection has is never lost.
    pub fn lowest(&self) -> Option<(u32, u64)> {
        self.queue.lowest()
    }

    /// All that was given has left.
    pub fn is_done(&self) -> bool {
        self.queue.is_empty() && self.connections.iter().all(Connection::is_idle)
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
        let infos = self.connections.iter().filter_map(Connection::info);
        infos.fold(SenderFigures::default(), |sum, info| SenderFigures {
            srtt_us: sum.srtt_us.max(info.tcpi_rtt),
            sent_pkts: sum.sent_pkts + u64::from(info.tcpi_segs_out),
            retransmits: sum.retransmits + u64::from(info.tcpi_total_retrans),
            ..sum
        })
    }

    /// Takes hellos, gives the kernel what it has room for, and waits for at most `wait` when neither was there to do.
    ///
    /// # Errors
    /// The carrier cannot go on.
    pub fn step(&mut self, source: &mut impl Source, most: Duration) -> Result<(), StepError> {
        let begun = Instant::now();
        let mut has_moved = self.receive()?;
        for connection in &mut self.connections {
            has_moved |= fill(connection, &mut self.queue, source)?;
        }
        if begun.elapsed() >= Duration::from_nanos(LATE_NS) {
            self.peer_is_alive(); // it may have spoken while the source stood
        }
        if let Some(code) = self.closed_by_peer {
            return Err(StepError::Closed(code));
        }
        // Of several one may be silent alone, where something between forgot it.
        let mut connections = self.connections.iter();
        if let Some(silent) = connections.find(|one| one.heard().elapsed() >= self.silence) {
            return Err(StepError::SilentConnection {
                peer: silent.peer(),
                silence_s: self.silence.as_secs(),
            });
        }
        if !has_moved {
            wait(&self.connections, most, true)?;
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<bool, StepError> {
        let (mut has_heard, mut closed) = (false, None);
        for connection in &mut self.connections {
            if !connection.read()? {
                continue;
            }
            connection.open(|record| {
                has_heard = true;
                if let Record::Close(code) = record {
                    closed = Some(code);
                }
            })?;
        }
        self.closed_by_peer = self.closed_by_peer.or(closed);
        Ok(has_heard)
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
