// SPDX-License-Identifier: MIT OR Apache-2.0
//! Connections whose other end has not proved who it is. There are few at a time; where there would be more, the oldest one of
//! whoever has most of them ends, so that nobody keeps others out by saying nothing.

use std::net::{IpAddr, Ipv6Addr, Shutdown, TcpStream};

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
            let networks: Vec<_> = self
                .connections
                .iter()
                .map(|(_, from, _)| network(*from))
                .collect();
            let (_, _, socket) = self.connections.remove(victim(&networks));
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

/// What one host may have for itself: of IPv6 a /64.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

/// The first of the network that is there most often.
fn victim(networks: &[IpAddr]) -> usize {
    let count = |of: &IpAddr| networks.iter().filter(|network| *network == of).count();
    let most = networks.iter().map(count).max().unwrap_or_default();
    let first = networks.iter().position(|network| count(network) == most);
    first.unwrap_or_default()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests {
    use super::*;

    #[test]
    fn who_has_most_loses_the_oldest() {
        let networks = |texts: &[&str]| -> Vec<IpAddr> {
            texts
                .iter()
                .map(|text| network(text.parse().unwrap()))
                .collect()
        };
        assert_eq!(
            victim(&networks(&["192.0.2.1", "192.0.2.2", "192.0.2.2"])),
            1
        );
        assert_eq!(victim(&networks(&["192.0.2.1", "192.0.2.2"])), 0);
        let of_one = networks(&[
            "192.0.2.1",
            "2001:db8::1",
            "2001:db8::2",
            "::ffff:192.0.2.3",
        ]);
        assert_eq!(victim(&of_one), 1);
    }
}
