// SPDX-License-Identifier: MIT OR Apache-2.0
//! Derived events: the administrator's own numbers, by formula over the variables.

/// Formulas by name.
#[derive(Clone, Debug, Default)]
pub struct Derived {}

/// Why a formula is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {what}, at character {position} of the formula")]
pub struct BadFormula {
    /// The event's name.
    pub name: String,
    /// Counts characters from 1.
    pub position: usize,
    /// What is wrong, and what is allowed.
    pub what: String,
}

impl Derived {
    /// Reads names and formulas.
    ///
    /// # Errors
    /// The first formula that is none, or that names an unknown variable.
    pub fn parse<'a>(
        _formulas: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Derived, BadFormula> {
        Ok(Derived {})
    }
}
