// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs by case of the network: a panel for each, with the colours of the variants.
//!
//! It draws nothing. Start with [`Panels::of`].

use plotters::style::RGBColor;

use super::{LINES, in_order};
use crate::results::Run;

pub(super) const PANEL_HEIGHT_PX: u32 = 380;
/// More panels are not read, and a picture has its limits.
const MOST_PANELS: usize = 24;

/// The panels of a figure.
#[derive(Debug)]
pub(super) struct Panels<'r> {
    pub(super) panels: Vec<Panel<'r>>,
    variants: Vec<&'r str>,
}

/// A case of the network.
#[derive(Debug)]
pub(super) struct Panel<'r> {
    pub(super) caption: String,
    pub(super) runs: Vec<&'r Run>,
}

impl<'r> Panels<'r> {
    /// The first cases of the network, in the order in which they come.
    pub(super) fn of(runs: &[&'r Run]) -> Panels<'r> {
        let mut panels: Vec<Panel> = vec![];
        for run in runs {
            let caption = caption(run);
            match panels.iter_mut().find(|panel| panel.caption == caption) {
                Some(panel) => panel.runs.push(run),
                None => panels.push(Panel {
                    caption,
                    runs: vec![run],
                }),
            }
        }
        panels.truncate(MOST_PANELS);
        Panels {
            panels,
            variants: in_order(runs.iter().map(|run| run.row.variant.as_str())),
        }
    }

    /// The colour of a variant.
    pub(super) fn colour(&self, variant: &str) -> RGBColor {
        let place = self.variants.iter().position(|other| *other == variant);
        LINES[place.unwrap_or(0) % LINES.len()]
    }

    pub(super) fn height_px(&self) -> u32 {
        PANEL_HEIGHT_PX * self.panels.len() as u32
    }
}

fn caption(run: &Run) -> String {
    let vary = run.row.vary.iter();
    let vary = vary.map(|(name, value)| format!(", {name} = {value}"));
    run.row.path.clone() + &vary.collect::<String>()
}
