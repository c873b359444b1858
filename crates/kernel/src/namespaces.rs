// SPDX-License-Identifier: MIT OR Apache-2.0
//! Network namespaces: which one this is, which there are, and work done within another.
//!
//! A namespace is named by its inode, which another gets when it is gone, and by its cookie, which none gets again.
//! Those that are found have a process or a name that `ip netns` gave; one that only an open descriptor or a socket
//! keeps alive is not found.
#![allow(unsafe_code)] // a socket option that neither std nor rustix has

use crate::KernelError;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::thread::Builder;

/// SO_NETNS_COOKIE of asm-generic/socket.h, Linux 5.14.
const SO_NETNS_COOKIE: libc::c_int = 71;

/// Inode of a network namespace.
pub(crate) fn netns_of(namespace: &File) -> Option<u32> {
    namespace.metadata().ok().map(|meta| meta.ino() as u32)
}

/// Inode of the calling thread's network namespace.
///
/// # Errors
/// When it cannot be read.
pub fn netns_here() -> Result<u32, KernelError> {
    let here = std::fs::metadata("/proc/thread-self/ns/net");
    let here = here.map_err(KernelError::io("read this network namespace's identity"))?;
    Ok(here.ino() as u32)
}

fn is_here(namespace: &File) -> bool {
    netns_here().is_ok_and(|here| netns_of(namespace) == Some(here))
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

/// Does `work` in a network namespace, on a thread of its own; `None` when that cannot enter it: any but the caller's
/// own takes CAP_SYS_ADMIN. A panic of `work` goes on in the caller.
///
/// # Errors
/// When no thread can be started.
pub(crate) fn within<T: Send>(
    namespace: &File,
    work: impl FnOnce() -> T + Send,
) -> Result<Option<T>, KernelError> {
    std::thread::scope(|scope| {
        let enter = || {
            let kind = Some(LinkNameSpaceType::Network);
            let is_in = || move_into_link_name_space(namespace.as_fd(), kind).is_ok();
            (is_here(namespace) || is_in()).then(work)
        };
        let thread = Builder::new().spawn_scoped(scope, enter);
        let thread = thread.map_err(KernelError::io("start a thread for a network namespace"))?;
        Ok(thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

/// One open file for each network namespace that has a process or a name.
pub(crate) fn namespaces() -> Vec<File> {
    let named = children("/run/netns");
    let of_processes = children("/proc").into_iter().map(|p| p.join("ns/net"));
    let mut found: HashMap<u64, File> = HashMap::new();
    for path in named.into_iter().chain(of_processes) {
        let Ok(meta) = std::fs::metadata(&path) else {
            continue;
        };
        if let Some(file) = (!found.contains_key(&meta.ino())).then(|| File::open(&path)) {
            file.ok().map(|file| found.insert(meta.ino(), file));
        }
    }
    found.into_values().collect()
}

fn children(directory: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> File {
        File::open("/proc/thread-self/ns/net").expect("every thread has one")
    }

    #[test]
    fn a_panic_in_another_namespace_is_one_here() {
        let work = || within(&here(), || panic!("no luck"));
        let panic = std::panic::catch_unwind(|| drop(work()));
        if !rustix::process::geteuid().is_root() {
            println!("skipped: not root, who alone may enter a namespace");
            return;
        }
        let payload = panic.expect_err("the panic was swallowed");
        assert_eq!(payload.downcast_ref::<&str>(), Some(&"no luck"));
    }
}
