// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux.

use super::Within;
use rustix::fs::{
    FallocateFlags, Mode, OFlags, ResolveFlags, XattrFlags, chmod, fallocate, fdatasync, fsync,
    getxattr, listxattr, openat, openat2, removexattr, setxattr,
};
use rustix::io::{Errno, Result};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// Opens a place: what is there is neither read nor written to, and a symbolic link is a place, too.
pub const PLACE: OFlags = OFlags::PATH;

/// Opens what is below `folder`, by no link.
///
/// # Errors
/// The kernel's: ELOOP where a link is in the way, EXDEV where the path leads out.
pub fn open_below(folder: &OwnedFd, path: &[u8], flags: OFlags, within: Within) -> Result<OwnedFd> {
    let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    resolve.set(ResolveFlags::NO_XDEV, within == Within::FileSystem);
    openat2(
        folder,
        path,
        flags | OFlags::CLOEXEC,
        Mode::empty(),
        resolve,
    )
}

/// The place of this name in `folder`, which may be a symbolic link.
///
/// # Errors
/// The kernel's.
pub fn open_place(folder: &OwnedFd, name: &[u8]) -> Result<OwnedFd> {
    let flags = PLACE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(folder, name, flags, Mode::empty())
}

/// What was written to the file is on the disk.
///
/// # Errors
/// The kernel's.
pub fn sync(file: impl AsFd) -> Result<()> {
    fsync(file)
}

/// The same, but for times and the like.
///
/// # Errors
/// The kernel's.
pub fn sync_data(file: impl AsFd) -> Result<()> {
    fdatasync(file)
}

/// Bytes of the file become a hole. It stays as long as it is.
///
/// # Errors
/// The kernel's: EOPNOTSUPP where the file system has no holes.
pub fn punch(file: impl AsFd, from: u64, bytes: u64) -> Result<()> {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(file, flags, from, bytes)
}

/// Gives an open file this mode, which may be open as a [`PLACE`].
///
/// # Errors
/// The kernel's.
pub fn change_mode(file: &impl AsFd, mode: Mode) -> Result<()> {
    chmod(path_of(file), mode)
}

/// The names of all extended attributes, each with a NUL after it; gives their length.
///
/// # Errors
/// The kernel's: EOPNOTSUPP where the file system has none.
pub fn attribute_names(file: &impl AsFd, into: &mut [u8]) -> Result<usize> {
    listxattr(path_of(file), into)
}

/// The value of an extended attribute; gives its length. `None`: it has gone.
///
/// # Errors
/// The kernel's.
pub fn attribute(file: &impl AsFd, name: &[u8], into: &mut [u8]) -> Result<Option<usize>> {
    match getxattr(path_of(file), name, into) {
        Err(Errno::NODATA) => Ok(None),
        read => read.map(Some),
    }
}

/// Sets an extended attribute.
///
/// # Errors
/// The kernel's.
pub fn set_attribute(file: &impl AsFd, name: &[u8], value: &[u8]) -> Result<()> {
    setxattr(path_of(file), name, value, XattrFlags::empty())
}

/// Removes an extended attribute.
///
/// # Errors
/// The kernel's.
pub fn remove_attribute(file: &impl AsFd, name: &[u8]) -> Result<()> {
    removexattr(path_of(file), name)
}

/// It leads to the open file itself, and to nothing that has its name now.
fn path_of(file: &impl AsFd) -> String {
    format!("/proc/self/fd/{}", file.as_fd().as_raw_fd())
}
