// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which flow it is.

#[cfg(feature = "document")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Which flow it is. `cookie` names it within one boot of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct Flow {
    /// The socket's cookie: unique until the host boots.
    pub cookie: u64,
    /// LocalAddress, LocalPort.
    pub local: SocketAddr,
    /// RemAddress, RemPort.
    pub remote: SocketAddr,
    /// Inode of its network namespace.
    pub netns: u32,
    /// Inode of its cgroup; 0 = unknown.
    pub cgroup_id: u64,
    /// The rule of the live policy that it met, by its stable number.
    pub rule_id: Option<u32>,
    /// The peer opened the connection.
    pub is_passive: bool,
    /// It was established before fatpath saw it.
    pub is_adopted: bool,
}
