// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a flow is slow: findings with their evidence.

use serde::{Deserialize, Serialize};

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// So it is, and there may be nothing wrong with it.
    Info,
    /// It costs something.
    Warning,
    /// It costs most of what the path could carry.
    Problem,
}

/// One number that a finding rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// What was measured, a variable's name where there is one.
    pub name: String,
    /// How much.
    pub value: f64,
    /// In what; empty for a plain number.
    pub unit: String,
}

/// One reason why a flow is slow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Stable: `FP-RWND-SCALE`.
    pub id: String,
    /// In one sentence.
    pub title: String,
    /// The numbers.
    pub evidence: Vec<Evidence>,
    /// How much it matters.
    pub severity: Severity,
    /// Expected goodput over the present one, by the model, when the cause is cured.
    pub gain: Option<f64>,
    /// Lines of a rule of the policy file that would cure it.
    pub cure: Option<String>,
}
