// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a forwarder ended.

use crate::control::ChangeError;
use crate::stats::Stats;
use std::io;

/// Why a forwarder ended before it was stopped.
#[derive(Debug, thiserror::Error)]
pub enum ForwardError {
    /// A device cannot be read any more.
    #[error("link `{link}`: its device at host `{host}` is gone: {error}")]
    Device {
        /// The link.
        link: String,
        /// The host.
        host: String,
        /// What the system said.
        error: io::Error,
    },
    /// A change was asked for that cannot be made, before the links were known.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// The observation could not begin.
    #[error("beginning the observation: {0}")]
    Observation(io::Error),
    /// Waiting for packets failed.
    #[error("waiting for packets: {0}")]
    Wait(io::Error),
    /// It ended while it forwarded. What was observed until then is in the file.
    #[error("{cause}")]
    Ended {
        /// What ended it.
        cause: Box<ForwardError>,
        /// What it did until then.
        stats: Box<Stats>,
    },
}
