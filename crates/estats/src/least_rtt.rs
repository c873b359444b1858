// SPDX-License-Identifier: MIT OR Apache-2.0
//! Least round-trip times between two addresses, of all flows between them: one that began while others kept a queue
//! never had the path's own.

use fatpath_api::Sample;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;

/// A path may become longer: what was least is forgotten after one to two of these. The kernel's own least is as old
/// (`net.ipv4.tcp_min_rtt_wlen`).
const WINDOW_NS: u64 = 300_000_000_000;

/// For as long as the table has a flow of these ends.
#[derive(Debug, Default)]
pub(crate) struct LeastRtts(HashMap<Ends, Least>);

/// Addresses mean something in their network namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Ends {
    netns: u32,
    local: IpAddr,
    remote: IpAddr,
}

impl Ends {
    fn of(sample: &Sample) -> Ends {
        let flow = &sample.flow;
        Ends {
            netns: flow.netns,
            local: flow.local.ip(),
            remote: flow.remote.ip(),
        }
    }
}

#[derive(Debug, Default)]
struct Least {
    flows: usize,
    began_ns: u64,
    us: Option<u32>,
    before_us: Option<u32>,
}

impl LeastRtts {
    /// The table has one flow more of these ends.
    pub(crate) fn begin(&mut self, first: &Sample) {
        self.0.entry(Ends::of(first)).or_default().flows += 1;
    }

    /// It has one less.
    pub(crate) fn end(&mut self, last: &Sample) {
        if let Entry::Occupied(mut least) = self.0.entry(Ends::of(last)) {
            least.get_mut().flows -= 1;
            if least.get().flows == 0 {
                least.remove();
            }
        }
    }

    /// Takes a sample of a flow that began; answers with the least of its ends, µs.
    pub(crate) fn take(&mut self, sample: &Sample) -> Option<u32> {
        let least = self.0.get_mut(&Ends::of(sample))?;
        if sample.now_ns.saturating_sub(least.began_ns) >= WINDOW_NS {
            (least.before_us, least.us, least.began_ns) = (least.us, None, sample.now_ns);
        }
        least.us = smaller(least.us, sample.min_rtt_us);
        smaller(least.us, least.before_us)
    }
}

fn smaller(one: Option<u32>, other: Option<u32>) -> Option<u32> {
    one.into_iter().chain(other).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{SECOND, sample};
    use fatpath_api::SampleKind;

    fn at(second: u64, min_rtt_us: u32) -> Sample {
        Sample {
            min_rtt_us: Some(min_rtt_us),
            ..sample(1, SampleKind::Interval, second * SECOND)
        }
    }

    #[test]
    fn the_least_of_both_flows_counts_until_it_is_old() {
        let mut rtts = LeastRtts::default();
        rtts.begin(&at(1000, 20));
        rtts.begin(&at(1000, 50));
        assert_eq!(rtts.take(&at(1000, 20)), Some(20));
        assert_eq!(rtts.take(&at(1001, 50)), Some(20));
        assert_eq!(rtts.take(&at(1299, 50)), Some(20));
        assert_eq!(rtts.take(&at(1300, 50)), Some(20), "of the window before");
        assert_eq!(rtts.take(&at(1601, 50)), Some(50));
    }

    #[test]
    fn nothing_is_kept_of_flows_that_are_gone() {
        let mut rtts = LeastRtts::default();
        let flow = at(1, 20);
        assert_eq!(rtts.take(&flow), None);
        rtts.begin(&flow);
        rtts.begin(&flow);
        rtts.end(&flow);
        assert_eq!(rtts.take(&flow), Some(20));
        rtts.end(&flow);
        assert!(rtts.0.is_empty());
    }
}
