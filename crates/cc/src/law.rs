// SPDX-License-Identifier: MIT OR Apache-2.0
//! A law with its parameters.

use crate::raw;
use crate::{LawSpec, ParameterSpec, laws};
use std::fmt;
use thiserror::Error;

/// The most parameters that a law can have.
const PARAMS: usize = raw::CC_PARAMS as usize;

/// A law with its parameters, which it accepts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Law {
    pub(crate) number: u32,
    pub(crate) values: [u32; PARAMS],
}

/// Why a law does not take parameters.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ParameterError {
    /// It has none of that key.
    #[error("{law} has no parameter '{key}'; it has {known}")]
    Unknown {
        /// The law.
        law: &'static str,
        /// What was given.
        key: String,
        /// What it has.
        known: String,
    },
    /// The value is out of range.
    #[error("{key} = {value} is out of range: {min} to {max} ({meaning})")]
    OutOfRange {
        /// The parameter.
        key: &'static str,
        /// What was given.
        value: f64,
        /// The least value.
        min: f64,
        /// The greatest value.
        max: f64,
        /// What the parameter means.
        meaning: &'static str,
    },
    /// Each is in its range, but together they make no sense.
    #[error("{law}: the parameters contradict each other ({values}): see bpf/cc/{law}.h")]
    Inconsistent {
        /// The law.
        law: &'static str,
        /// What was given.
        values: String,
    },
}

impl Law {
    /// RFC 5681, the first law of the table.
    pub const RENO: Law = Law {
        number: 0,
        values: [0; PARAMS],
    };

    /// The law of that name with the parameters' initial values, also by the kernel's name (`fp_reno`).
    pub fn named(name: &str) -> Option<Law> {
        let name = name.strip_prefix("fp_").unwrap_or(name);
        let number = laws().iter().position(|spec| spec.name == name)?;
        let mut values = [0; PARAMS];
        for (value, parameter) in values.iter_mut().zip(&laws()[number].parameters) {
            *value = parameter.initial;
        }
        Some(Law {
            number: number as u32,
            values,
        })
    }

    /// The law with integer values in the order and the units of its [`LawSpec`]; values past its last
    /// parameter are not read. `None` when the law does not accept them.
    pub fn from_values(name: &str, values: &[u32]) -> Option<Law> {
        let mut law = Law::named(name)?;
        let count = law.values().len();
        law.values[..count].copy_from_slice(values.get(..count)?);
        law.is_accepted().then_some(law)
    }

    /// The law with one parameter changed.
    ///
    /// # Errors
    /// See [`Law::with_all`].
    pub fn with(self, key: &str, value: f64) -> Result<Law, ParameterError> {
        self.with_all(&[(key, value)])
    }

    /// The law with some parameters changed, as people write them.
    ///
    /// # Errors
    /// When the law has no such parameter, a value is out of its range, or all of them together
    /// contradict each other.
    pub fn with_all(mut self, given: &[(&str, f64)]) -> Result<Law, ParameterError> {
        for (key, number) in given {
            let (index, parameter) = self.parameter(key)?;
            let value = parameter.from_number(*number);
            self.values[index] = value.ok_or_else(|| out_of_range(parameter, *number))?;
        }
        if self.is_accepted() {
            return Ok(self);
        }
        Err(ParameterError::Inconsistent {
            law: self.spec().name,
            values: self.parameters_text(),
        })
    }

    /// Its place in the table.
    pub fn spec(&self) -> &'static LawSpec {
        &laws()[self.number as usize]
    }

    /// The values of its parameters, in the order and units of its [`LawSpec`].
    pub fn values(&self) -> &[u32] {
        &self.values[..self.spec().parameters.len()]
    }

    fn is_accepted(&self) -> bool {
        // SAFETY: reads `CC_PARAMS` values.
        unsafe { raw::fatpath_accepts(self.number, self.values.as_ptr()) != 0 }
    }

    /// A parameter of the law as people write it.
    ///
    /// # Panics
    /// When the law has no such parameter.
    pub fn number(&self, key: &str) -> f64 {
        let (index, spec) = self.parameter(key).expect("the law has it");
        spec.to_number(self.values[index])
    }

    pub(crate) fn parameter(
        &self,
        key: &str,
    ) -> Result<(usize, &'static ParameterSpec), ParameterError> {
        let parameters = &self.spec().parameters;
        let index = parameters.iter().position(|p| p.key == key);
        let Some(index) = index else {
            let known: Vec<&str> = parameters.iter().map(|p| p.key).collect();
            return Err(ParameterError::Unknown {
                law: self.spec().name,
                key: key.to_owned(),
                known: if known.is_empty() {
                    "none".to_owned()
                } else {
                    known.join(", ")
                },
            });
        };
        Ok((index, &parameters[index]))
    }

    fn parameters_text(&self) -> String {
        let values = self.spec().parameters.iter().zip(self.values());
        let texts: Vec<String> = values
            .map(|(p, value)| format!("{} = {}", p.key, p.to_number(*value)))
            .collect();
        texts.join(", ")
    }
}

fn out_of_range(parameter: &ParameterSpec, value: f64) -> ParameterError {
    ParameterError::OutOfRange {
        key: parameter.key,
        value,
        min: parameter.to_number(parameter.min),
        max: parameter.to_number(parameter.max),
        meaning: parameter.meaning,
    }
}

/// `aimd(a = 6, b = 0.3)`.
impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.spec().name)?;
        match self.values() {
            [] => Ok(()),
            _ => write!(f, "({})", self.parameters_text()),
        }
    }
}

impl fmt::Debug for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
