// SPDX-License-Identifier: MIT OR Apache-2.0
//! Paths of cgroups by id, remembered: a look-up walks the hierarchy.

use fatpath_kernel::cgroup_path;
use parking_lot::Mutex;
use std::collections::HashMap;

/// Paths remembered before the memory is emptied.
const MAX_CGROUPS: usize = 4096;

/// `None` of an id whose cgroup is gone.
#[derive(Default)]
pub(crate) struct CgroupPaths(Mutex<HashMap<u64, Option<String>>>);

impl CgroupPaths {
    pub(crate) fn path(&self, id: u64) -> Option<String> {
        let mut paths = self.0.lock();
        if paths.len() >= MAX_CGROUPS {
            paths.clear();
        }
        let look_up = || cgroup_path(id).map(without_control_characters);
        paths.entry(id).or_insert_with(look_up).clone()
    }
}

/// Users choose the names of their cgroups; a terminal obeys control characters, which JSON lets pass from U+007F on.
fn without_control_characters(text: String) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_gives_a_terminal_orders() {
        let name = without_control_characters("/user/\u{9b}2Jé\u{1b}[2J\n\u{7f}".to_owned());
        assert_eq!(name, "/user/\u{fffd}2Jé\u{fffd}[2J\u{fffd}\u{fffd}");
    }
}
