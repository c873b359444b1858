// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each model of `crates/model` against the simulator, in its range.

mod long_run;
mod queues;
mod times;

use crate::figure::{Better, Figure, Summary};
use crate::run::Run;
use anyhow::{Result, ensure};
use fatpath_model::{MODELS, Model, Quantity};
use fatpath_sim::{Outcome, Spec};
use std::ops::ControlFlow;

/// Worst of all models and cases.
pub const FIGURE: Figure = Figure {
    name: "model.sim_error",
    what: "rates, times and queues of the simulator over those of the models, in the models' ranges: worst error",
    unit: "ratio - 1",
    better: Better::Lower,
    goal: Some(0.20),
    summary: Summary::Worst,
    measure,
};

/// One value by a model and by the simulator.
pub(super) struct Comparison {
    case: String,
    /// What the model is asked at, to be in its range.
    asked: Vec<(Quantity, f64)>,
    expected: f64,
    simulated: f64,
}

impl Comparison {
    fn error(&self) -> f64 {
        self.simulated / self.expected - 1.0
    }
}

fn measure(run: &Run) -> Result<Vec<f64>> {
    let mut errors = Vec::new();
    let mut broken = Vec::new();
    for (model, stated) in compared() {
        run.check()?;
        let comparisons = of_model(model)?;
        for one in &comparisons {
            run.say(format!("  {} {}: {}", model.name, one.case, text_of(one)));
        }
        let worst = worst(&comparisons);
        if worst > stated {
            broken.push(format!("{} is off by {worst:.3}", model.name));
        }
        errors.extend(comparisons.iter().map(Comparison::error));
    }
    ensure!(
        broken.is_empty(),
        "more than docs/model.md says: {}",
        broken.join("; ")
    );
    Ok(errors)
}

/// The models that are more than arithmetic, and the greatest error that each states.
fn compared() -> impl Iterator<Item = (&'static Model, f64)> {
    let models = MODELS.into_iter();
    models.filter_map(|model| Some((model, model.sim_error?)))
}

fn text_of(one: &Comparison) -> String {
    let (expected, simulated) = (one.expected, one.simulated);
    format!(
        "{expected:.4} expected, {simulated:.4}, {:+.3}",
        one.error()
    )
}

fn worst(comparisons: &[Comparison]) -> f64 {
    let errors = comparisons.iter().map(|one| one.error().abs());
    errors.fold(0.0, f64::max)
}

/// All comparisons of a model, each in its range.
fn of_model(model: &'static Model) -> Result<Vec<Comparison>> {
    let mut comparisons = long_run::comparisons(model)?;
    comparisons.extend(times::comparisons(model)?);
    comparisons.extend(queues::comparisons(model)?);
    ensure!(
        !comparisons.is_empty(),
        "{} is compared with nothing",
        model.name
    );
    for one in &comparisons {
        let outside = model.outside(&one.asked);
        ensure!(outside.is_empty(), "{}: {}", one.case, outside[0]);
    }
    Ok(comparisons)
}

/// Simulates it to the end.
fn outcome(spec: &Spec) -> Result<Outcome> {
    Ok(fatpath_sim::run(spec, |_| ControlFlow::Continue(()))?)
}

fn seconds_ns(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The part of the figure that takes a few seconds: regular losses, single losses, and starts.
    #[test]
    fn models_of_short_simulations_keep_to_their_errors() {
        let quick = [
            "mathis",
            "mathis-delack",
            "aimd",
            "recovery",
            "slow-start",
            "slow-start-queue",
        ];
        let of_quick: Vec<_> = compared()
            .filter(|(model, _)| quick.contains(&model.name))
            .collect();
        assert_eq!(of_quick.len(), quick.len());
        for (model, stated) in of_quick {
            for one in of_model(model).unwrap() {
                let text = format!("{} {}: {}", model.name, one.case, text_of(&one));
                assert!(one.error().abs() <= stated, "{text}");
            }
        }
    }
}
