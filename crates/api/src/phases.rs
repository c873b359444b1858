// SPDX-License-Identifier: MIT OR Apache-2.0
//! Phases of programs: the libraries that are probed, and the processes that call them.

#[cfg(feature = "document")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `GET /v1/phases`: which phases are followed, and of whom.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct Phases {
    /// The tables `[phases.NAME]` of the live policy.
    pub tables: Vec<String>,
    /// Why phases are not followed, though the policy asks for it.
    pub problem: Option<String>,
    /// What a call costs the program at this host, entry and return together, in microseconds: measured when the
    /// probes were attached; null: not measured.
    pub probe_us: Option<f64>,
    /// The files that were found and tried.
    pub libraries: Vec<PhaseLibrary>,
    /// The processes that have called a function of a phase, and live.
    pub processes: Vec<PhaseProcess>,
}

/// A file of a library or program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct PhaseLibrary {
    /// As it was found; in a container, as the container has it.
    pub path: String,
    /// The tables that name it.
    pub phases: Vec<String>,
    /// Functions that have probes.
    pub functions: usize,
    /// Of these the ones whose first instruction the kernel does not emulate: some 11 us a call.
    pub stepped: Vec<String>,
    /// What is missing, and why.
    pub problem: Option<String>,
}

/// A process that called a function of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct PhaseProcess {
    /// Its number.
    pub pid: u32,
    /// The name of its program.
    pub command: String,
    /// Whether it is in a collective phase now.
    pub is_collective: bool,
    /// Since its first call.
    pub observed_s: f64,
    /// Share of that time in collective phases, 0 to 1.
    pub collective_share: f64,
    /// Collective phases that began.
    pub phases: u64,
    /// Calls, those of one function by another too.
    pub calls: u64,
    /// Changes from one phase to the other, a second.
    pub switches_per_s: f64,
    /// Calls a second.
    pub calls_per_s: f64,
}
