// SPDX-License-Identifier: MIT OR Apache-2.0
//! A connection whose both ends one thread serves, so that on one processor all that it costs falls
//! into the thread's time: sending, receiving, the ACKs, however the kernel books softirqs.

use anyhow::{Context, Result};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const CHUNK_BYTES: usize = 1 << 16;

/// A connection, both of its ends.
pub struct Transfer {
    /// Where its data enters.
    pub sender: TcpStream,
    receiver: TcpStream,
    buffer: Vec<u8>,
}

impl Transfer {
    /// Over a connection that exists.
    pub fn new(sender: TcpStream, receiver: TcpStream) -> Result<Transfer> {
        sender.set_nonblocking(true)?;
        receiver.set_nonblocking(true)?;
        Ok(Transfer {
            sender,
            receiver,
            buffer: vec![0; CHUNK_BYTES],
        })
    }

    /// Keeps the send buffer full for a slice, and the receive buffer empty.
    pub fn bytes_per_s(&mut self, slice: Duration) -> Result<f64> {
        let (start, waited) = (Instant::now(), Waited::now()?);
        let mut bytes = 0;
        while start.elapsed() < slice {
            while moved(self.sender.write(&self.buffer))? > 0 {}
            while let read @ 1.. = moved(self.receiver.read(&mut self.buffer))? {
                bytes += read;
            }
        }
        let took = start.elapsed().saturating_sub(waited.since()?);
        Ok(bytes as f64 / took.as_secs_f64())
    }
}

/// What this thread has waited for a processor: the second field of its schedstat, ns.
pub struct Waited(Duration);

impl Waited {
    /// Up to now.
    pub fn now() -> Result<Waited> {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
        let waited_ns = text.split(' ').nth(1).context("schedstat is too short")?;
        Ok(Waited(Duration::from_nanos(waited_ns.parse()?)))
    }

    /// From then to now.
    pub fn since(&self) -> Result<Duration> {
        Ok(Waited::now()?.0.saturating_sub(self.0))
    }
}

/// None, when the buffer is full or empty.
fn moved(result: std::io::Result<usize>) -> Result<usize> {
    match result {
        Ok(bytes) => Ok(bytes),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
        Err(error) => Err(error).context("a transfer"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn bytes_move_for_a_slice() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut transfer = Transfer::new(sender, listener.accept().unwrap().0).unwrap();
        let slice = Duration::from_millis(40);
        assert!(transfer.bytes_per_s(slice).unwrap() > 0.0);
        assert_eq!(moved(Err(ErrorKind::WouldBlock.into())).unwrap(), 0);
        assert!(moved(Err(ErrorKind::ConnectionReset.into())).is_err());
    }
}
