// SPDX-License-Identifier: MIT OR Apache-2.0
//! Connections whose other end has not proved who it is. There are few at a time; where there would be more, the oldest one of
//! whoever has most of them ends, so that nobody keeps others out by saying nothing.

use crate::strangers::first_of_most;
use std::net::{IpAddr, Shutdown, TcpStream};

/// At a time.
pub const MOST_WAITING: usize = 32;

/// Those that wait, in the order in which they came.
#[derive(Default)]
pub struct Waiting {
    connections: Vec<(u64, IpAddr, TcpStream)>,
    last: u64,
}

impl Waiting {
    /// One more waits; what is given takes it out again.
    pub fn add(&mut self, from: IpAddr, socket: TcpStream) -> u64 {
        if self.connections.len() >= MOST_WAITING {
            let addresses = self.connections.iter().map(|(_, from, _)| *from);
            let place = first_of_most(addresses).unwrap_or_default();
            let (_, _, socket) = self.connections.remove(place);
            let _ = socket.shutdown(Shutdown::Both); // it may be gone
        }
        self.last += 1;
        self.connections.push((self.last, from, socket));
        self.last
    }

    /// Waits no longer.
    pub fn remove(&mut self, number: u64) {
        self.connections
            .retain(|(waiting, _, _)| *waiting != number);
    }
}
