// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was learned, on its way to the kernel half: the rules, and the paths that get them.

use super::rules::{addresses, name};
use fatpath_kernel::{Kernel, KernelError, PathAddresses, PathChange};
use fatpath_path::{PathKey, Profile};
use fatpath_policy::Policy;

/// What paths get from now on.
pub(crate) struct Learned {
    /// The rules of all paths.
    pub(crate) rules: Policy,
    paths: Vec<(PathAddresses, Option<String>)>,
    /// Paths that are not named get nothing, and not what they had.
    are_all: bool,
}

impl Learned {
    pub(crate) fn new(
        rules: Policy,
        paths: Vec<(PathKey, Option<Profile>)>,
        are_all: bool,
    ) -> Learned {
        let named = |profile: Option<Profile>| profile.as_ref().map(name);
        let paths = paths.into_iter();
        Learned {
            rules,
            paths: paths
                .map(|(key, profile)| (addresses(key), named(profile)))
                .collect(),
            are_all,
        }
    }

    /// How many paths are named.
    pub(crate) fn len(&self) -> usize {
        self.paths.len()
    }

    pub(crate) fn write(&self, kernel: &Kernel) -> Result<(), KernelError> {
        let paths = self.paths.iter();
        let paths: Vec<PathChange<'_>> =
            paths.map(|(path, rule)| (*path, rule.as_deref())).collect();
        match self.are_all {
            true => kernel.set_paths(&self.rules.rules, &paths),
            false => kernel.change_paths(&self.rules.rules, &paths),
        }
    }
}
