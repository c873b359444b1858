// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values of placeholders in one case: of `[set]`, of the path, of the variant, of `[vary]`.
//!
//! Pure. A value knows where it was written, so that what is wrong with it is told there. Values are
//! not looked into for further placeholders. Start with [`Values`].

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

pub(super) use fatpath_toml::Refusal;

use super::command::{self, CommandError};

/// A table, read with the values of a case.
pub(super) type Section<'v> = fatpath_toml::Section<'v, Values<'v>>;
/// Likewise.
pub(super) type Value<'v> = fatpath_toml::Value<'v, Values<'v>>;

/// The name under which a replica finds its index, from 1.
pub(super) const INDEX: &str = "n";

/// A value and where it was written.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub(super) text: String,
    /// A byte offset.
    pub(super) at: usize,
    /// Whether any placeholder has asked for it; all cases share this.
    pub(super) used: Rc<Cell<bool>>,
}

/// Values by name.
pub(super) type Givens = BTreeMap<String, Given>;

/// What placeholders are worth where something is read.
#[derive(Clone, Copy, Default)]
pub(super) struct Values<'v> {
    given: Option<&'v Givens>,
    index: Option<u32>,
}

impl<'v> Values<'v> {
    pub(super) fn of(given: &'v Givens) -> Values<'v> {
        Values {
            given: Some(given),
            index: None,
        }
    }

    /// The same for a replica.
    pub(super) fn of_replica(self, index: Option<u32>) -> Values<'v> {
        Values { index, ..self }
    }

    /// The replica's index; `None` for what there is once.
    pub(super) fn index(self) -> Option<u32> {
        self.index
    }

    pub(super) fn text(self, name: &str) -> Option<String> {
        if name == INDEX {
            return self.index.map(|index| index.to_string());
        }
        let given = self.given?.get(name)?;
        given.used.set(true);
        Some(given.text.clone())
    }

    fn named(self) -> String {
        let names = self.given.into_iter().flat_map(BTreeMap::keys);
        let names: Vec<&str> = names.map(String::as_str).collect();
        match names.is_empty() {
            true => "nothing is".to_owned(),
            false => format!("named there: {}", names.join(", ")),
        }
    }
}

impl fatpath_toml::Placeholders for Values<'_> {
    fn fill(self, template: &str) -> Result<String, String> {
        command::expand(template, |name| self.text(name)).map_err(|error| match error {
            CommandError::Unknown(name) => {
                format!(
                    "{{{name}}} is not named in [set] or [vary]; {}",
                    self.named()
                )
            }
            other => other.to_string(),
        })
    }

    fn origin(self, template: &str) -> Option<usize> {
        let name = template.strip_prefix('{')?.strip_suffix('}')?;
        Some(self.given?.get(name)?.at)
    }
}
