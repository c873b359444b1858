// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was learned, on its way to the kernel half: the rules, and the paths that get them.

use super::rules::{addresses, name};
use super::unix_minus_monotonic_us;
use fatpath_kernel::{Kernel, KernelError, PathChange, PathRule, PathStart};
use fatpath_path::{PathKey, Profile};
use fatpath_policy::Policy;

/// What one path gets from now on.
pub(crate) struct Given {
    rule: String,
    start: Option<PathStart>,
}

impl Given {
    /// `start`: until when flows may start at the path's rate, and its base RTT, µs.
    pub(super) fn new(profile: &Profile, start: Option<(i64, f64)>) -> Given {
        let until_ns = |until_us: i64| {
            let us = until_us.saturating_sub(unix_minus_monotonic_us());
            u64::try_from(us).unwrap_or(0).saturating_mul(1000)
        };
        Given {
            rule: name(profile),
            start: start.map(|(until_us, rtt_us)| PathStart {
                base_rtt_us: rtt_us as u32,
                until_ns: until_ns(until_us),
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
                start: given.start,
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
