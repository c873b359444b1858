// SPDX-License-Identifier: MIT OR Apache-2.0
//! The instruments' wiring: samples go from the kernel half into one table, and to whoever records them;
//! the API reads the table.
//!
//! Nothing here judges: that is `fatpath-estats`. Start at [`Instruments`].

pub(crate) mod answers;

use crate::api::held;
use fatpath_estats::{Bounds, Changes, Derived, FlowDetail, FlowTable, FlowView, Sample, Why};
use std::sync::{Arc, Mutex};
use tokio::sync::broadcast;

/// Samples that a recorder may lag behind before it loses the oldest and is told how many.
const LAG: usize = 8192;

/// The table of flows, and the way of samples to it.
pub(crate) struct Instruments {
    table: Mutex<FlowTable>,
    samples: broadcast::Sender<Arc<Sample>>,
}

impl Default for Instruments {
    fn default() -> Instruments {
        Instruments {
            table: Mutex::new(FlowTable::new(Bounds::default())),
            samples: broadcast::Sender::new(LAG),
        }
    }
}

impl Instruments {
    /// What a policy that became live names.
    pub(crate) fn set_policy(
        &self,
        rules: impl IntoIterator<Item = (u32, String)>,
        derived: Derived,
    ) {
        held(&self.table).set_policy(rules, derived);
    }

    /// Takes samples in the order in which they came.
    pub(crate) fn take(&self, samples: impl IntoIterator<Item = Sample>) {
        let is_recorded = self.samples.receiver_count() > 0;
        let mut table = held(&self.table);
        for sample in samples {
            if is_recorded {
                // Fails only when the last recorder went meanwhile.
                let _ = self.samples.send(Arc::new(sample.clone()));
            }
            table.take(sample);
        }
    }

    /// A walk over all sockets that began at `since_ns` is done.
    pub(crate) fn end_unheard(&self, since_ns: u64) {
        held(&self.table).end_unheard(since_ns);
    }

    /// Every sample from now on; a reader that is too slow is told how many it missed.
    #[allow(dead_code)] // read by the exports
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Arc<Sample>> {
        self.samples.subscribe()
    }

    pub(crate) fn views(&self) -> Vec<FlowView> {
        held(&self.table).views().collect()
    }

    pub(crate) fn detail(&self, cookie: u64) -> Option<FlowDetail> {
        held(&self.table).detail(cookie)
    }

    pub(crate) fn whys(&self) -> Vec<Why> {
        held(&self.table).whys().collect()
    }

    /// What changed since the mark; 0 = everything.
    #[allow(dead_code)] // read by the page's stream
    pub(crate) fn changes(&self, mark: u64) -> Changes {
        held(&self.table).changes(mark)
    }
}
