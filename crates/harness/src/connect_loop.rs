// SPDX-License-Identifier: MIT OR Apache-2.0
//! Connections over loopback, one after the other, as fast as one thread can.

use crate::run::Run;
use anyhow::{Context, Result};
use rustix::net::sockopt::set_socket_linger;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Long against the clock and the first connection's misses, short against the machine's moods.
const SLICE: Duration = Duration::from_millis(40);

/// Those that are due at a rate are opened together so often.
const BATCH: Duration = Duration::from_millis(5);

/// All connections of one side.
#[derive(Clone, Copy, Debug)]
pub struct Connections {
    /// Connections opened, accepted and closed.
    pub count: u64,
}

/// What one slice did.
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    /// Connections opened, accepted and closed.
    pub connections: u64,
    /// How long it took.
    pub took: Duration,
}

impl Slice {
    /// Connections a second.
    pub fn per_s(&self) -> f64 {
        self.connections as f64 / self.took.as_secs_f64()
    }
}

/// Opens, accepts and closes connections for a slice.
///
/// One thread does both ends, so neither the scheduler nor a second processor is in the
/// figure. The opener closes first and with a reset (SO_LINGER of 0): a FIN would leave a
/// port in TIME_WAIT for a minute, and one second of this loop uses up all 28,000. A reset
/// is also the cheapest end, so that our share of a connection shows at its largest.
pub fn connect_for_a_slice() -> Result<Slice> {
    connect_for_a_slice_to(|_| Ipv4Addr::LOCALHOST)
}

/// The same to the address of loopback that is given for each connection, which are counted from 0.
pub fn connect_for_a_slice_to(peer: impl Fn(u64) -> Ipv4Addr) -> Result<Slice> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let port = listener.local_addr()?.port();
    let connect = |n: u64| {
        let address = (peer(n), port).into();
        connect_once(&listener, address).context("a connection over loopback")
    };
    connect(0)?;
    let start = Instant::now();
    let mut connections = 0;
    while start.elapsed() < SLICE {
        connections += 1;
        connect(connections)?;
    }
    Ok(Slice {
        connections,
        took: start.elapsed(),
    })
}

/// Opens so many connections a second for so long, or as many as it can. Answers how many.
pub fn connect_at_a_rate(run: &Run, per_s: u64, lasts: Duration) -> Result<Slice> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let start = Instant::now();
    let mut connections = 0;
    while start.elapsed() < lasts {
        run.check()?;
        let due = start.elapsed().as_micros() as u64 * per_s / 1_000_000;
        for _ in connections..due {
            connect_once(&listener, address).context("a connection over loopback")?;
        }
        connections = connections.max(due);
        std::thread::sleep(BATCH);
    }
    Ok(Slice {
        connections,
        took: start.elapsed(),
    })
}

fn connect_once(listener: &TcpListener, address: SocketAddr) -> std::io::Result<()> {
    let opener = TcpStream::connect(address)?;
    let (acceptor, _) = listener.accept()?;
    set_socket_linger(&opener, Some(Duration::ZERO))?;
    drop(opener);
    drop(acceptor);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_fits_the_count() {
        let slice = connect_for_a_slice().unwrap();
        assert!(slice.connections > 0 && slice.took >= SLICE);
        let all = slice.per_s() * slice.took.as_secs_f64();
        assert!((all - slice.connections as f64).abs() < 1.0);
    }
}
