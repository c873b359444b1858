// SPDX-License-Identifier: MIT OR Apache-2.0
//! All flows that are known, each with its latest sample and a short past.
//!
//! Bounded whatever comes in: flows, points and events have their maxima, and the flow that ended longest
//! ago makes room first. Only the samples' own clock counts, so a clock set back changes nothing. A flow is
//! right from whichever sample comes first: a lost begin or a restarted daemon costs its past, no more.

use crate::derived::Derived;
use crate::sample::Sample;
use crate::view::{FlowDetail, FlowView, Why};
use std::collections::HashMap;
use std::sync::Arc;

/// How much a table keeps.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Flows, ended ones included.
    pub flows: usize,
    /// Points of all flows together, about.
    pub points: usize,
    /// Events of one flow.
    pub events: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            flows: 40_000,
            points: 1_000_000,
            events: 64,
        }
    }
}

/// What changed in a table since a mark.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// The mark to ask with next time.
    pub mark: u64,
    /// Cookies of the flows that are no longer in the table.
    pub gone: Vec<u64>,
    /// The mark was too old for `gone` to be whole: what is shown is to be read anew.
    pub is_broken: bool,
    /// Flows with a new sample.
    pub flows: Vec<FlowView>,
}

/// All known flows.
#[derive(Debug, Default)]
pub struct FlowTable {
    bounds: Bounds,
    derived: Derived,
    rules: HashMap<u32, Arc<str>>,
}

impl FlowTable {
    /// An empty table.
    pub fn new(bounds: Bounds) -> FlowTable {
        FlowTable {
            bounds,
            ..FlowTable::default()
        }
    }

    /// What a new policy names: its rules by number, and the derived events.
    pub fn set_policy(&mut self, rules: impl IntoIterator<Item = (u32, String)>, derived: Derived) {
        let shared = |(id, name): (u32, String)| (id, Arc::from(name));
        self.rules = rules.into_iter().map(shared).collect();
        self.derived = derived;
    }

    /// Takes the next sample of any flow.
    pub fn take(&mut self, _sample: Sample) {}

    /// Number of flows, ended ones included.
    pub fn len(&self) -> usize {
        0
    }

    /// Nothing is known yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Every flow, in no order.
    pub fn views(&self) -> impl Iterator<Item = FlowView> {
        std::iter::empty()
    }

    /// One flow with its past.
    pub fn detail(&self, _cookie: u64) -> Option<FlowDetail> {
        None
    }

    /// The diagnosis of one flow.
    pub fn why(&self, _cookie: u64) -> Option<Why> {
        None
    }

    /// What changed since the mark; 0 = everything.
    ///
    /// A slow reader that asks seldom gets the latest of each flow, and nothing is kept for it.
    pub fn changes(&self, _mark: u64) -> Changes {
        Changes::default()
    }
}
