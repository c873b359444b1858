// SPDX-License-Identifier: MIT OR Apache-2.0
//! What passed a direction of a link, as a few figures.
//!
//! Pure, plain values. Start with [`DirectionFigures`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One direction of a link over a stretch of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectionFigures {
    /// The link.
    pub link: String,
    /// The host that sends.
    pub from: String,
    /// The host that receives.
    pub to: String,
    /// What left it, in bits from the IP header on.
    pub left_mbps: f64,
    /// That and the rate's overhead, as a share of the rate (1: all of it); `None` unless the rate
    /// was one all the time.
    pub utilisation: Option<f64>,
    /// Mean over all intervals of the deepest queue in each.
    pub mean_queue_bytes: f64,
    /// The deepest queue.
    pub peak_queue_bytes: u64,
    /// Segments dropped, by cause.
    pub dropped: BTreeMap<String, u64>,
    /// Segments marked: congestion met.
    pub marked: u64,
}

impl DirectionFigures {
    /// For people and as the name of a column: `wan.client-server`.
    pub fn name(&self) -> String {
        format!("{}.{}-{}", self.link, self.from, self.to)
    }

    /// Every figure by its name in tables; `None` of what it does not have.
    pub fn figures(&self) -> Vec<(String, Option<f64>)> {
        let mut figures = vec![
            ("left_mbps".to_owned(), Some(self.left_mbps)),
            ("utilisation".to_owned(), self.utilisation),
            ("mean_queue_bytes".to_owned(), Some(self.mean_queue_bytes)),
            (
                "peak_queue_bytes".to_owned(),
                Some(self.peak_queue_bytes as f64),
            ),
        ];
        let dropped = self.dropped.iter();
        figures.extend(
            dropped.map(|(cause, count)| (format!("dropped_{cause}"), Some(*count as f64))),
        );
        figures.push(("marked".to_owned(), Some(self.marked as f64)));
        figures
    }
}
