// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is beneath the file layer at the end that has the data: UDP datagrams or TCP connections, which the files do not
//! see. `arrivals.rs` is the other end's.

use anyhow::Result;
use fatpath_driver::{SendFlows, Source, StepError, tcp};
use fatpath_tcp::SenderFigures;
use fatpath_transport::{CloseCode, Extent};
use std::time::{Duration, Instant};

/// The end that has the data.
pub enum SendEnd {
    Udp(SendFlows),
    Tcp(tcp::SendEnd),
}

impl SendEnd {
    /// Extents leave in the order in which they are given.
    pub fn send(&mut self, extent: Extent) {
        match self {
            SendEnd::Udp(end) => end.send(extent),
            SendEnd::Tcp(end) => end.send(extent),
        }
    }

    /// Bytes that were given and have not left.
    pub fn unsent_bytes(&self) -> u64 {
        match self {
            SendEnd::Udp(end) => end.unsent_bytes(),
            SendEnd::Tcp(end) => end.unsent_bytes(),
        }
    }

    /// The lowest byte of what was given that may be read again; `None`: nothing will be.
    pub fn lowest(&self) -> Option<(u32, u64)> {
        match self {
            SendEnd::Udp(end) => end.lowest(),
            SendEnd::Tcp(end) => end.lowest(),
        }
    }

    /// When the other end was heard last.
    pub fn heard(&self) -> Instant {
        match self {
            SendEnd::Udp(end) => end.heard(),
            SendEnd::Tcp(end) => end.heard(),
        }
    }

    /// The other end lives, as the program knows by another way.
    pub fn peer_is_alive(&mut self) {
        match self {
            SendEnd::Udp(end) => end.peer_is_alive(),
            SendEnd::Tcp(end) => end.peer_is_alive(),
        }
    }

    /// Flows, or connections, that were silent or ended while others went on.
    pub fn given_up(&self) -> usize {
        match self {
            SendEnd::Udp(end) => end.given_up(),
            SendEnd::Tcp(end) => end.given_up(),
        }
    }

    /// UDP payload of a full datagram; 0 by TCP.
    pub fn datagram_bytes(&self) -> u16 {
        match self {
            SendEnd::Udp(end) => end.datagram_bytes(),
            SendEnd::Tcp(_) => 0,
        }
    }

    pub fn figures(&self) -> SenderFigures {
        match self {
            SendEnd::Udp(end) => end.figures(),
            SendEnd::Tcp(end) => end.figures(),
        }
    }

    /// Sends what may leave, and waits for at most `wait` when there is nothing to do.
    ///
    /// # Errors
    /// The carrier cannot go on.
    pub fn step(&mut self, source: &mut impl Source, wait: Duration) -> Result<(), StepError> {
        match self {
            SendEnd::Udp(end) => end.step(source, wait),
            SendEnd::Tcp(end) => end.step(source, wait),
        }
    }

    /// Tells the other end that this is the end; one that does not hear it knows by another way.
    pub fn close(&mut self, source: &mut impl Source) {
        let code = CloseCode(0);
        match self {
            SendEnd::Udp(end) => {
                end.close(code);
                let _ = end.step(source, Duration::ZERO);
            }
            SendEnd::Tcp(end) => drop(end.close(code)),
        }
    }
}
