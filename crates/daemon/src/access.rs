// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who may ask the daemon: root, and the group `fatpath` where there is one.

use crate::Instance;
use anyhow::{Context, Result};
use fatpath_host::fatpath_group;
use rustix::fs::Mode;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use tokio::net::UnixListener;

/// Mode of the sockets for root and the group.
const GROUP: u32 = 0o660;

/// Mode of the socket for every user.
const ANYBODY: u32 = 0o666;

/// The Unix sockets on which the daemon listens.
pub(crate) struct UnixSockets {
    /// By which root changes things; the group may read.
    pub(crate) control: UnixListener,
    /// Which only reads: what may be forwarded to another machine.
    pub(crate) view: UnixListener,
    /// Which says whether Rude TCP is enabled, and to whoever asks, whether datagrams may leave so.
    pub(crate) gate: UnixListener,
}

impl UnixSockets {
    /// Without the group fatpath only root may use these sockets, except the one of the gate.
    ///
    /// # Errors
    /// When a socket cannot be made.
    pub(crate) fn listen(instance: &Instance) -> Result<UnixSockets> {
        let group = fatpath_group();
        if group.is_none() {
            tracing::warn!(
                "the group fatpath does not exist, so only root may use the API; create it: groupadd --system fatpath"
            );
        }
        Ok(UnixSockets {
            control: listen(&instance.socket(), GROUP, group)?,
            view: listen(&instance.view_socket(), GROUP, group)?,
            gate: listen(&instance.gate_socket(), ANYBODY, None)?,
        })
    }
}

/// The socket is closed to others from its first moment.
fn listen(path: &Path, mode: u32, group: Option<u32>) -> Result<UnixListener> {
    let _ = std::fs::remove_file(path);
    let before = rustix::process::umask(Mode::from_raw_mode(0o177));
    let listener = UnixListener::bind(path);
    rustix::process::umask(before);
    let listener = listener.with_context(|| format!("cannot listen on {}", path.display()))?;
    if let Some(group) = group {
        chown(path, None, Some(group))?;
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    Ok(listener)
}
