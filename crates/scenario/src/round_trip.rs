// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a way there and back takes, and what fits it.
//!
//! Pure. Start with [`Plan::round_trip`].

use fatpath_link::CellSpec;

use super::plan::Plan;

/// A way there and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// The constant delays.
    pub rtt_ns: u64,
    /// The longest IP packet that passes. Who sends a longer one is told (RFC 1191).
    pub mtu_bytes: u32,
}

impl Plan {
    /// Of data that `from` sends to `to`; `None`: no way.
    pub fn round_trip(&self, from: &str, to: &str) -> Option<RoundTrip> {
        let mut round = RoundTrip {
            rtt_ns: 0,
            mtu_bytes: u32::MAX,
        };
        for (here, there) in [(from, to), (to, from)] {
            for (link, direction) in self.way(here, there)? {
                let cells = &link.directions[direction].cells;
                round.mtu_bytes = round.mtu_bytes.min(link.mtu_bytes.into());
                cells.iter().for_each(|cell| round.pass(cell));
            }
        }
        Some(round)
    }
}

impl RoundTrip {
    fn pass(&mut self, cell: &CellSpec) {
        match cell {
            CellSpec::Delay(delay) => self.rtt_ns += delay.delay_ns,
            CellSpec::Mtu(mtu) => self.mtu_bytes = self.mtu_bytes.min(mtu.mtu_bytes),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Scenario;

    use super::*;

    #[test]
    fn delays_add_up_and_the_least_mtu_counts() {
        let text = "name = \"x\"\n[hosts.a]\n[hosts.r]\nrouter = true\n[hosts.b]\n\
                    [links.near]\nbetween = [\"a\", \"r\"]\nforward.delay = \"1ms\"\nmtu = 9000\n\
                    [links.far]\nbetween = [\"r\", \"b\"]\ndelay = \"20ms\"\npath_mtu = 1400\n";
        let scenario = Scenario::parse("x.toml", text).unwrap();
        let plan = Plan::of(&scenario, &scenario.cases[0], "flows.jsonl".into());
        let found = plan.round_trip("a", "b").unwrap();
        assert_eq!((found.rtt_ns, found.mtu_bytes), (41_000_000, 1400));
        assert_eq!(plan.round_trip("b", "a"), Some(found));
    }
}
