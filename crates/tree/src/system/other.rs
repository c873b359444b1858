// SPDX-License-Identifier: MIT OR Apache-2.0
//! Other systems of POSIX: what Linux has calls for is done in steps that are as safe, or not at all.

use super::Within;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, fsync, openat, statat};
use rustix::io::{Errno, Result};
use std::os::fd::{AsFd, OwnedFd};

/// Opens a place that is to be neither read nor written to, as well as that can be done: it is a file or folder that the user
/// may read. By [`open_below`] and [`open_place`], which open nothing else: to open a device may do something, and of a FIFO
/// lets its writer go on.
pub const PLACE: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY);

/// Opens what is below `folder`, by no link: folder by folder. No path goes up (`..`), nor through a folder that the user may
/// search and not read.
///
/// # Errors
/// The kernel's: ELOOP where a link is in the way, EXDEV where the path leads out. EOPNOTSUPP: a [`PLACE`] that is neither file
/// nor folder.
pub fn open_below(folder: &OwnedFd, path: &[u8], flags: OFlags, within: Within) -> Result<OwnedFd> {
    if path.starts_with(b"/") {
        return Err(Errno::XDEV);
    }
    let says_something = |name: &&[u8]| !matches!(*name, b"" | b".");
    let mut names = path.split(|byte| *byte == b'/').filter(says_something);
    let is_folder = path.ends_with(b"/") || path.ends_with(b"/.");
    let flags = match is_folder {
        true => flags | OFlags::DIRECTORY,
        false => flags,
    };
    let last = names.next_back();
    let mut above = None;
    for name in names {
        above = Some(step(
            above.as_ref().unwrap_or(folder),
            name,
            PLACE | OFlags::DIRECTORY,
        )?);
    }
    let last = last.unwrap_or(if path.is_empty() { b"" } else { b"." });
    let opened = step(above.as_ref().unwrap_or(folder), last, flags)?;
    let is_elsewhere = || Ok(fstat(&opened)?.st_dev != fstat(folder)?.st_dev);
    match within == Within::FileSystem && is_elsewhere()? {
        true => Err(Errno::XDEV),
        false => Ok(opened),
    }
}

/// The place of this name in `folder`.
///
/// # Errors
/// As [`open_below`].
pub fn open_place(folder: &OwnedFd, name: &[u8]) -> Result<OwnedFd> {
    step(folder, name, PLACE)
}

/// To one name further.
fn step(folder: &OwnedFd, name: &[u8], flags: OFlags) -> Result<OwnedFd> {
    if name == b".." {
        return Err(Errno::XDEV);
    }
    let is_place = flags.contains(PLACE) && !flags.contains(OFlags::DIRECTORY);
    let look = || statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
    if is_place {
        check_place(&look()?)?;
    }
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = openat(folder, name, flags, Mode::empty());
    // What a link is refused with differs: ELOOP, EMLINK, and of a folder ENOTDIR.
    let opened = opened.map_err(|error| match look().is_ok_and(|there| is_link(&there)) {
        true => Errno::LOOP,
        false => error,
    })?;
    if is_place {
        // It may have been put there meanwhile.
        check_place(&fstat(&opened)?)?;
    }
    Ok(opened)
}

fn is_link(there: &Stat) -> bool {
    FileType::from_raw_mode(there.st_mode) == FileType::Symlink
}

fn check_place(there: &Stat) -> Result<()> {
    match FileType::from_raw_mode(there.st_mode) {
        FileType::RegularFile | FileType::Directory => Ok(()),
        FileType::Symlink => Err(Errno::LOOP),
        _ => Err(Errno::OPNOTSUPP),
    }
}

/// What was written to the file is on the disk: of Apple's systems not in the disk's own memory alone, which fsync(2) does not
/// promise there.
///
/// # Errors
/// The kernel's.
pub fn sync(file: impl AsFd) -> Result<()> {
    #[cfg(target_vendor = "apple")]
    match rustix::fs::fcntl_fullfsync(&file) {
        // The file system or the device has no such thing, or (EBADF) this is a pipe.
        Err(
            Errno::NOTSUP
            | Errno::OPNOTSUPP
            | Errno::INVAL
            | Errno::NOTTY
            | Errno::NODEV
            | Errno::BADF,
        ) => {}
        done => return done,
    }
    fsync(file)
}

/// The same.
///
/// # Errors
/// The kernel's.
pub fn sync_data(file: impl AsFd) -> Result<()> {
    sync(file)
}

/// No holes are made: zeros stand in their place.
///
/// # Errors
/// EOPNOTSUPP.
pub fn punch(_file: impl AsFd, _from: u64, _bytes: u64) -> Result<()> {
    Err(Errno::OPNOTSUPP)
}

/// Gives an open file this mode.
///
/// # Errors
/// The kernel's.
pub fn change_mode(file: &impl AsFd, mode: Mode) -> Result<()> {
    rustix::fs::fchmod(file, mode)
}

/// Extended attributes and ACLs are other ones there, and are not moved.
///
/// # Errors
/// ENOSYS.
pub fn attribute_names(_file: &impl AsFd, _into: &mut [u8]) -> Result<usize> {
    Err(Errno::NOSYS)
}

/// As [`attribute_names`].
///
/// # Errors
/// ENOSYS.
pub fn attribute(_file: &impl AsFd, _name: &[u8], _into: &mut [u8]) -> Result<Option<usize>> {
    Err(Errno::NOSYS)
}

/// As [`attribute_names`].
///
/// # Errors
/// ENOSYS.
pub fn set_attribute(_file: &impl AsFd, _name: &[u8], _value: &[u8]) -> Result<()> {
    Err(Errno::NOSYS)
}

/// As [`attribute_names`].
///
/// # Errors
/// ENOSYS.
pub fn remove_attribute(_file: &impl AsFd, _name: &[u8]) -> Result<()> {
    Err(Errno::NOSYS)
}
