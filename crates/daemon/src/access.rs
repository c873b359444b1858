// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who may ask the daemon and read its logs: root, and the group `fatpath` where there is one.

use crate::Instance;
use anyhow::{Context, Result};
use rustix::fs::Mode;
use std::os::unix::fs::PermissionsExt;
use tokio::net::UnixListener;

/// The id of the group `fatpath`, from wherever this host keeps its groups (nsswitch.conf(5)).
pub(crate) fn fatpath_group() -> Option<u32> {
    uzers::get_group_by_name("fatpath").map(|group| group.gid())
}

/// Listens on the API's Unix socket, 0660 root:fatpath; without that group, root alone. It is closed to
/// others from its first moment.
pub(crate) fn listen(instance: &Instance) -> Result<UnixListener> {
    let path = instance.socket();
    let _ = std::fs::remove_file(&path);
    let before = rustix::process::umask(Mode::from_raw_mode(0o177));
    let listener = UnixListener::bind(&path);
    rustix::process::umask(before);
    let listener = listener.with_context(|| format!("cannot listen on {}", path.display()))?;
    match fatpath_group() {
        Some(group) => std::os::unix::fs::chown(&path, None, Some(group))?,
        None => tracing::warn!("no group fatpath: only root may ask (groupadd --system fatpath)"),
    }
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o660))?;
    Ok(listener)
}
