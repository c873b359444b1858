// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which lines are asked for, and those that came.

use fatpath_daemon::client::quoted;
use fatpath_estats::FlowView;
use fatpath_estats::listing::{COLUMNS, Column, Listing, Wanted};

/// Widths of the columns.
pub const WIDTHS: [u16; COLUMNS.len()] = [21, 21, 12, 10, 8, 8, 7, 6, 6, 11, 30];

/// The table's state.
#[derive(Default)]
pub struct List {
    wanted: Wanted,
    pub came: Listing,
    pub is_typing: bool,
}

impl List {
    /// The question to the daemon, for so many lines.
    pub fn question(&mut self, lines: usize) -> String {
        let wanted = &mut self.wanted;
        wanted.count = lines.max(1);
        let step = std::mem::take(&mut wanted.step);
        let chosen = wanted.chosen.map(|cookie| format!("&chosen={cookie}"));
        format!(
            "/v1/instruments/listing?by={}&reversed={}&ended={}&filter={}&first={}&count={}&step={step}{}",
            wanted.by,
            wanted.reversed,
            wanted.ended,
            quoted(&wanted.filter),
            wanted.first,
            wanted.count,
            chosen.unwrap_or_default()
        )
    }

    pub fn set(&mut self, came: Listing) {
        (self.wanted.first, self.wanted.chosen) = (came.first, came.chosen);
        self.came = came;
    }

    pub fn filter(&self) -> &str {
        &self.wanted.filter
    }

    pub fn filter_by(&mut self, change: impl FnOnce(&mut String)) {
        change(&mut self.wanted.filter);
    }

    /// The column that is sorted by.
    pub fn sorted_by(&self) -> &'static Column {
        Column::of(&self.wanted)
    }

    /// The next column, or the one before.
    pub fn sort_by(&mut self, step: isize) {
        let is_it = |column: &Column| column.name == self.wanted.by;
        let at = COLUMNS.iter().position(is_it).unwrap_or_default();
        let next = (at as isize + step).rem_euclid(COLUMNS.len() as isize);
        self.wanted.by = COLUMNS[next as usize].name.to_owned();
    }

    pub fn reverse(&mut self) {
        self.wanted.reversed = !self.wanted.reversed;
    }

    pub fn show_ended(&mut self) {
        self.wanted.ended = !self.wanted.ended;
    }

    /// Moves the choice by so many lines.
    pub fn choose(&mut self, lines: i64) {
        self.wanted.step += lines;
    }

    pub fn chosen_line(&self) -> Option<usize> {
        let views = &self.came.views;
        let is_it = |view: &FlowView| Some(view.flow.cookie) == self.came.chosen;
        views.iter().position(is_it)
    }

    pub fn chosen(&self) -> Option<&FlowView> {
        self.chosen_line().map(|line| &self.came.views[line])
    }
}
