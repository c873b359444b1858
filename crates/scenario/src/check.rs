// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether an effect can be, as its cell itself says.
//!
//! Pure. Start with [`checked`].

use fatpath_link::{CellSpec, ChainSpec};

use super::values::{Refusal, Value};

/// Lets the cell itself say whether it is possible. What follows from a value that was noted to be wrong would be
/// told as wrong too.
pub(super) fn checked(value: &Value, cell: CellSpec) -> Result<(), Refusal> {
    if value.is_noted() {
        return Ok(());
    }
    let outcome = ChainSpec::of([cell]).check();
    outcome.map_err(|error| value.refusal(error.to_string()))
}
