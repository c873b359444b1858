// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hosts that all test one another, with the newest result of each pair.

use crate::TestNote;
#[cfg(feature = "document")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One `[[mesh]]` of the file of tests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct MeshGrid {
    /// Its name.
    pub mesh: String,
    /// What measures.
    pub tool: String,
    /// Its hosts.
    pub hosts: Vec<String>,
    /// All of one host after those of another, in the order of the hosts.
    pub pairs: Vec<MeshPair>,
}

/// The newest test from one host to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct MeshPair {
    /// Which ran it.
    pub from: String,
    /// The peer.
    pub to: String,
    /// When it started, µs since 1970; none: there was no test in three times its interval.
    pub start_us: Option<i64>,
    /// The number that the tool is for.
    pub value: Option<f64>,
    /// Its unit.
    pub unit: Option<String>,
    /// Why there is no value.
    pub note: Option<TestNote>,
}
