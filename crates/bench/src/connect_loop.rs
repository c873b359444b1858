// SPDX-License-Identifier: MIT OR Apache-2.0
//! Connections over loopback, one after the other, as fast as one thread can.

use crate::figure::Summary;
use anyhow::{Context, Result};
use rustix::net::sockopt::set_socket_linger;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// The rate is taken slice by slice; what disturbs one of them is not in the figure.
const SLICE: Duration = Duration::from_millis(50);

/// What a loop did.
#[derive(Clone, Copy, Debug)]
pub struct Connections {
    /// Connections opened, accepted and closed.
    pub count: u64,
    /// Of these, in a second: the median of the slices.
    pub per_s: f64,
}

/// Opens, accepts and closes connections for about `wanted`, a slice at least.
///
/// One thread does both ends, so neither the scheduler nor a second processor is in the
/// figure. The opener closes first and with a reset (SO_LINGER of 0): a FIN would leave a
/// port in TIME_WAIT for a minute, and one second of this loop uses up all 28,000. A reset
/// is also the cheapest end, so that our share of a connection shows at its largest.
pub fn connect_for(wanted: Duration) -> Result<Connections> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let start = Instant::now();
    let (mut count, mut rates) = (0, Vec::new());
    while rates.is_empty() || start.elapsed() < wanted {
        let slice = Instant::now();
        let mut connections = 0;
        while slice.elapsed() < SLICE {
            connect_once(&listener, address).context("a connection over loopback")?;
            connections += 1;
        }
        rates.push(connections as f64 / slice.elapsed().as_secs_f64());
        count += connections;
    }
    let per_s = Summary::Median.of(&rates).expect("a slice was measured");
    Ok(Connections { count, per_s })
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
        let start = Instant::now();
        let done = connect_for(SLICE).unwrap();
        assert!(done.count > 0);
        assert!(done.per_s * start.elapsed().as_secs_f64() >= done.count as f64 / 2.0);
    }
}
