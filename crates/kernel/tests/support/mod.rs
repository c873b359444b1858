// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tests on the running kernel share.

use fatpath_kernel::bpffs_is_mounted;
use rustix::fs::{FlockOperation, flock};
use std::fs::File;

/// One test at a time on this machine, as those of the whole program: laws are the host's.
/// `None`, and a line that says so, where it cannot run.
pub fn alone() -> Option<File> {
    if !rustix::process::geteuid().is_root() || !bpffs_is_mounted() {
        println!("skipped: not root, or no BPF file system");
        return None;
    }
    let lock = File::create(std::env::temp_dir().join("fatpath-tests.lock")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    Some(lock)
}
