// SPDX-License-Identifier: MIT OR Apache-2.0
//! The law that a policy or a host gives, as the simulator has it.
//!
//! Pure. Start with [`of_policy`].

use fatpath_cc::Law;

use fatpath_scenario::law::named;

/// The law that a policy gives.
///
/// # Errors
/// In words, with the laws that there are.
pub(crate) fn of_policy(law: &fatpath_policy::Law) -> Result<Law, String> {
    law.ours().map_or_else(|| of_kernel(law.name()), Ok)
}

/// A law by its name in the kernel, whose `reno` and `cubic` are ours; its `bbr` is version 1, and ours is 3.
///
/// # Errors
/// As [`of_policy`].
pub(crate) fn of_kernel(name: &str) -> Result<Law, String> {
    match name {
        "bbr" => Err(
            "the simulator does not have law bbr, which is version 1 in the kernel; fp_bbr is version 3"
                .to_owned(),
        ),
        _ => named(name),
    }
}
