// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is wrong with a scenario file.

/// One thing that is wrong with a scenario file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{problem}")]
pub struct Problem {
    /// The file, as the user named it.
    pub file: String,
    /// Its place, and what is allowed.
    pub problem: fatpath_toml::Problem,
}
