// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which lines are asked for, and those that came.

use fatpath_api::{FlowView, Listing, ListingQuery};
use fatpath_estats::listing::{COLUMNS, Column};

/// The table's state.
#[derive(Default)]
pub struct List {
    query: ListingQuery,
    pub came: Listing,
    pub is_typing: bool,
    /// The keys are shown instead of the chosen flow's findings.
    pub shows_keys: bool,
}

impl List {
    /// The question to the daemon, for so many lines.
    pub fn query(&mut self, lines: usize) -> ListingQuery {
        self.query.count = lines.max(1);
        let query = self.query.clone();
        self.query.step = 0;
        query
    }

    pub fn set(&mut self, came: Listing) {
        (self.query.first, self.query.chosen) = (came.first, came.chosen);
        self.came = came;
    }

    pub fn filter(&self) -> &str {
        &self.query.filter
    }

    pub fn filter_by(&mut self, change: impl FnOnce(&mut String)) {
        change(&mut self.query.filter);
    }

    /// The column that is sorted by.
    pub fn sorted_by(&self) -> &'static Column {
        Column::of(&self.query)
    }

    /// The next column, or the one before.
    pub fn sort_by(&mut self, step: isize) {
        let is_it = |column: &Column| column.name == self.query.by;
        let at = COLUMNS.iter().position(is_it).unwrap_or_default();
        let next = (at as isize + step).rem_euclid(COLUMNS.len() as isize);
        self.query.by = COLUMNS[next as usize].name.to_owned();
    }

    pub fn reverse(&mut self) {
        self.query.reversed = !self.query.reversed;
    }

    pub fn show_ended(&mut self) {
        self.query.ended = !self.query.ended;
    }

    /// Moves the choice by so many lines.
    pub fn choose(&mut self, lines: i64) {
        self.query.step += lines;
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
