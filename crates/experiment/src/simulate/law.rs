// SPDX-License-Identifier: MIT OR Apache-2.0
//! The law that a policy gives, as the simulator has it.
//!
//! Pure. Start with [`of_policy`].

use fatpath_cc::Law;

use fatpath_scenario::law::named;

/// The law that a policy gives.
///
/// # Errors
/// In words, with the laws that there are.
pub(crate) fn of_policy(law: &fatpath_policy::Law) -> Result<Law, String> {
    law.ours().map_or_else(|| named(law.name()), Ok)
}
