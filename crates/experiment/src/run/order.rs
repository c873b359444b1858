// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which runs are to be made, in which order.
//!
//! Pure: equal seeds shuffle alike. Start with [`sequence`].

use fatpath_scenario::{Case, Experiment, Order, mixed};

/// A run that is to be made.
#[derive(Clone, Copy, Debug)]
pub struct Planned<'c> {
    /// Of which case.
    pub case: &'c Case,
    /// Which of its runs.
    pub turn: Turn,
}

/// Which of its case's runs it is, each from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It does not count.
    WarmUp(u32),
    /// It counts.
    Repeat(u32),
}

impl Planned<'_> {
    /// Which repeat it is; `None`: it does not count.
    pub fn repeat(&self) -> Option<u32> {
        match self.turn {
            Turn::WarmUp(_) => None,
            Turn::Repeat(repeat) => Some(repeat),
        }
    }

    /// What the names of its files begin with.
    pub fn name(&self) -> String {
        let label = self.case.label();
        match self.turn {
            Turn::WarmUp(n) => format!("{label}.warm-up{n}"),
            Turn::Repeat(n) => name_of_run(label, n),
        }
    }

    /// In words.
    pub fn description(&self) -> String {
        let case = self.case;
        let vary = case.vary.iter();
        let vary: String = vary
            .map(|(name, value)| format!(", {name} = {value}"))
            .collect();
        let turn = match self.turn {
            Turn::WarmUp(_) => ", warm-up".to_owned(),
            Turn::Repeat(1) => String::new(),
            Turn::Repeat(n) => format!(", repeat {n}"),
        };
        format!("{}, {}{vary}{turn}", case.path, case.variant)
    }
}

/// What the names of the files of a run that counts begin with.
pub(super) fn name_of_run(label: &str, repeat: u32) -> String {
    format!("{label}.{repeat}")
}

/// All runs that are not done yet, each case's warm-up right before the first of them.
pub(crate) fn sequence<'c>(
    cases: &[&'c Case],
    experiment: &Experiment,
    is_done: impl Fn(&Case, u32) -> bool,
) -> Vec<Planned<'c>> {
    let repeats = 1..=experiment.repeats;
    let mut runs: Vec<(usize, u32)> = repeats
        .flat_map(|repeat| (0..cases.len()).map(move |place| (place, repeat)))
        .collect();
    if let Order::Random { seed } = experiment.order {
        shuffle(&mut runs, seed);
    }
    let mut is_warm = vec![false; cases.len()];
    let mut sequence = vec![];
    for (place, repeat) in runs {
        let case = cases[place];
        if is_done(case, repeat) {
            continue;
        }
        if !std::mem::replace(&mut is_warm[place], true) {
            let warm_up = (1..=experiment.warm_up_runs).map(Turn::WarmUp);
            sequence.extend(warm_up.map(|turn| Planned { case, turn }));
        }
        let turn = Turn::Repeat(repeat);
        sequence.push(Planned { case, turn });
    }
    sequence
}

/// Fisher and Yates: every order is as likely, but for 2^-64 parts.
fn shuffle<T>(items: &mut [T], seed: u64) {
    for last in (1..items.len()).rev() {
        let random = mixed(mixed(seed) ^ last as u64);
        items.swap(last, (random % (last as u64 + 1)) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fatpath_scenario::Scenario;
    use proptest::prelude::*;

    const TWO_PATHS: &str = r#"
        name = "x"
        [hosts.a]
        [[path]]
        name = "one"
        [[path]]
        name = "two"
    "#;

    fn names(experiment: &Experiment, is_done: impl Fn(&Case, u32) -> bool) -> Vec<String> {
        let scenario = Scenario::parse("x.toml", TWO_PATHS).unwrap();
        let cases: Vec<&Case> = scenario.cases.iter().collect();
        let sequence = sequence(&cases, experiment, is_done);
        sequence.iter().map(Planned::name).collect()
    }

    #[test]
    fn each_case_is_warmed_up_before_its_first_run() {
        let experiment = Experiment {
            repeats: 2,
            warm_up_runs: 1,
            ..Experiment::default()
        };
        let all = [
            "one.default.warm-up1",
            "one.default.1",
            "two.default.warm-up1",
            "two.default.1",
            "one.default.2",
            "two.default.2",
        ];
        assert_eq!(names(&experiment, |_, _| false), all);
        let left = names(&experiment, |case, repeat| {
            case.path == "one" || repeat == 1
        });
        assert_eq!(left, ["two.default.warm-up1", "two.default.2"]);
    }

    proptest! {
        #[test]
        fn a_shuffle_keeps_every_run_and_equal_seeds_agree(seed: u64, repeats in 1..40u32) {
            let experiment = Experiment {
                repeats,
                order: Order::Random { seed },
                ..Experiment::default()
            };
            let shuffled = names(&experiment, |_, _| false);
            prop_assert_eq!(&shuffled, &names(&experiment, |_, _| false));
            let in_order = Experiment { order: Order::File, ..experiment };
            let (mut shuffled, mut all) = (shuffled, names(&in_order, |_, _| false));
            shuffled.sort();
            all.sort();
            prop_assert_eq!(shuffled, all);
        }
    }

    #[test]
    fn seeds_differ() {
        let with = |seed| Experiment {
            repeats: 20,
            order: Order::Random { seed },
            ..Experiment::default()
        };
        assert_ne!(names(&with(1), |_, _| false), names(&with(2), |_, _| false));
    }
}
