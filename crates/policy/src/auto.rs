// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is learned of paths, and what comes of it: the `[auto]` section. Without one nothing is learned.

use crate::Prefix;
use serde::Serialize;

/// The `[auto]` section.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Auto {
    /// Whether paths are learned, and tuned.
    pub mode: AutoMode,
    /// Peers of which nothing is learned.
    pub exclude: Vec<Prefix>,
    /// Peers to which the paths are the site's own: their flows may get a law that takes more than others.
    pub private: Vec<Prefix>,
    /// What flows get for it replaces smaller buffers that their programs set.
    pub override_application: bool,
}

impl Auto {
    /// Whether flows may get buffers in place of those that their programs set.
    pub fn overrides(&self) -> bool {
        self.override_application && self.mode == AutoMode::Tune
    }
}

/// Whether paths are learned, and tuned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AutoMode {
    /// Nothing is learned.
    #[default]
    Off,
    /// Paths are learned, and it is told what their flows would get.
    Observe,
    /// Flows that no rule of the file matches get it.
    Tune,
}

impl AutoMode {
    /// All.
    pub const ALL: [AutoMode; 3] = [AutoMode::Off, AutoMode::Observe, AutoMode::Tune];

    /// Its name, as the policy file has it.
    pub fn name(self) -> &'static str {
        match self {
            AutoMode::Off => "off",
            AutoMode::Observe => "observe",
            AutoMode::Tune => "tune",
        }
    }
}
