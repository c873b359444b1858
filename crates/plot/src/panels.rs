// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs by case of the network: a panel for each, with the colours of the variants.
//!
//! It draws nothing. Start with [`Panels::of`].

use plotters::style::RGBColor;

use super::{LINES, in_order};

pub(super) const PANEL_HEIGHT_PX: u32 = 380;
/// More panels are not read, and a picture has its limits.
const MOST_PANELS: usize = 24;

/// What is drawn in the panel of its case of the network, in the colour of its case of the tuning.
pub(super) trait OfCase {
    /// What stands above the panel.
    fn panel(&self) -> &str;

    /// The case of the tuning.
    fn variant(&self) -> &str;
}

/// The panels of a figure.
#[derive(Debug)]
pub(super) struct Panels<'r, R> {
    pub(super) panels: Vec<Panel<'r, R>>,
    variants: Vec<&'r str>,
}

/// A case of the network.
#[derive(Debug)]
pub(super) struct Panel<'r, R> {
    pub(super) caption: &'r str,
    pub(super) runs: Vec<&'r R>,
}

impl<'r, R: OfCase> Panels<'r, R> {
    /// The first cases of the network, in the order in which they come.
    pub(super) fn of(runs: &[&'r R]) -> Panels<'r, R> {
        let mut panels: Vec<Panel<R>> = vec![];
        for run in runs {
            let caption = run.panel();
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
            variants: in_order(runs.iter().map(|run| run.variant())),
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
