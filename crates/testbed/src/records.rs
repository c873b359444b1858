// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is to be recorded of a lab.
//!
//! Plain values. Start with [`Records`].

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What is written of a lab while it is up; paths are absolute.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Records {
    /// What passes each link in each millisecond.
    pub observation: Option<PathBuf>,
    /// Each flow by itself too.
    pub per_flow: bool,
    /// What the emulator has counted, when it ends.
    pub stats: Option<PathBuf>,
}
