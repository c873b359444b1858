// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of unfinished transfers: this user's alone, and one transfer's at a time.

use crate::names::shown;
use crate::system::{change_mode, open_place};
use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, Stat, flock, fstat, openat, statat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

/// Opens a file of an unfinished transfer, or begins it. The folder may be one that others write to: what is theirs, or has
/// a second name that they may have given it, is not written to.
///
/// # Errors
/// The kernel's, or it is not this user's alone.
pub fn open(folder: &OwnedFd, name: &[u8], more: OFlags) -> io::Result<OwnedFd> {
    let ours = Mode::RUSR | Mode::WUSR;
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | more;
    let opened = |more: OFlags| openat(folder, name, flags | more, ours);
    let file = match opened(OFlags::CREATE | OFlags::EXCL) {
        Err(Errno::EXIST) => opened(OFlags::empty()).or_else(|error| match error {
            // It had its last mode already when its transfer was killed.
            Errno::ACCESS => {
                make_writable(folder, name, ours).and_then(|()| opened(OFlags::empty()))
            }
            error => Err(error),
        })?,
        file => file?,
    };
    match is_own(&fstat(&file)?) {
        true => Ok(file),
        false => Err(not_own(name)),
    }
}

fn is_own(there: &Stat) -> bool {
    FileType::from_raw_mode(there.st_mode) == FileType::RegularFile
        && there.st_uid == geteuid().as_raw()
        && there.st_nlink == 1
}

fn not_own(name: &[u8]) -> io::Error {
    io::Error::other(format!(
        "{} in its folder is not this user's alone, and in the way: remove it",
        shown(name)
    ))
}

/// Not by its name: that may be somebody's link by now.
fn make_writable(folder: &OwnedFd, name: &[u8], mode: Mode) -> rustix::io::Result<()> {
    let file = open_place(folder, name)?;
    match is_own(&fstat(&file)?) {
        true => change_mode(&file, mode),
        false => Err(Errno::ACCESS),
    }
}

/// One transfer writes a part. Another one that had it may have given it its name, or removed it, between its opening here
/// and the lock.
///
/// # Errors
/// The kernel's, or another transfer has it.
pub fn lock(file: &File, folder: &OwnedFd, name: &[u8]) -> io::Result<()> {
    let other =
        || io::Error::other("another transfer is writing it: try again when that has ended");
    flock(file, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
        Errno::WOULDBLOCK => other(),
        error => error.into(),
    })?;
    let (locked, named) = (
        fstat(file)?,
        statat(folder, name, AtFlags::SYMLINK_NOFOLLOW),
    );
    match named {
        Ok(named) if (named.st_dev, named.st_ino) == (locked.st_dev, locked.st_ino) => Ok(()),
        Ok(_) | Err(Errno::NOENT) => Err(other()),
        Err(error) => Err(error.into()),
    }
}
