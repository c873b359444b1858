// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end that writes the data.

use super::connection::{Connection, each, newest, wait};
use super::{HELLO_EVERY, HELLO_RECORDS};
use crate::{Sink, StepError};
use fatpath_transport::Record;
use std::time::{Duration, Instant};

/// While so much waits in memory to be written, or less where that was asked for, nothing more is read: the connections fill, and
/// the sender waits.
const MOST_HELD_BYTES: u64 = 32 << 20;

/// The receiving end over connections.
pub struct RecvEnd {
    connections: Vec<Connection>,
    most_held_bytes: u64,
    hello_at: Instant,
    waited_ns: u64,
}

impl RecvEnd {
    /// Over `connections`.
    pub fn new(connections: Vec<Connection>) -> RecvEnd {
        RecvEnd {
            connections,
            most_held_bytes: MOST_HELD_BYTES,
            hello_at: Instant::now(),
            waited_ns: 0,
        }
    }

    /// No more than this is to wait in memory to be written, beside what arrives at once.
    pub fn holding(mut self, most_bytes: u64) -> RecvEnd {
        self.most_held_bytes = most_bytes.clamp(1, MOST_HELD_BYTES);
        self
    }

    /// What may wait in memory, bytes, beside what arrives at once.
    pub fn most_held_bytes(&self) -> u64 {
        self.most_held_bytes
    }

    /// For how long steps waited for something to arrive, or for room at the sink, since this was asked last, nanoseconds.
    pub fn take_waited_ns(&mut self) -> u64 {
        std::mem::take(&mut self.waited_ns)
    }

    /// When something that verifies came last, or the program said that the other end lives; until then, when this end began.
    pub fn heard(&self) -> Instant {
        newest(&self.connections)
    }

    /// Takes what arrived, gives it to `sink`, and waits for at most `wait` when nothing had arrived. While the sink stands,
    /// or holds much, the connections fill, and the sender waits.
    ///
    /// # Errors
    /// The carrier cannot go on.
    pub fn step(&mut self, sink: &mut impl Sink, most: Duration) -> Result<(), StepError> {
        let has_room = sink.held_bytes(0) < self.most_held_bytes;
        let has_arrived = has_room && self.receive(sink)?;
        self.greet()?;
        if !has_arrived {
            let hello = self.hello_at.saturating_duration_since(Instant::now());
            let begun = Instant::now();
            wait(&self.connections, most.min(hello), has_room)?;
            self.waited_ns += begun.elapsed().as_nanos() as u64;
        }
        Ok(())
    }

    /// Says whether anything had arrived.
    fn receive(&mut self, sink: &mut impl Sink) -> Result<bool, StepError> {
        let (has_arrived, _) = each(&mut self.connections, |connection| {
            if !connection.read()? {
                return Ok(false);
            }
            let mut writes = vec![];
            connection.open(|record| {
                if let Record::Data(data) = record {
                    writes.extend(data);
                }
            })?;
            if !writes.is_empty() {
                sink.write(0, &writes);
            }
            Ok(true)
        })?;
        Ok(has_arrived)
    }

    /// Each connection says that it lives, what has arrived, and by which key it was told so last; no more where that is not
    /// read.
    fn greet(&mut self) -> Result<(), StepError> {
        let is_due = self.hello_at <= Instant::now();
        if is_due {
            self.hello_at = Instant::now() + HELLO_EVERY;
        }
        each(&mut self.connections, |connection| {
            let is_due = is_due || connection.untold() >= HELLO_RECORDS;
            if is_due && connection.is_idle() {
                connection.greet()?;
            }
            Ok(!connection.is_idle() && connection.write()?)
        })?;
        Ok(())
    }
}
