// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table `[experiment]`: how often, in which order, and what is watched.
//!
//! Pure. Start with [`experiment`].

use super::values::{Refusal, Section, Value};
use super::{Experiment, LatenessLimit, MOST_REPEATS, MOST_RETRIES, Observe, Order, units};

/// Reads the table, if it is there.
pub(super) fn experiment(root: &mut Section) -> Result<Experiment, Refusal> {
    let plain = Experiment::default();
    let Some(value) = root.take("experiment") else {
        return Ok(plain);
    };
    let mut section = value.section()?;
    let order = order(&mut section);
    let experiment = Experiment {
        repeats: count(&mut section, "repeats", 1..=u64::from(MOST_REPEATS))
            .unwrap_or(plain.repeats),
        retries: count(&mut section, "retries", 0..=u64::from(MOST_RETRIES))
            .unwrap_or(plain.retries),
        order: section.noted(order).unwrap_or(plain.order),
        warm_up_runs: count(&mut section, "warm_up", 0..=100).unwrap_or(plain.warm_up_runs),
        observe: section.read("observe", observe).flatten(),
        sample_every_line: section
            .value("sample_every")
            .map(|value| value.line() as usize),
        sample_every: section.optional("sample_every", units::interval),
        lateness_limit: section
            .optional("lateness_limit", lateness_limit)
            .unwrap_or(plain.lateness_limit),
        emulator_apart: section.flag("emulator_apart").unwrap_or(false),
    };
    section.finish()?;
    Ok(experiment)
}

fn count(
    section: &mut Section,
    key: &'static str,
    range: std::ops::RangeInclusive<u64>,
) -> Option<u32> {
    section.whole(key, range).map(|count| count as u32)
}

fn lateness_limit(text: &str) -> Result<LatenessLimit, &'static str> {
    match text {
        "none" => Ok(LatenessLimit::None),
        text => units::lateness_us(text).map(LatenessLimit::Us),
    }
}

fn order(section: &mut Section) -> Result<Order, Refusal> {
    let is_random = section.optional("order", |text| match text {
        "file" => Ok(false),
        "random" => Ok(true),
        _ => Err("\"file\" or \"random\""),
    });
    let seed = section.take("seed");
    match (is_random.unwrap_or(false), seed) {
        (true, seed) => {
            let seed = seed
                .map(|seed| seed.integer(0..=u64::MAX >> 2))
                .transpose()?;
            Ok(Order::Random {
                seed: seed.unwrap_or(1),
            })
        }
        (false, None) => Ok(Order::File),
        (false, Some(seed)) => Err(seed.refusal("belongs to order = \"random\"")),
    }
}

fn observe(value: &Value) -> Result<Option<Observe>, Refusal> {
    if value.as_toml().is_bool() {
        return Ok(value.boolean()?.then(Observe::default));
    }
    if !value.as_toml().is_table() {
        return Err(value.found("true, false, or a table such as { flows = true }"));
    }
    let mut section = value.section()?;
    let per_flow = section.flag("flows").unwrap_or(false);
    section.finish()?;
    Ok(Some(Observe { per_flow }))
}
