// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines of text over a connection, each within a time and no longer than said, and a secret that both ends have.

use crate::Peer;
use crate::connection::{unless_blocked, wait};
use rustix::event::PollFlags;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

impl Peer {
    /// The connection's socket, for its addresses and to wait for.
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// A secret of this connection, which the other end has too (RFC 8446, 7.5).
    ///
    /// # Errors
    /// None on a connection whose ends know each other.
    pub fn secret(&self, label: &[u8]) -> io::Result<[u8; 32]> {
        let secret = self.tls.export_keying_material([0; 32], label, None);
        secret.map_err(io::Error::other)
    }

    /// Says a line.
    ///
    /// # Errors
    /// The connection broke, or the other end did not take it in time.
    pub fn say_line(&mut self, line: &str, within: Duration) -> io::Result<()> {
        let end = Instant::now() + within;
        self.tls.writer().write_all(line.as_bytes())?;
        self.tls.writer().write_all(b"\n")?;
        while self.tls.wants_write() {
            self.wait(PollFlags::OUT, end)?;
            unless_blocked(self.tls.write_tls(&mut self.socket))?;
        }
        Ok(())
    }

    /// The next line that the other end says, of `most` bytes at most.
    ///
    /// # Errors
    /// The connection broke or ended, the line is longer, is no text, or did not come in time.
    pub fn hear_line(&mut self, most: usize, within: Duration) -> io::Result<String> {
        let end = Instant::now() + within;
        let mut line = vec![];
        loop {
            let mut byte = [0];
            match self.tls.reader().read(&mut byte) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) if byte == *b"\n" => break,
                Ok(_) if line.len() >= most => return Err(wrong("a line is too long")),
                Ok(_) => line.push(byte[0]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.read_more(end)?,
                Err(error) => return Err(error),
            }
        }
        String::from_utf8(line).map_err(|_| wrong("a line is no text"))
    }

    fn read_more(&mut self, end: Instant) -> io::Result<()> {
        self.wait(PollFlags::IN, end)?;
        if unless_blocked(self.tls.read_tls(&mut self.socket))? == Some(0) {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let read = self.tls.process_new_packets();
        read.map(|_| ()).map_err(|error| wrong(error.to_string()))
    }

    fn wait(&self, events: PollFlags, end: Instant) -> io::Result<()> {
        let came = wait(&self.socket, events, end)?;
        came.map(|_| ()).ok_or_else(|| ErrorKind::TimedOut.into())
    }
}

fn wrong(what: impl Into<String>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what.into())
}
