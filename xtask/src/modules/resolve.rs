// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which module a path leads to: the home of the item that it names, past every `pub use`.

use super::tree::{Binding, Tree};

/// Imports that lead to one another in a ring would never end.
const DEPTH_MAX: u32 = 32;

/// What a path leads to.
#[derive(Clone, Copy)]
enum Target {
    Module(usize),
    /// An item of this module.
    Item(usize),
}

impl Tree {
    /// The module that `path`, written in module `from`, leads to; none for other crates and local names.
    pub fn home(&self, from: usize, path: &[String]) -> Option<usize> {
        match self.target(from, path, 0)? {
            Target::Module(module) | Target::Item(module) => Some(module),
        }
    }

    fn target(&self, from: usize, path: &[String], depth: u32) -> Option<Target> {
        let mut at = Target::Module(from);
        for (index, name) in path.iter().enumerate() {
            // What follows an item, as a variant does, is within it.
            let Target::Module(module) = at else { break };
            at = match name.as_str() {
                "crate" => Target::Module(0),
                "self" => at,
                "super" => Target::Module(self.modules[module].parent?),
                name => self.lookup(module, name, index + 1 == path.len(), depth)?,
            };
        }
        Some(at)
    }

    /// The last name of a path is an item sooner than a module; what a name leads through is a module.
    fn lookup(&self, module: usize, name: &str, is_last: bool, depth: u32) -> Option<Target> {
        let found = &self.modules[module];
        let child = found.children.get(name).map(|&child| Target::Module(child));
        if depth > DEPTH_MAX || (child.is_some() && !is_last) {
            return child;
        }
        match found.bindings.get(name) {
            Some(Binding::Item) => Some(Target::Item(module)),
            Some(Binding::Import(path)) => self.target(module, path, depth + 1),
            None => child.or_else(|| self.lookup_in_globs(module, name, is_last, depth + 1)),
        }
    }

    fn lookup_in_globs(
        &self,
        from: usize,
        name: &str,
        is_last: bool,
        depth: u32,
    ) -> Option<Target> {
        self.modules[from]
            .globs
            .iter()
            .find_map(|glob| match self.target(from, glob, depth)? {
                Target::Module(there) if there != from => self.lookup(there, name, is_last, depth),
                _ => None,
            })
    }
}
