// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was learned, on its way to the kernel half: the rules, and the paths that get them.

use super::rules::{addresses, name};
use super::unix_minus_monotonic_us;
use fatpath_kernel::{Kernel, KernelError, KnownPath, PathChange, PathRule};
use fatpath_path::{Known, PathKey, Profile};
use fatpath_policy::Policy;

/// What one path gets from now on.
pub(crate) struct Given {
    rule: String,
    known: Option<KnownPath>,
}

impl Given {
    pub(super) fn new(profile: &Profile, known: Option<Known>) -> Given {
        let until_ns = |until_us: i64| {
            let us = until_us.saturating_sub(unix_minus_monotonic_us());
            u64::try_from(us).unwrap_or(0).saturating_mul(1000)
        };
        Given {
            rule: name(profile),
            known: known.map(|known| KnownPath {
                base_rtt_us: known.base_rtt_us as u32,
                bdp_bytes: known.bdp_bytes as u64,
                until_ns: until_ns(known.until_us),
            }),
        }
    }
}

/// What paths get from now on.
pub(crate) struct Learned {
    /// The rules of all paths.
    pub(crate) rules: Policy,
    /// Those that have changed, or all.
    pub(crate) paths: Vec<(PathKey, Option<Given>)>,
    /// Paths that are not named get nothing, and not what they had.
    pub(crate) are_all: bool,
}

impl Learned {
    pub(crate) fn write(&self, kernel: &Kernel) -> Result<(), KernelError> {
        let paths = self.paths.iter().map(|(key, given)| {
            let rule = given.as_ref().map(|given| PathRule {
                rule: &given.rule,
                known: given.known,
            });
            (addresses(*key), rule)
        });
        let paths: Vec<PathChange<'_>> = paths.collect();
        match self.are_all {
            true => kernel.set_paths(&self.rules.rules, &paths),
            false => kernel.change_paths(&self.rules.rules, &paths),
        }
    }
}
