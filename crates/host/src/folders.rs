// SPDX-License-Identifier: MIT OR Apache-2.0
//! Folders that the daemon makes, and who may read what it writes: root, and the group `fatpath` where there is one.

use rustix::fs::OFlags;
use rustix::process::geteuid;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, chown, fchown};
use std::path::Path;

/// The id of the group `fatpath`, from wherever this host keeps its groups (nsswitch.conf(5)).
pub fn fatpath_group() -> Option<u32> {
    uzers::get_group_by_name("fatpath").map(|group| group.gid())
}

/// Makes a folder where it is not, 0750 root:fatpath: who may ask the daemon may read what is in it.
///
/// # Errors
/// It cannot be made, or not be given to the group.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    create_folder(folder)?;
    match fatpath_group() {
        Some(group) => chown(folder, None, Some(group)),
        None => Ok(()),
    }
}

/// The same where others may write: a link that somebody left there is refused, and so is a folder of another user.
///
/// # Errors
/// It is refused, cannot be made, or not be given to the group.
pub fn make_own_folder(folder: &Path) -> io::Result<()> {
    create_folder(folder)?;
    let mut options = std::fs::OpenOptions::new();
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let opened = options
        .read(true)
        .custom_flags(flags.bits() as i32)
        .open(folder)?;
    if opened.metadata()?.uid() != geteuid().as_raw() {
        let why = "it belongs to another user";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    match fatpath_group() {
        Some(group) => fchown(&opened, None, Some(group)),
        None => Ok(()),
    }
}

fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o750).create(folder)
}
