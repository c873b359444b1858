// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is beneath the file layer at the end that has the data: UDP datagrams or TCP connections, which the files do not
//! see. `arrivals.rs` is the other end's.

use anyhow::Result;
use fatpath_driver::{SendFlows, Source, StepError, Waits, tcp};
use fatpath_flow::Log;
use fatpath_tcp::SenderFigures;
use fatpath_transport::{CloseCode, Extent};
use std::time::{Duration, Instant};

/// The end that has the data.
pub enum SendEnd {
    Udp(SendFlows, Option<Box<Logged>>),
    Tcp(tcp::SendEnd),
}

/// What is logged of the flows, as of one.
pub struct Logged {
    log: Log,
    begun: Instant,
}

impl Logged {
    /// From now on.
    pub fn by(log: Log) -> Box<Logged> {
        let begun = Instant::now();
        Box::new(Logged { log, begun })
    }

    fn note(&mut self, figures: &SenderFigures) {
        self.log.note(self.begun.elapsed(), figures);
    }

    /// The files are what was asked for beside the transfer, so that one that fails fails nothing else.
    fn end(self: Box<Self>, figures: &SenderFigures) {
        if let Err(error) = self.log.end(self.begun.elapsed(), figures) {
            eprintln!("fatpath: warning: --log: {error}");
        }
    }
}

impl SendEnd {
    /// Extents leave in the order in which they are given.
    pub fn send(&mut self, extent: Extent) {
        match self {
            SendEnd::Udp(end, _) => end.send(extent),
            SendEnd::Tcp(end) => end.send(extent),
        }
    }

    /// Bytes that were given and have not left.
    pub fn unsent_bytes(&self) -> u64 {
        match self {
            SendEnd::Udp(end, _) => end.unsent_bytes(),
            SendEnd::Tcp(end) => end.unsent_bytes(),
        }
    }

    /// The lowest byte of what was given that may be read again; `None`: nothing will be.
    pub fn lowest(&self) -> Option<(u32, u64)> {
        match self {
            SendEnd::Udp(end, _) => end.lowest(),
            SendEnd::Tcp(end) => end.lowest(),
        }
    }

    /// All that was given has arrived.
    pub fn is_done(&self) -> bool {
        match self {
            SendEnd::Udp(end, _) => end.is_done(),
            SendEnd::Tcp(end) => end.is_done(),
        }
    }

    /// For how long steps waited as all that was given had left, since this was asked last, nanoseconds.
    pub fn take_data_ns(&mut self) -> u64 {
        match self {
            SendEnd::Udp(end, _) => end.take_data_ns(),
            SendEnd::Tcp(end) => end.take_data_ns(),
        }
    }

    /// For how long they waited for what else, since this was asked last.
    pub fn take_waits(&mut self) -> Waits {
        match self {
            SendEnd::Udp(end, _) => end.take_waits(),
            SendEnd::Tcp(end) => end.take_waits(),
        }
    }

    /// When the other end was heard last.
    pub fn heard(&self) -> Instant {
        match self {
            SendEnd::Udp(end, _) => end.heard(),
            SendEnd::Tcp(end) => end.heard(),
        }
    }

    /// The other end lives, as the program knows by another way.
    pub fn peer_is_alive(&mut self) {
        match self {
            SendEnd::Udp(end, _) => end.peer_is_alive(),
            SendEnd::Tcp(end) => end.peer_is_alive(),
        }
    }

    /// Congestion control is back at once, where there was none.
    pub fn be_polite_now(&mut self) {
        match self {
            SendEnd::Udp(end, _) => end.be_polite_now(),
            SendEnd::Tcp(_) => {}
        }
    }

    /// Flows, or connections, that were silent or ended while others went on.
    pub fn given_up(&self) -> usize {
        match self {
            SendEnd::Udp(end, _) => end.given_up(),
            SendEnd::Tcp(end) => end.given_up(),
        }
    }

    /// UDP payload of a full datagram; 0 by TCP.
    pub fn datagram_bytes(&self) -> u16 {
        match self {
            SendEnd::Udp(end, _) => end.datagram_bytes(),
            SendEnd::Tcp(_) => 0,
        }
    }

    pub fn figures(&self) -> SenderFigures {
        match self {
            SendEnd::Udp(end, _) => end.figures(),
            SendEnd::Tcp(end) => end.figures(),
        }
    }

    /// Sends what may leave, and waits for at most `wait` when there is nothing to do.
    ///
    /// # Errors
    /// The carrier cannot go on.
    pub fn step(&mut self, source: &mut impl Source, wait: Duration) -> Result<(), StepError> {
        match self {
            SendEnd::Udp(end, logged) => {
                let stepped = end.step(source, wait);
                if let Some(logged) = logged {
                    logged.note(&end.figures());
                }
                stepped
            }
            SendEnd::Tcp(end) => end.step(source, wait),
        }
    }

    /// Tells the other end that this is the end; one that does not hear it knows by another way.
    pub fn close(&mut self, source: &mut impl Source) {
        let code = CloseCode(0);
        match self {
            SendEnd::Udp(end, logged) => {
                end.close(code);
                let _ = end.step(source, Duration::ZERO);
                if let Some(logged) = logged.take() {
                    logged.end(&end.figures());
                }
            }
            SendEnd::Tcp(end) => drop(end.close(code)),
        }
    }
}
