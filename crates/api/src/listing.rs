// SPDX-License-Identifier: MIT OR Apache-2.0
//! A part of the table of flows: so many lines of those that a filter lets pass, in an order.

use crate::FlowView;
#[cfg(feature = "document")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The query of `GET /v1/instruments/listing`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct ListingQuery {
    /// Name of the column to sort by.
    pub by: String,
    /// The other way round.
    pub reversed: bool,
    /// Flows that have ended, too.
    pub ended: bool,
    /// Text that a line has somewhere, in either case; empty = all.
    pub filter: String,
    /// The first line, of those that pass.
    pub first: usize,
    /// So many lines, 500 at most.
    pub count: usize,
    /// Cookie of a flow that the lines are to hold: they begin as far from `first` as that needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen: Option<u64>,
    /// The flow so many lines below that one is meant, or the first when none is chosen.
    pub step: i64,
}

impl Default for ListingQuery {
    fn default() -> ListingQuery {
        ListingQuery {
            by: "rate".to_owned(),
            reversed: false,
            ended: false,
            filter: String::new(),
            first: 0,
            count: 50,
            chosen: None,
            step: 0,
        }
    }
}

/// `GET /v1/instruments/listing`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct Listing {
    /// Flows in the table.
    pub known: usize,
    /// Flows that pass.
    pub passing: usize,
    /// Which of these is the first line.
    pub first: usize,
    /// Cookie of the chosen flow; none when it does not pass.
    pub chosen: Option<u64>,
    /// The lines.
    pub views: Vec<FlowView>,
}
