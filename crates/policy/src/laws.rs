// SPDX-License-Identifier: MIT OR Apache-2.0
//! The laws whose parameters a policy can give, and the ranges of those parameters.
//!
//! One table, [`LAWS`]; a new law of `bpf/cc/` adds one entry. A law that is not in the table may be
//! chosen by name, without parameters. Whether a law is registered is not known here.

use serde::Serialize;
use std::fmt;

/// The laws that take parameters.
pub const LAWS: &[LawSpec] = &[LawSpec {
    name: "fp_aimd",
    parameters: &[
        // The WAD's `wadai` (virtual MSS) and `wadmd`, seed 003 section 3.3; the defaults are Reno's.
        ParameterSpec {
            key: "a",
            meaning: "segments added a round trip",
            min_milli: 10,
            max_milli: 10_000_000,
            default_milli: 1_000,
        },
        ParameterSpec {
            key: "b",
            meaning: "fraction of the window given up at a loss",
            min_milli: 1,
            max_milli: 999,
            default_milli: 500,
        },
    ],
}];

/// A law and the parameters that it takes.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct LawSpec {
    /// The name under which the law is registered with the kernel.
    pub name: &'static str,
    /// In the order in which [`Law::parameters`] holds them.
    pub parameters: &'static [ParameterSpec],
}

/// One parameter of a law. Values are kept in thousandths, for the laws compute in integers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ParameterSpec {
    /// Its key in the policy file.
    pub key: &'static str,
    /// What it means, with its unit.
    pub meaning: &'static str,
    /// The least value, in thousandths.
    pub min_milli: u32,
    /// The greatest value, in thousandths.
    pub max_milli: u32,
    /// The value when the file gives none, in thousandths.
    pub default_milli: u32,
}

/// A congestion-control law as a rule chooses it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Law {
    /// The name under which it is registered with the kernel, 1 to 15 bytes.
    pub name: String,
    /// Every parameter of the law in the order of its [`LawSpec`]; empty for a law without any.
    pub parameters: Vec<Parameter>,
}

/// A parameter's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Parameter {
    /// Its key in the policy file.
    pub key: &'static str,
    /// Its value in thousandths.
    pub value_milli: u32,
}

impl LawSpec {
    /// The law of that name, when it takes parameters.
    pub fn named(name: &str) -> Option<&'static LawSpec> {
        LAWS.iter().find(|spec| spec.name == name)
    }
}

impl ParameterSpec {
    /// The range and the meaning, for people.
    pub fn range(&self) -> String {
        let (min, max) = (
            f64::from(self.min_milli) / 1000.0,
            f64::from(self.max_milli) / 1000.0,
        );
        format!(
            "{min} to {max} with at most three decimals ({})",
            self.meaning
        )
    }
}

impl Law {
    /// The law with every parameter at its default.
    pub(crate) fn with_defaults(name: &str) -> Law {
        let parameters = LawSpec::named(name).map_or(&[][..], |spec| spec.parameters);
        let value = |spec: &ParameterSpec| Parameter {
            key: spec.key,
            value_milli: spec.default_milli,
        };
        Law {
            name: name.to_owned(),
            parameters: parameters.iter().map(value).collect(),
        }
    }

    /// The value of a parameter in thousandths; `None` when the law has none of that key.
    pub fn parameter_milli(&self, key: &str) -> Option<u32> {
        self.parameters
            .iter()
            .find(|parameter| parameter.key == key)
            .map(|found| found.value_milli)
    }
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (index, parameter) in self.parameters.iter().enumerate() {
            let separator = if index == 0 { "(" } else { ", " };
            write!(
                f,
                "{separator}{} = {}",
                parameter.key,
                f64::from(parameter.value_milli) / 1000.0
            )?;
        }
        f.write_str(if self.parameters.is_empty() { "" } else { ")" })
    }
}
