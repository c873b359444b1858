// SPDX-License-Identifier: MIT OR Apache-2.0
//! What became of a run: the body of an event of the kind `test`.

use crate::{Test, Values};
use serde::Serialize;

/// One run of a test.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Name of the test.
    pub test: String,
    /// Name of the tool.
    pub tool: &'static str,
    /// The peer as the file gives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// What it loaded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// µs since 1970.
    pub start_us: i64,
    /// How long it took.
    pub duration_s: f64,
    /// What it measured, by name.
    pub values: Values,
    /// Why there are no values, where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
}

/// A message about a run, and how serious it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// How serious.
    pub level: Level,
    /// For people.
    pub message: String,
}

/// How serious a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The run was left out on purpose.
    Info,
    /// The resource was busy.
    Warning,
    /// The run failed.
    Error,
}

impl Outcome {
    /// A run that ended, with what its output was read as.
    pub fn new(test: &Test, start_us: i64, duration_s: f64, read: Result<Values, Note>) -> Outcome {
        let (values, note) = match read {
            Ok(values) => (values, None),
            Err(note) => (Values::new(), Some(note)),
        };
        Outcome {
            test: test.name.clone(),
            tool: test.tool.name(),
            to: test.to.clone(),
            resources: test.resources.clone(),
            start_us,
            duration_s,
            values,
            note,
        }
    }

    /// A run failed: the peer may need to be left in peace for a while.
    pub fn is_failure(&self) -> bool {
        let note = self.note.as_ref();
        note.is_some_and(|note| note.level == Level::Error)
    }

    /// The name of its event, such as `test.ping`.
    pub fn event_name(&self) -> String {
        format!("test.{}", self.tool)
    }

    /// The one number of its event: the value that the tool is there for.
    pub fn main_value(&self) -> Option<f64> {
        let main = ["rtt_avg", "goodput", "hops", "path_mtu"];
        let named = main.iter().find_map(|name| self.values.get(*name));
        named
            .or(self.values.values().next())
            .map(|(value, _)| *value)
    }
}

impl Note {
    /// Something failed.
    pub fn error(message: impl Into<String>) -> Note {
        Note {
            level: Level::Error,
            message: message.into(),
        }
    }
}
