// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a figure is, and how its samples become one value. No I/O.

use crate::run::Run;
use fatpath_statistics::median;
use serde::{Deserialize, Serialize};

/// One promised number.
pub struct Figure {
    /// `part.what_unit`: unique.
    pub name: &'static str,
    /// One line for people.
    pub what: &'static str,
    /// Unit of the value and of the samples.
    pub unit: &'static str,
    /// Which way is good.
    pub better: Better,
    /// The value to reach; none when the figure is only reported.
    pub goal: Option<f64>,
    /// How the samples become the value.
    pub summary: Summary,
    /// Measures; answers the samples.
    pub measure: fn(&Run) -> anyhow::Result<Vec<f64>>,
}

/// Which way is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}

/// How samples become one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Summary {
    /// The middle one; of an even number, the mean of the two in the middle.
    Median,
    /// The greatest magnitude.
    Worst,
    /// The smallest.
    Least,
}

impl Figure {
    /// Whether a value reaches the goal; none without a goal.
    pub fn is_reached(&self, value: f64) -> Option<bool> {
        self.goal.map(|goal| match self.better {
            Better::Higher => value >= goal,
            Better::Lower => value <= goal,
        })
    }
}

impl Summary {
    /// `None` without samples.
    pub fn of(self, samples: &[f64]) -> Option<f64> {
        match self {
            Summary::Median => median(samples),
            Summary::Worst => samples.iter().map(|s| s.abs()).max_by(f64::total_cmp),
            Summary::Least => samples.iter().copied().min_by(f64::total_cmp),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(Summary::Median.of(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(Summary::Median.of(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(Summary::Median.of(&[]), None);
    }

    #[test]
    fn the_worst_has_no_sign() {
        assert_eq!(Summary::Worst.of(&[0.1, -0.3, 0.2]), Some(0.3));
        assert_eq!(Summary::Worst.of(&[]), None);
    }

    #[test]
    fn the_least_has_its_sign() {
        assert_eq!(Summary::Least.of(&[0.1, -0.3, 0.2]), Some(-0.3));
        assert_eq!(Summary::Least.of(&[]), None);
    }

    #[test]
    fn a_goal_is_met_from_its_good_side() {
        let figure = |better| Figure {
            name: "f",
            what: "",
            unit: "",
            better,
            goal: Some(0.5),
            summary: Summary::Median,
            measure: |_| Ok(vec![]),
        };
        assert_eq!(figure(Better::Higher).is_reached(0.6), Some(true));
        assert_eq!(figure(Better::Lower).is_reached(0.6), Some(false));
    }
}
