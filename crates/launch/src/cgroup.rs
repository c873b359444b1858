// SPDX-License-Identifier: MIT OR Apache-2.0
//! A cgroup below that of this process.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The guard removes it.
pub(crate) struct Cgroup(PathBuf);

impl Cgroup {
    /// `None` where there is no cgroup of version 2, or this process may not make one.
    pub(crate) fn make() -> Option<Cgroup> {
        static RUNS: AtomicU32 = AtomicU32::new(0);
        let present = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        let present = present.lines().find_map(|line| line.strip_prefix("0::/"))?;
        let mount = fatpath_mounts::first_mount_of("cgroup2").ok()??;
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let name = format!("fatpath-run-{}-{run}", std::process::id());
        let folder = mount.join(present).join(name);
        std::fs::create_dir(&folder).ok()?;
        Some(Cgroup(folder))
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }
}
