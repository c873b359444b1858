// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which network namespace this is: its inode, which another gets when it is gone, and its cookie, which
//! none gets again.
#![allow(unsafe_code)] // a socket option that neither std nor rustix has

use crate::KernelError;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;

/// SO_NETNS_COOKIE of asm-generic/socket.h, Linux 5.14.
const SO_NETNS_COOKIE: libc::c_int = 71;

/// Inode of a network namespace.
pub(crate) fn netns_of(namespace: &File) -> Option<u32> {
    namespace.metadata().ok().map(|meta| meta.ino() as u32)
}

/// Inode of the calling thread's network namespace.
pub(crate) fn netns_here() -> Result<u32, KernelError> {
    let here = std::fs::metadata("/proc/thread-self/ns/net");
    let here = here.map_err(KernelError::io("look at this network namespace"))?;
    Ok(here.ino() as u32)
}

/// Cookie of the calling thread's network namespace.
pub(crate) fn cookie_here() -> Result<u64, KernelError> {
    let failed = || KernelError::io("ask for this network namespace's cookie");
    let socket = UnixDatagram::unbound().map_err(failed())?;
    let (mut cookie, mut bytes) = (0u64, size_of::<u64>() as libc::socklen_t);
    // SAFETY: an open socket, and a buffer of as many bytes as said.
    let result = unsafe {
        let cookie = (&raw mut cookie).cast();
        let (level, option) = (libc::SOL_SOCKET, SO_NETNS_COOKIE);
        libc::getsockopt(socket.as_raw_fd(), level, option, cookie, &mut bytes)
    };
    match result {
        0 => Ok(cookie),
        _ => Err(failed()(io::Error::last_os_error())),
    }
}
