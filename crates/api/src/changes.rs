// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a request changed.

#[cfg(feature = "document")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What came of making a policy live.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct Applied {
    /// Rules that are live now.
    pub rules: usize,
    /// Live flows that met it.
    pub live_flows_met: u32,
    /// What there is to say: warnings about the file, what was raised, what was left alone.
    pub notes: Vec<String>,
}

/// What an unload did.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct UnloadReport {
    /// Pins removed, by name; with the last one its program, map or law is gone.
    pub removed: Vec<String>,
    /// Live flows that went back to their namespace's law.
    pub flows_released: u32,
    /// Changes to the host that were put back.
    pub put_back: Vec<String>,
    /// Changes that somebody else changed since: left alone.
    pub left_alone: Vec<String>,
    /// Changes that could not be put back.
    pub failed: Vec<String>,
}
