// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a flow is slow.

#[cfg(feature = "document")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "document", derive(JsonSchema))]
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
#[cfg_attr(feature = "document", derive(JsonSchema))]
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
#[cfg_attr(feature = "document", derive(JsonSchema))]
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

impl Finding {
    /// Without evidence, gain and cure.
    pub fn new(id: &str, severity: Severity, title: impl Into<String>) -> Finding {
        Finding {
            id: id.to_owned(),
            title: title.into(),
            evidence: Vec::new(),
            severity,
            gain: None,
            cure: None,
        }
    }

    /// With one more number that it rests on.
    #[must_use]
    pub fn with(mut self, name: &str, value: f64, unit: &str) -> Finding {
        self.evidence.push(Evidence {
            name: name.to_owned(),
            value,
            unit: unit.to_owned(),
        });
        self
    }

    /// With what its cure is expected to gain.
    #[must_use]
    pub fn gaining(mut self, gain: Option<f64>) -> Finding {
        self.gain = gain;
        self
    }

    /// With lines of a rule that would cure it.
    #[must_use]
    pub fn cured_by(mut self, cure: impl Into<String>) -> Finding {
        self.cure = Some(cure.into());
        self
    }
}
