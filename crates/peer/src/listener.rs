// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits for connections and for signals.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::io::{self, ErrorKind, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

/// Where the host has no more files to open, it may have some a little later.
const AFTER_ERROR: Duration = Duration::from_millis(100);

/// Takes connections, in the order in which they come.
pub struct Listener {
    socket: TcpListener,
    /// Each is readable once one of its signals has come.
    signals: Vec<UnixStream>,
}

/// What there is to do.
pub enum Came {
    /// Somebody has connected, from an address that is of IPv4 where people know it so.
    Connection(TcpStream, SocketAddr),
    /// A signal of the list at this place.
    Signal(usize),
}

impl Listener {
    /// From here on signals of `lists` no longer end the process.
    ///
    /// # Errors
    /// The kernel's.
    pub fn new(socket: TcpListener, lists: &[&[i32]]) -> io::Result<Listener> {
        socket.set_nonblocking(true)?;
        let signals = lists.iter().map(|list| signal(list));
        let signals = signals.collect::<io::Result<_>>()?;
        Ok(Listener { socket, signals })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The kernel's.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Waits for what comes next; of all, a signal is the first.
    ///
    /// # Errors
    /// The kernel's.
    pub fn next(&self) -> io::Result<Came> {
        loop {
            if let Some(place) = self.wait()? {
                return Ok(Came::Signal(place));
            }
            match self.socket.accept() {
                Ok((socket, from)) => {
                    let from = SocketAddr::new(from.ip().to_canonical(), from.port());
                    return Ok(Came::Connection(socket, from));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => thread::sleep(AFTER_ERROR),
            }
        }
    }

    fn wait(&self) -> io::Result<Option<usize>> {
        let signals = self.signals.iter();
        let signals = signals.map(|signal| PollFd::new(signal, PollFlags::IN));
        let mut polled: Vec<PollFd<'_>> = signals.collect();
        polled.push(PollFd::new(&self.socket, PollFlags::IN));
        match poll(&mut polled, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let came = |place: &usize| !polled[*place].revents().is_empty();
        let place = (0..self.signals.len()).find(came);
        if let Some(mut signal) = place.map(|place| &self.signals[place]) {
            let _ = signal.read(&mut [0; 64]); // however many there were
        }
        Ok(place)
    }
}

fn signal(list: &[i32]) -> io::Result<UnixStream> {
    let (read, write) = UnixStream::pair()?;
    read.set_nonblocking(true)?;
    for signal in list {
        signal_hook::low_level::pipe::register(*signal, write.try_clone()?)?;
    }
    Ok(read)
}
