// SPDX-License-Identifier: MIT OR Apache-2.0
//! What became of a run of a scheduled test: the body of an event of the kind `test`, and the answer of a run that was
//! asked for.

#[cfg(feature = "document")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// One run of a test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct TestOutcome {
    /// Name of the test.
    pub test: String,
    /// Name of the tool.
    pub tool: String,
    /// The peer as the file gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// What it loaded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// When the schedule had it due, µs since 1970; none of a run that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_us: Option<i64>,
    /// When it started, µs since 1970. It may have waited for a resource.
    pub start_us: i64,
    /// How long it took.
    pub duration_s: f64,
    /// What it measured, by name: the number and its unit.
    pub values: BTreeMap<String, (f64, String)>,
    /// Its flows of TCP, as far as its tool says which they were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<TestFlow>,
    /// Why there are no values, where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<TestNote>,
}

/// A flow of a test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct TestFlow {
    /// Its end here.
    pub local: SocketAddr,
    /// Its other end.
    pub remote: SocketAddr,
    /// What the instruments had of it after the test; none where they did not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<FlowSummary>,
}

/// A flow by the names of RFC 4898.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct FlowSummary {
    /// Name of the rule that it met.
    pub rule: Option<String>,
    /// Its law.
    pub law: String,
    /// It is closed; else the values are those of a while after the test.
    pub has_ended: bool,
    /// Each variable that this kernel has, and that had a value.
    pub variables: BTreeMap<String, f64>,
}

/// A message about a run, and how serious it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct TestNote {
    /// How serious.
    pub level: TestLevel,
    /// For people.
    pub message: String,
}

/// How serious a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum TestLevel {
    /// The run was left out on purpose.
    Info,
    /// The resource was busy.
    Warning,
    /// The run failed.
    Error,
}
