// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the kernel half lives: its pins and the cgroup whose flows it tunes.

use crate::KernelError;
use crate::cgroup::cgroup_root;
use std::path::{Path, PathBuf};

/// Where the BPF file system is by convention.
const BPFFS: &str = "/sys/fs/bpf";

/// Magic number of the BPF file system (linux/magic.h, BPF_FS_MAGIC).
const BPF_FS_MAGIC: i64 = 0xcafe4a11;

/// The places of one kernel half.
#[derive(Clone, Debug)]
pub struct Places {
    /// Directory of the pins, on a BPF file system.
    pub pin_dir: PathBuf,
    /// Directory of the cgroup (version 2) whose flows are tuned.
    pub cgroup: PathBuf,
}

/// The inode of the hierarchy's root. The root that a cgroup namespace shows has another.
const ROOT_CGROUP: u64 = 1;

impl Places {
    /// The places given, or by default `/sys/fs/bpf/fatpath` and the root of cgroup 2.
    ///
    /// # Errors
    /// When no cgroup is given and none of version 2 is mounted.
    pub fn new(pin_dir: Option<PathBuf>, cgroup: Option<PathBuf>) -> Result<Places, KernelError> {
        let pin_dir = pin_dir.unwrap_or_else(|| Path::new(BPFFS).join("fatpath"));
        let cgroup = cgroup.map_or_else(cgroup_root, Ok)?;
        Ok(Places { pin_dir, cgroup })
    }

    /// Id of the cgroup; 0 when it is the root, that is all flows.
    pub(crate) fn cgroup_id(&self) -> u64 {
        use std::os::unix::fs::MetadataExt;
        let id = std::fs::metadata(&self.cgroup).map_or(0, |meta| meta.ino());
        if id == ROOT_CGROUP { 0 } else { id }
    }

    /// The same with the pins elsewhere.
    pub(crate) fn at(&self, pin_dir: PathBuf) -> Places {
        Places {
            pin_dir,
            cgroup: self.cgroup.clone(),
        }
    }

    pub(crate) fn pin(&self, name: &str) -> PathBuf {
        self.pin_dir.join(name)
    }
}

/// Whether a BPF file system is at its usual place.
pub fn bpffs_is_mounted() -> bool {
    rustix::fs::statfs(BPFFS).is_ok_and(|fs| fs.f_type == BPF_FS_MAGIC)
}

/// The usual place of the BPF file system.
pub fn bpffs() -> PathBuf {
    BPFFS.into()
}

/// Mounts the BPF file system at its usual place, for root alone.
///
/// # Errors
/// When the mount is refused.
pub fn mount_bpffs() -> Result<(), KernelError> {
    use rustix::mount::{MountFlags, mount};
    mount("bpf", BPFFS, "bpf", MountFlags::empty(), Some(c"mode=0700"))
        .map_err(|_| KernelError::NoBpffs(BPFFS.into()))
}
