// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of flows, as the streams of the page read it.

use super::Instruments;
use fatpath_api::{FlowView, Lost};
use fatpath_estats::Changed;
use fatpath_page::Source;

impl Source for Instruments {
    fn changed(&self, mark: u64) -> Changed {
        Instruments::changed(self, mark)
    }

    fn views(&self, cookies: &[u64]) -> Vec<FlowView> {
        self.views_of(cookies)
    }

    fn lost(&self) -> Lost {
        let Some(counts) = self.counts() else {
            return Lost::default();
        };
        Lost {
            samples_lost: counts.samples_lost,
            flows_beyond_bounds: counts.flows_beyond_bounds,
            flows_without_storage: counts.flows_without_storage,
        }
    }
}
