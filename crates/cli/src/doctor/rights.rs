// SPDX-License-Identifier: MIT OR Apache-2.0
//! What needs root's rights to be seen.

/// What only root sees, seen without root's rights.
pub(super) const NOT_ROOT: &str = "only root can see this: sudo fatpath doctor";

pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
