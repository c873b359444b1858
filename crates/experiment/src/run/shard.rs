// SPDX-License-Identifier: MIT OR Apache-2.0
//! Equal parts of an experiment's runs, so that several machines make one experiment.
//!
//! Pure: every machine deals alike. Start with [`deal`].

use std::collections::HashSet;
use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use fatpath_scenario::hash_of_name;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::order::Planned;

/// One of the parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// Which, from 1.
    pub index: u32,
    /// Of how many.
    pub count: u32,
}

/// What is no part.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ShardError {
    /// Not two numbers.
    #[error("give K/N, such as 1/4: the first of four parts")]
    Form,
    /// A job array that begins at 0.
    #[error("parts count from 1; of a job array that begins at 0, give its index plus 1")]
    Zero,
    /// Of four parts, the fifth.
    #[error("part {index} of {count} does not exist; give 1 to {count}")]
    Beyond {
        /// K.
        index: u32,
        /// N.
        count: u32,
    },
}

impl From<ParseIntError> for ShardError {
    fn from(_: ParseIntError) -> ShardError {
        ShardError::Form
    }
}

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Shard, ShardError> {
        let (index, count) = text.split_once('/').ok_or(ShardError::Form)?;
        let (index, count) = (index.parse()?, count.parse()?);
        match index {
            0 => Err(ShardError::Zero),
            _ if index > count => Err(ShardError::Beyond { index, count }),
            _ => Ok(Shard { index, count }),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        write!(to, "{}/{}", self.index, self.count)
    }
}

/// Of each run, which of `count` parts it belongs to, from 1. Warm-up runs must not be among them.
///
/// Neighbouring runs often take equally long, and every so many take the same values of `[vary]`; so runs are
/// dealt out in an order without a pattern. Repeat by repeat: with more repeats, every run stays where it is.
pub(super) fn deal(runs: &[Planned], count: u32) -> Vec<u32> {
    let mut dealt: Vec<usize> = (0..runs.len()).collect();
    dealt.sort_by_cached_key(|run| {
        let run = &runs[*run];
        (run.repeat(), hash_of_name(0, &run.name()))
    });
    let mut parts = vec![0; runs.len()];
    for (place, run) in (0u32..).zip(dealt) {
        parts[run] = place % count + 1;
    }
    parts
}

/// The runs that count, of one part or of all, by the label of their case and the repeat.
pub(crate) fn runs_of<'c>(shard: Option<Shard>, all: &[Planned<'c>]) -> HashSet<(&'c str, u32)> {
    let counted = all.iter().filter(|run| run.repeat().is_some());
    let counted: Vec<Planned> = counted.copied().collect();
    let parts = shard.map(|shard| deal(&counted, shard.count));
    let is_own = |place: usize| match (shard, &parts) {
        (Some(shard), Some(parts)) => parts[place] == shard.index,
        _ => true,
    };
    let own = counted
        .iter()
        .enumerate()
        .filter(|(place, _)| is_own(*place));
    own.filter_map(|(_, run)| Some((run.case.label(), run.repeat()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::order::{Turn, sequence};
    use fatpath_scenario::{Case, Experiment, Order, Scenario};
    use proptest::prelude::*;

    /// A case for each of so many values.
    fn scenario(cases: usize) -> Scenario {
        let values: Vec<String> = (1..=cases).map(|n| format!("\"{n}ms\"")).collect();
        let text = format!(
            "name = \"x\"\n[hosts.a]\n[hosts.b]\n[links.wan]\nbetween = [\"a\", \"b\"]\n\
             delay = \"{{way}}\"\n[vary]\nway = [{}]\n",
            values.join(", ")
        );
        Scenario::parse("x.toml", &text).unwrap()
    }

    fn experiment(repeats: u32, order: Order) -> Experiment {
        Experiment {
            repeats,
            order,
            ..Experiment::default()
        }
    }

    /// The runs of each part.
    fn parts<'c>(
        cases: &[&'c Case],
        experiment: &Experiment,
        count: u32,
    ) -> Vec<HashSet<(&'c str, u32)>> {
        let all = sequence(cases, experiment, |_, _| false);
        let shards = (1..=count).map(|index| Shard { index, count });
        shards.map(|shard| runs_of(Some(shard), &all)).collect()
    }

    proptest! {
        /// Also of more parts than there are runs.
        #[test]
        fn parts_are_a_partition_into_equal_sizes(
            cases in 1..12usize, repeats in 1..6u32, count in 1..90u32, seed: u64, is_random: bool,
        ) {
            let scenario = scenario(cases);
            let cases: Vec<&Case> = scenario.cases.iter().collect();
            let order = if is_random { Order::Random { seed } } else { Order::File };
            let experiment = experiment(repeats, order);
            let parts = parts(&cases, &experiment, count);
            let all = sequence(&cases, &experiment, |_, _| false);
            let sizes: Vec<usize> = parts.iter().map(HashSet::len).collect();
            prop_assert_eq!(sizes.iter().sum::<usize>(), all.len());
            let union: HashSet<_> = parts.into_iter().flatten().collect();
            prop_assert_eq!(union, runs_of(None, &all));
            let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
            prop_assert!(most - least <= 1);
        }

        #[test]
        fn the_order_and_more_repeats_leave_runs_in_their_part(count in 1..9u32, seed: u64) {
            let scenario = scenario(7);
            let cases: Vec<&Case> = scenario.cases.iter().collect();
            let few = parts(&cases, &experiment(2, Order::File), count);
            let many = parts(&cases, &experiment(5, Order::Random { seed }), count);
            for (few, many) in few.iter().zip(&many) {
                prop_assert!(few.is_subset(many));
            }
        }
    }

    /// Runs dealt out in the order of the file would give each of eight parts one value alone.
    #[test]
    fn a_part_has_several_values_of_what_varies() {
        let scenario = scenario(8);
        let cases: Vec<&Case> = scenario.cases.iter().collect();
        for part in parts(&cases, &experiment(10, Order::File), 8) {
            let labels: HashSet<&str> = part.iter().map(|(label, _)| *label).collect();
            assert!(labels.len() >= 4, "{labels:?}");
        }
    }

    #[test]
    fn warm_up_runs_belong_to_no_part() {
        let scenario = scenario(3);
        let cases: Vec<&Case> = scenario.cases.iter().collect();
        let plain = experiment(2, Order::File);
        let warm = Experiment {
            warm_up_runs: 2,
            ..plain.clone()
        };
        let all = sequence(&cases, &warm, |_, _| false);
        assert!(all.iter().any(|run| run.turn == Turn::WarmUp(2)));
        assert_eq!(parts(&cases, &warm, 4), parts(&cases, &plain, 4));
    }

    #[test]
    fn what_is_no_part_is_refused() {
        let read = |text: &str| text.parse::<Shard>();
        assert_eq!(read("3/4"), Ok(Shard { index: 3, count: 4 }));
        for text in [
            "",
            "3",
            "/4",
            "3/",
            "-1/4",
            "3/4/5",
            "one/4",
            "1/99999999999",
        ] {
            assert_eq!(read(text), Err(ShardError::Form), "{text}");
        }
        assert_eq!(read("0/4"), Err(ShardError::Zero));
        let (index, count) = (5, 4);
        assert_eq!(read("5/4"), Err(ShardError::Beyond { index, count }));
        assert_eq!(read("4/4").unwrap().to_string(), "4/4");
    }
}
