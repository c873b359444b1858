// SPDX-License-Identifier: MIT OR Apache-2.0
//! Connections over loopback, one after the other, as fast as one thread can.

use anyhow::{Context, Result};
use rustix::net::sockopt::set_socket_linger;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// The clock is read once in so many connections.
const BATCH: u32 = 64;

/// What a loop did.
#[derive(Clone, Copy, Debug)]
pub struct Connections {
    /// Connections opened, accepted and closed.
    pub count: u64,
    /// Of these, in a second.
    pub per_s: f64,
}

/// Opens, accepts and closes connections for about `wanted`.
///
/// One thread does both ends, so neither the scheduler nor a second processor is in the
/// figure. The opener closes first and with a reset (SO_LINGER of 0): a FIN would leave a
/// port in TIME_WAIT for a minute, and one second of this loop uses up all 28,000. A reset
/// is also the cheapest end, so that our share of a connection shows at its largest.
pub fn connect_for(wanted: Duration) -> Result<Connections> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let start = Instant::now();
    let mut count = 0;
    while start.elapsed() < wanted {
        for _ in 0..BATCH {
            connect_once(&listener, address).context("a connection over loopback")?;
        }
        count += u64::from(BATCH);
    }
    Ok(Connections {
        count,
        per_s: count as f64 / start.elapsed().as_secs_f64(),
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
    fn the_rate_is_the_count_over_the_time() {
        let done = connect_for(Duration::from_millis(50)).unwrap();
        assert!(done.count >= u64::from(BATCH));
        let elapsed_s = done.count as f64 / done.per_s;
        assert!((0.05..5.0).contains(&elapsed_s), "{done:?}");
    }
}
