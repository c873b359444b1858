// SPDX-License-Identifier: MIT OR Apache-2.0
//! One line of the report.

use serde::Serialize;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// As it should be.
    Ok,
    /// It could not be seen, such as for want of root's rights.
    Unseen,
    /// fatpath works, but not everything of it, or not as well.
    Warn,
    /// fatpath does not work, or the policy has no effect.
    Bad,
}

impl Level {
    /// As tables and JSON write it.
    pub fn name(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Unseen => "unseen",
            Level::Warn => "warn",
            Level::Bad => "bad",
        }
    }
}

/// What was looked at, what was found, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at, in a few words; unique in a report.
    pub check: &'static str,
    /// How bad it is.
    pub level: Level,
    /// What was found, and what it costs.
    pub found: String,
    /// What to do: one line. `None` where nothing is to be done.
    pub remedy: Option<String>,
}

impl Check {
    pub(crate) fn ok(check: &'static str, found: impl Into<String>) -> Check {
        Check {
            check,
            level: Level::Ok,
            found: found.into(),
            remedy: None,
        }
    }

    pub(crate) fn warn(
        check: &'static str,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Check {
        Check {
            level: Level::Warn,
            remedy: Some(remedy.into()),
            ..Check::ok(check, found)
        }
    }

    pub(crate) fn bad(
        check: &'static str,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Check {
        Check {
            level: Level::Bad,
            ..Check::warn(check, found, remedy)
        }
    }

    pub(crate) fn unseen(check: &'static str, why: &str) -> Check {
        Check {
            level: Level::Unseen,
            ..Check::ok(check, why)
        }
    }
}
