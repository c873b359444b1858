// SPDX-License-Identifier: MIT OR Apache-2.0
//! How to end a running forwarder from another thread or a signal handler.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

/// Stops a forwarder, now or as soon as it starts. Clones stop the same one, for good.
#[derive(Clone, Debug)]
pub struct StopHandle(Arc<OwnedFd>);

impl StopHandle {
    /// A handle that has not been used. Fails only when the process is out of file descriptors.
    pub fn new() -> io::Result<StopHandle> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(StopHandle(Arc::new(eventfd(0, flags)?)))
    }

    /// Stops. One `write`, so it is safe in a signal handler.
    pub fn stop(&self) {
        // Fails only when the counter is full, and then it has been stopped long since.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}

impl AsFd for StopHandle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for StopHandle {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
