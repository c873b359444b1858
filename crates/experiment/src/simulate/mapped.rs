// SPDX-License-Identifier: MIT OR Apache-2.0
//! A case as a simulation, or why it cannot be one.
//!
//! Plain values. Start with [`Mapped`].

use fatpath_scenario::Flow;
use fatpath_sim::Spec;
use thiserror::Error;

/// Why a case cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MapError {
    /// What the file asks for is nothing that the simulator does: no case of it would be right.
    #[error("line {line}: {why}")]
    Line {
        /// Where the file asks for it.
        line: usize,
        /// What, in words.
        why: String,
    },
    /// A link, likewise.
    #[error("link {link}: {why}")]
    Link {
        /// Which.
        link: String,
        /// What, in words.
        why: String,
    },
    /// Anything that has no place in the file.
    #[error("{0}")]
    Whole(String),
    /// A host's settings, likewise.
    #[error("host {host}: {why}")]
    Host {
        /// Which.
        host: String,
        /// What, in words.
        why: String,
    },
    /// There is nothing to send.
    #[error(
        "the scenario sends no data; add a [[flow]], or a [[program]] that runs an iperf3 client"
    )]
    NoFlow,
    /// This case alone cannot be simulated; others of the scenario may.
    #[error("{flow}: {why}")]
    Case {
        /// The flow.
        flow: String,
        /// What, in words.
        why: String,
    },
    /// The policy is none.
    #[error("{file}: {why}")]
    Policy {
        /// Its file.
        file: String,
        /// What is wrong with it.
        why: String,
    },
}

/// A case as a simulation, and how its results belong to the case's flows.
#[derive(Debug)]
pub(crate) struct Mapped {
    pub(crate) spec: Spec,
    /// The flows of the programs, then those of the file.
    pub(crate) flows: Vec<Flow>,
    /// Of each flow, where its first stream stands in the simulation.
    pub(crate) first_streams: Vec<usize>,
    /// Of each flow, the constant delays there and back.
    pub(crate) rtt_ns: Vec<u64>,
}
