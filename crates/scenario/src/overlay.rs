// SPDX-License-Identifier: MIT OR Apache-2.0
//! A link's table with the keys of a path over its own.
//!
//! Pure. Start with [`Overlaid::of`].

use fatpath_toml::{DeTable, DeValue};

use super::effects::SERVICE_KEYS;
use super::values::Section;

/// The tables that are merged; others are replaced.
const MERGED: [&str; 2] = ["forward", "backward"];

/// A table of two.
pub(super) struct Overlaid<'s> {
    place: Section<'s>,
    table: DeTable<'s>,
}

impl<'s> Overlaid<'s> {
    /// The keys of `over`, if there is one, over those of `base`. Problems are told at `over`.
    pub(super) fn of(base: &Section<'s>, over: Option<&Section<'s>>) -> Overlaid<'s> {
        let mut table = base.table().clone();
        if let Some(over) = over {
            overlay(&mut table, over.table().clone());
        }
        Overlaid {
            place: over.unwrap_or(base).clone(),
            table,
        }
    }

    /// It, to be read.
    pub(super) fn section(&self) -> Section<'_> {
        self.place.over(&self.table, self.place.placeholders())
    }
}

/// A new way to serve drives out the one that was there.
fn overlay<'s>(base: &mut DeTable<'s>, over: DeTable<'s>) {
    if SERVICE_KEYS.iter().any(|key| over.contains_key(*key)) {
        SERVICE_KEYS.iter().for_each(|key| {
            base.remove(*key);
        });
    }
    for (key, value) in over {
        let below = base.get_mut(key.get_ref().as_ref());
        let below = below.filter(|_| MERGED.contains(&key.get_ref().as_ref()));
        match (
            below.map(|below| below.get_mut()),
            value.get_ref().is_table(),
        ) {
            (Some(DeValue::Table(below)), true) => {
                if let DeValue::Table(above) = value.into_inner() {
                    overlay(below, above);
                }
            }
            _ => {
                base.insert(key, value);
            }
        }
    }
}
