// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cgroup ids and paths. An id is the inode of the cgroup's directory.

use crate::KernelError;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where cgroup 2 is mounted: alone at /sys/fs/cgroup, or together with version 1.
pub(crate) fn cgroup_root() -> Result<PathBuf, KernelError> {
    let mounted = fatpath_mounts::first_mount_of("cgroup2");
    let mounted = mounted.map_err(KernelError::io("read /proc/mounts"))?;
    mounted.ok_or(KernelError::NoCgroup2)
}

/// The id of a cgroup-2 path such as `/system.slice/gridftp.service`; `None` when there is no such cgroup.
pub fn cgroup_id(path: &str) -> Option<u64> {
    let directory = cgroup_directory(path).ok()?;
    std::fs::metadata(directory).ok().map(|meta| meta.ino())
}

/// The directory of a cgroup-2 path such as `/system.slice`.
///
/// # Errors
/// When no cgroup of version 2 is mounted.
pub fn cgroup_directory(path: &str) -> Result<PathBuf, KernelError> {
    Ok(cgroup_root()?.join(path.trim_start_matches('/')))
}

/// The least `memory.max` of a cgroup-2 path and of those above it, in bytes; `None` without a limit.
pub fn cgroup_memory_max(path: &str) -> Option<u64> {
    let root = cgroup_root().ok()?;
    let directory = cgroup_directory(path).ok()?;
    let groups = directory.ancestors().take_while(|it| it.starts_with(&root));
    let limits = groups.filter_map(|it| std::fs::read_to_string(it.join("memory.max")).ok());
    limits.filter_map(|text| text.trim().parse().ok()).min()
}

/// The path of a cgroup id; `None` when it is gone. Walks the hierarchy: keep the answer.
pub fn cgroup_path(id: u64) -> Option<String> {
    let root = cgroup_root().ok()?;
    let found = find(&root, id)?;
    let path = found.strip_prefix(&root).ok()?;
    Some(format!("/{}", path.display()))
}

fn find(directory: &Path, id: u64) -> Option<std::path::PathBuf> {
    if std::fs::metadata(directory).ok()?.ino() == id {
        return Some(directory.to_path_buf());
    }
    std::fs::read_dir(directory)
        .ok()?
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .find_map(|entry| find(&entry.path(), id))
}
