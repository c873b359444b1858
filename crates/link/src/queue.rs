// SPDX-License-Identifier: MIT OR Apache-2.0
//! What waits for a bottleneck, and what is dropped instead.

use serde::{Deserialize, Serialize};

/// What waits for a bottleneck.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueSpec {
    /// Most bytes, those in service included; `None` for no limit.
    pub limit_bytes: Option<u64>,
    /// Most segments, those in service included; `None` for no limit.
    pub limit_packets: Option<u64>,
    /// What is dropped, and when.
    pub discipline: Discipline,
    /// ECN-capable segments that arrive at a depth above this are marked (the step of DCTCP, RFC 8257,
    /// section 3.1); `None`: none.
    pub mark_above_bytes: Option<u64>,
}

/// What a queue drops, and when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Discipline {
    /// What arrives and does not fit.
    #[default]
    DropTail,
    /// The oldest, to make room for what arrives.
    DropHead,
    /// By sojourn time, RFC 8289.
    Codel {
        /// Acceptable standing delay; 5 ms in the RFC.
        target_ns: u64,
        /// Time in which a good queue drains; 100 ms in the RFC.
        interval_ns: u64,
        /// Marks ECN-capable segments instead.
        ecn: bool,
    },
    /// By averaged depth, Floyd and Jacobson 1993.
    Red {
        /// Average below which nothing is dropped.
        min_bytes: u64,
        /// Average from which on everything is dropped.
        max_bytes: u64,
        /// Probability of a drop just below `max_bytes`.
        max_probability: f64,
        /// Weight of the newest depth in the average; 0.002 in the paper.
        weight: f64,
        /// Marks ECN-capable segments instead, below `max_bytes`.
        ecn: bool,
    },
}
