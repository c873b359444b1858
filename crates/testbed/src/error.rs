// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a lab did not come up, or its supervisor ended.
//!
//! Start with [`SupervisorError`].

use fatpath_host::JournalError;
use std::io;

use thiserror::Error;

use crate::journal::Contested;
use crate::undo::UndoError;

/// Why a lab did not come up, or its supervisor ended.
#[derive(Debug, Error)]
pub enum SupervisorError {
    /// The system refused something.
    #[error("{what}: {error}")]
    System {
        /// What was tried.
        what: String,
        /// The system's reason.
        error: io::Error,
    },
    /// A namespace of the name is there, and no lab's journal names it.
    #[error(
        "the namespace {0} exists already and no lab made it; remove it (ip netns del {0}) or rename the lab"
    )]
    NamespaceTaken(String),
    /// Another lab holds a setting of the machine.
    #[error(transparent)]
    Contested(#[from] Contested),
    /// The emulator refused.
    #[error(transparent)]
    Network(#[from] fatpath_emulator::UpError),
    /// A mainline setting could not be made in a host.
    #[error("{0}; the lab sets a mainline kernel's defaults, and cannot set this one")]
    HostSetting(#[from] fatpath_emulator::NamespaceError),
    /// The daemon did not become ready.
    #[error("fatpath daemon: {reason}{}", end_of(log))]
    Daemon {
        /// How it ended, or that it took too long.
        reason: String,
        /// Its last lines.
        log: String,
    },
    /// What the daemon changed of the machine cannot be read.
    #[error(transparent)]
    DaemonJournal(#[from] JournalError),
    /// Not everything could be taken down.
    #[error(transparent)]
    Undo(#[from] UndoError),
}

fn end_of(log: &str) -> String {
    if log.is_empty() {
        String::new()
    } else {
        format!("; its output:\n{log}")
    }
}

/// For `map_err`.
pub(crate) fn system(what: impl ToString) -> impl FnOnce(io::Error) -> SupervisorError {
    move |error| SupervisorError::System {
        what: what.to_string(),
        error,
    }
}
