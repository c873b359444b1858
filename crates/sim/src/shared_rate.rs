// SPDX-License-Identifier: MIT OR Apache-2.0
//! A rate that flows share: each connection counts those that send, by the very C of the kernel half
//! (bpf/cc/senders.h), and is told its part.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use fatpath_cc::Senders;

use crate::FlowSpec;

/// A host's clock is not at 0, which to the count means that nobody has sent yet.
const CLOCK_BEGAN_NS: u64 = 3_600_000_000_000;

/// The groups of a spec, by their number.
#[derive(Debug, Default)]
pub(crate) struct Groups(HashMap<usize, Rc<RefCell<Senders>>>);

/// What the connections of a flow share with those of others.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    senders: Rc<RefCell<Senders>>,
    whole_bps: u64,
    /// What the flow's own program, or its rule, bounds it to.
    most_bps: u64,
}

/// A connection's part.
#[derive(Debug)]
pub(crate) struct Part {
    of: Shared,
    counted_in: u32,
    /// Of how many it was told last.
    flows: u32,
}

impl Groups {
    /// What this flow shares.
    pub(crate) fn shared(&mut self, flow: &FlowSpec) -> Option<Shared> {
        let rate = flow.shared_rate?;
        Some(Shared {
            senders: self.0.entry(rate.group).or_default().clone(),
            whole_bps: rate.bps,
            most_bps: flow.tcp.pacing_rate_bps.unwrap_or(u64::MAX),
        })
    }
}

impl Shared {
    /// Of a connection that begins.
    pub(crate) fn part(&self) -> Part {
        Part {
            of: self.clone(),
            counted_in: 0,
            flows: 0,
        }
    }
}

impl Part {
    /// It sends, or is acknowledged. Its rate, bits a second, if it is another one.
    pub(crate) fn note(&mut self, now_ns: u64, srtt_us: u32) -> Option<u64> {
        let mut senders = self.of.senders.borrow_mut();
        let now_ns = now_ns.saturating_add(CLOCK_BEGAN_NS);
        let flows = senders.note(&mut self.counted_in, now_ns, srtt_us);
        if flows == self.flows {
            return None;
        }
        self.flows = flows;
        let share_bps = 8 * Senders::share_of_rate(self.of.whole_bps / 8, flows);
        Some(share_bps.min(self.of.most_bps))
    }
}
