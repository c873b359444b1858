// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the archive keeps: the `[archive]` section. Without one the daemon keeps no archive.

use serde::Serialize;
use std::path::PathBuf;

/// The `[archive]` section; the default is what holds for keys that it leaves out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Archive {
    /// Events are stored there, instead of in files of this host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ArchiveServer>,
    /// Events of so many days, today included; 1 to 3,650.
    pub days: u32,
    /// All databases together, 16 MiB to 16 TiB; the oldest day goes first.
    pub total_bytes: u64,
    /// Events that wait for the store, 1 MiB to 64 GiB.
    pub spool_bytes: u64,
    /// Each flow that moved at least so many bytes is kept.
    pub every_flow_bytes: u64,
    /// Of smaller flows one in so many, 1 to 1,000,000.
    pub one_in: u32,
    /// The host's load is kept so often, 1 s to 1 h.
    pub host_interval_us: u64,
}

/// A PostgreSQL server that stores the events of many hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ArchiveServer {
    /// `postgres://USER@HOST/DATABASE`, without a password.
    pub url: String,
    /// The file that has the password, where one is needed.
    pub password_file: Option<PathBuf>,
}

impl Default for Archive {
    fn default() -> Self {
        Archive {
            server: None,
            days: 30,
            total_bytes: 2_000_000_000,
            spool_bytes: 256 << 20,
            every_flow_bytes: 1_000_000,
            one_in: 100,
            host_interval_us: 60_000_000,
        }
    }
}
