// SPDX-License-Identifier: MIT OR Apache-2.0
//! What limits a direction of a link: what its figures are compared with.
//!
//! Pure. A rate that is not one throughout is no measure, and is told as such. Start with [`Limit`].

use std::time::Duration;

use fatpath_link::{CellSpec, ChainSpec, Count, Exceed, PolicerSpec, RateSpec, Service};

use super::plan::Plan;
use super::{Link, TimedChange};

/// What limits a direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Nothing does.
    None,
    /// One rate throughout.
    Constant {
        /// Bits a second on the wire.
        rate_bps: u64,
        /// What the wire adds to each segment.
        overhead_bytes: u32,
    },
    /// Steps, a trace, or a rate that is changed.
    Varying,
}

impl Limit {
    /// Of a direction (0 or 1) of a link in its first `lasting`, with what changes in it.
    pub fn during(
        link: &Link,
        direction: usize,
        changes: &[TimedChange],
        lasting: Duration,
    ) -> Limit {
        let first = Limit::of(&link.directions[direction]);
        let mut changes = changes
            .iter()
            .filter(|change| change.link == link.name && change.at < lasting);
        match changes.all(|change| Limit::of(&change.directions[direction]) == first) {
            true => first,
            false => Limit::Varying,
        }
    }

    fn of(chain: &ChainSpec) -> Limit {
        let limits = chain.cells.iter().map(|cell| match cell {
            CellSpec::Rate(rate) => Limit::of_rate(rate),
            CellSpec::Policer(policer) => Limit::of_policer(policer),
            _ => Limit::None,
        });
        limits.fold(Limit::None, Limit::and)
    }

    fn of_rate(rate: &RateSpec) -> Limit {
        match rate.service {
            Service::Unlimited => Limit::None,
            Service::Constant { rate_bps } => Limit::Constant {
                rate_bps,
                overhead_bytes: rate.overhead_bytes,
            },
            Service::Steps { .. } | Service::Opportunities { .. } => Limit::Varying,
        }
    }

    /// What marks only lets everything pass.
    fn of_policer(policer: &PolicerSpec) -> Limit {
        match (policer.exceed, policer.burst_bytes) {
            (Exceed::Drop, Some(_)) => Limit::Constant {
                rate_bps: policer.rate_bps,
                overhead_bytes: 0,
            },
            _ => Limit::None,
        }
    }

    /// One after the other: the lesser of the two.
    pub fn and(self, other: Limit) -> Limit {
        match (self, other) {
            (Limit::Varying, _) | (_, Limit::Varying) => Limit::Varying,
            (Limit::None, one) | (one, Limit::None) => one,
            (one, other) if one.rate_bps() <= other.rate_bps() => one,
            (_, other) => other,
        }
    }

    /// `None` unless there is one throughout.
    pub fn rate_bps(self) -> Option<u64> {
        match self {
            Limit::Constant { rate_bps, .. } => Some(rate_bps),
            Limit::None | Limit::Varying => None,
        }
    }

    /// The share of it that `left` took in so many seconds (above 0), its overhead included; `None`
    /// unless there is one rate throughout.
    pub fn utilisation(self, left: Count, duration_s: f64) -> Option<f64> {
        let Limit::Constant {
            rate_bps,
            overhead_bytes,
        } = self
        else {
            return None;
        };
        let bytes = left.bytes + left.packets * u64::from(overhead_bytes);
        Some(bytes as f64 * 8.0 / duration_s / rate_bps as f64)
    }
}

/// The bottleneck of data from the first to the second of each pair of hosts; `None` if there is none, if its
/// rate is not one in the first `lasting`, or not the same for all pairs.
pub fn bottleneck_mbps_between<'e>(
    plan: &Plan,
    changes: &[TimedChange],
    ends: impl IntoIterator<Item = (&'e str, &'e str)>,
    lasting: Duration,
) -> Option<f64> {
    let mut rates = ends.into_iter().map(|(from, to)| {
        let way = plan.way(from, to)?.into_iter();
        let limits = way.map(|(link, direction)| Limit::during(link, direction, changes, lasting));
        limits.fold(Limit::None, Limit::and).rate_bps()
    });
    let first = rates.next()??;
    rates
        .all(|rate| rate == Some(first))
        .then(|| first as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;

    /// Forward and backward, of a link with these keys, for so many seconds.
    fn limits(keys: &str, lasting_s: u64) -> [Limit; 2] {
        let text = format!(
            "name = \"x\"\n[hosts.a]\n[hosts.b]\n[links.wan]\nbetween = [\"a\", \"b\"]\n{keys}"
        );
        let scenario = Scenario::parse("x.toml", &text).unwrap();
        let case = &scenario.cases[0];
        [0, 1].map(|direction| {
            let lasting = Duration::from_secs(lasting_s);
            Limit::during(&case.links[0], direction, &case.changes, lasting)
        })
    }

    fn constant(rate_bps: u64, overhead_bytes: u32) -> Limit {
        Limit::Constant {
            rate_bps,
            overhead_bytes,
        }
    }

    #[test]
    fn only_a_rate_that_stays_is_a_measure() {
        let is = |keys: &str, limit| assert_eq!(limits(keys, 10)[0], limit, "{keys}");
        is("", Limit::None);
        is(
            "rate = \"5mbit\"\noverhead = \"38B\"",
            constant(5_000_000, 38),
        );
        is(
            "cells = [{ rate = \"5mbit\" }, { rate = \"2mbit\" }]",
            constant(2_000_000, 0),
        );
        let policed = |exceed| {
            format!(
                "rate = \"5mbit\"\npolicer = {{ rate = \"1mbit\", burst = \"9kB\", exceed = \"{exceed}\" }}"
            )
        };
        let [dropping, marking] = ["drop", "mark"].map(policed);
        is(&dropping, constant(1_000_000, 0));
        is(&marking, constant(5_000_000, 0));
        is(
            "rate_steps = [{ at = \"0s\", rate = \"5mbit\" }, { at = \"1s\", rate = \"1mbit\" }]",
            Limit::Varying,
        );
    }

    #[test]
    fn a_change_counts_if_it_is_one_of_the_rate_and_comes_in_time() {
        let change = |key| {
            format!("rate = \"5mbit\"\n[[change]]\nat = \"5s\"\nlink = \"wan\"\nforward.{key}")
        };
        let (faster, lossy) = (change("rate = \"9mbit\""), change("loss = \"1%\""));
        let five = constant(5_000_000, 0);
        assert_eq!(limits(&faster, 6), [Limit::Varying, five]);
        assert_eq!(limits(&faster, 5), [five; 2]);
        assert_eq!(limits(&lossy, 6), [five; 2]);
    }

    #[test]
    fn a_full_wire_is_used_wholly_whatever_it_adds() {
        let left = Count {
            packets: 1000,
            bytes: 1_500_000,
        };
        let full = constant(1696 * 8 * 1000, 196);
        assert_eq!(full.utilisation(left, 1.0), Some(1.0));
        assert_eq!(Limit::Varying.utilisation(left, 1.0), None);
    }
}
