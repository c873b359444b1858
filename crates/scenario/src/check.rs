// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether an effect can be, as its cell itself says.
//!
//! Pure. Start with [`checked`].

use fatpath_link::{CellSpec, ChainSpec};

use super::values::{Refusal, Value};

/// Lets the cell itself say whether it is possible.
pub(super) fn checked(value: &Value, cell: CellSpec) -> Result<(), Refusal> {
    let outcome = ChainSpec::of([cell]).check();
    outcome.map_err(|error| value.refusal(error.to_string()))
}
