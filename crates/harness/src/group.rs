// SPDX-License-Identifier: MIT OR Apache-2.0
//! A cgroup that this process enters and leaves: sockets made inside are tuned, sockets
//! made outside run none of fatpath's programs.

use anyhow::{Context, Result};
use fatpath_kernel::Places;
use std::path::{Path, PathBuf};

/// The cgroup; removed when it is dropped.
pub struct Group {
    root: PathBuf,
    group: PathBuf,
}

impl Group {
    /// Makes it below the root of cgroup 2, or takes the one that a killed run left.
    pub fn make() -> Result<Group> {
        let root = Places::new(None, None)?.cgroup;
        let group = root.join("fatpath-bench");
        std::fs::create_dir_all(&group).with_context(|| group.display().to_string())?;
        Ok(Group { root, group })
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.group
    }

    /// Sockets made from now on are the cgroup's.
    pub fn enter(&self) -> Result<()> {
        move_to(&self.group)
    }

    /// Sockets made from now on are the root's.
    pub fn leave(&self) -> Result<()> {
        move_to(&self.root)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A process that ends leaves its cgroup, so neither failure leaves more than an empty one.
        let _ = self.leave();
        let _ = std::fs::remove_dir(&self.group);
    }
}

fn move_to(group: &Path) -> Result<()> {
    let file = group.join("cgroup.procs");
    std::fs::write(&file, std::process::id().to_string())
        .with_context(|| file.display().to_string())
}
