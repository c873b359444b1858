// SPDX-License-Identifier: MIT OR Apache-2.0
//! The archive's folder: 0750 root:fatpath, for who may ask the daemon may read its archive. The databases in it are
//! open to whoever may enter it.

use crate::access::fatpath_group;
use std::io;
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::Path;

/// Makes it where it is not.
pub(super) fn make(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o750).create(folder)?;
    match fatpath_group() {
        Some(group) => chown(folder, None, Some(group)),
        None => Ok(()),
    }
}
