// SPDX-License-Identifier: MIT OR Apache-2.0
//! What one table of a link says of packets: the effect keys, read once each.
//!
//! Pure but for a trace, which comes from [`NamedFiles`]. A [`Stage`] is what was said, not yet cells: a
//! queue in bdp waits for the delays of both directions. Start with [`Stage::take`].

use fatpath_link::{
    CellSpec, CorruptSpec, DelaySpec, Distribution, DuplicateSpec, Exceed, JitterSpec, LossSpec,
    MtuSpec, PolicerSpec, RateSpec, RateStep, ReorderSpec, Service,
};

use super::check::checked;
use super::files::NamedFiles;
use super::losses::losses;
use super::units::{self, QueueLimit};
use super::values::{Refusal, Section, Value};

/// Every effect key.
pub(super) const KEYS: [&str; 16] = [
    "path_mtu",
    "policer",
    "rate",
    "rate_steps",
    "repeat_after",
    "rate_trace",
    "queue",
    "discipline",
    "mark_above",
    "overhead",
    "loss",
    "corrupt",
    "duplicate",
    "reorder",
    "delay",
    "jitter",
];

/// The keys that say how fast a bottleneck serves; one of the first three stands.
pub(super) const SERVICE_KEYS: [&str; 4] = ["rate", "rate_steps", "rate_trace", "repeat_after"];

/// A displaced segment that nothing follows leaves after this time, where nothing else is said.
const HOLD_LIMIT_NS: u64 = 10_000_000;
/// Acceptable standing delay and time of a good queue to drain, RFC 8289, sections 4.3 and 4.2.
const CODEL_TARGET_NS: u64 = 5_000_000;
const CODEL_INTERVAL_NS: u64 = 100_000_000;
/// Floyd and Jacobson 1993, sections 4 and 6: maximum probability 1/50, queue weight 0.002.
const RED_MAX_PROBABILITY: f64 = 0.02;
const RED_WEIGHT: f64 = 0.002;

/// The effects that a table names; `None` where it says nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Stage {
    pub(super) path_mtu_bytes: Option<u32>,
    pub(super) policer: Option<PolicerSpec>,
    pub(super) service: Option<Service>,
    pub(super) queue: Option<QueueLimit>,
    pub(super) discipline: Option<DisciplineSpec>,
    pub(super) mark_above: Option<QueueLimit>,
    pub(super) overhead_bytes: Option<u32>,
    pub(super) losses: Option<Vec<LossSpec>>,
    pub(super) corrupt: Option<f64>,
    pub(super) duplicate: Option<f64>,
    pub(super) reorder: Option<ReorderSpec>,
    pub(super) delay_ns: Option<u64>,
    /// The inner `None`: no jitter.
    pub(super) jitter: Option<Option<JitterSpec>>,
}

/// A queue's discipline before its limit is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum DisciplineSpec {
    DropTail,
    DropHead,
    Codel {
        target_ns: u64,
        interval_ns: u64,
        ecn: bool,
    },
    /// Thresholds follow from the limit where they are not given.
    Red {
        min_bytes: Option<u64>,
        max_bytes: Option<u64>,
        max_probability: f64,
        weight: f64,
        ecn: bool,
    },
}

impl Stage {
    /// Takes the effect keys of a table.
    pub(super) fn take(section: &mut Section, files: &NamedFiles) -> Stage {
        Stage {
            path_mtu_bytes: section.read("path_mtu", path_mtu_bytes),
            policer: section.read("policer", policer),
            service: service(section, files),
            queue: section.optional("queue", units::queue_limit),
            discipline: section.read("discipline", discipline),
            mark_above: section.optional("mark_above", units::depth),
            overhead_bytes: section.optional("overhead", units::overhead_bytes),
            losses: section.read("loss", losses),
            corrupt: section.optional("corrupt", units::share),
            duplicate: section.optional("duplicate", units::share),
            reorder: section.read("reorder", reorder),
            delay_ns: section.optional("delay", units::delay_ns),
            jitter: section.read("jitter", jitter),
        }
    }

    /// This, and what only `both` says.
    pub(super) fn or(self, both: &Stage) -> Stage {
        let both = both.clone();
        Stage {
            path_mtu_bytes: self.path_mtu_bytes.or(both.path_mtu_bytes),
            policer: self.policer.or(both.policer),
            service: self.service.or(both.service),
            queue: self.queue.or(both.queue),
            discipline: self.discipline.or(both.discipline),
            mark_above: self.mark_above.or(both.mark_above),
            overhead_bytes: self.overhead_bytes.or(both.overhead_bytes),
            losses: self.losses.or(both.losses),
            corrupt: self.corrupt.or(both.corrupt),
            duplicate: self.duplicate.or(both.duplicate),
            reorder: self.reorder.or(both.reorder),
            delay_ns: self.delay_ns.or(both.delay_ns),
            jitter: self.jitter.or(both.jitter),
        }
    }

    /// Whether nothing was said.
    pub(super) fn is_empty(&self) -> bool {
        *self == Stage::default()
    }

    /// The first key that only means something together with a rate, if there is one.
    pub(super) fn queue_key(&self) -> Option<&'static str> {
        let keys = [
            (self.queue.is_some(), "queue"),
            (self.discipline.is_some(), "discipline"),
            (self.mark_above.is_some(), "mark_above"),
            (self.overhead_bytes.is_some(), "overhead"),
        ];
        keys.into_iter()
            .find(|(is_there, _)| *is_there)
            .map(|(_, key)| key)
    }
}

fn truth(section: &mut Section, key: &'static str) -> bool {
    section.flag(key).unwrap_or(false)
}

fn path_mtu_bytes(value: &Value) -> Result<u32, Refusal> {
    let mtu_bytes = value.integer(68..=65_535)? as u32;
    checked(value, CellSpec::Mtu(MtuSpec { mtu_bytes }))?;
    Ok(mtu_bytes)
}

fn policer(value: &Value) -> Result<PolicerSpec, Refusal> {
    const ALLOWED: &str = "one of \"drop\", \"mark\" (by ECN) and \"dscp\" (with dscp = 0 to 63)";
    if value.as_str().is_some() {
        return value.parsed(|text| match text {
            "none" => Ok(PolicerSpec::NONE),
            _ => Err("\"none\", or a table such as { rate = \"50mbit\", burst = \"64KiB\" }"),
        });
    }
    let mut section = value.section()?;
    let (rate_bps, burst_bytes) = (
        section.needed("rate", units::rate_bps),
        section.needed("burst", units::depth_bytes),
    );
    let exceed = match section.take("exceed") {
        None => Exceed::Drop,
        Some(value) => match value.text()?.as_str() {
            "drop" => Exceed::Drop,
            "mark" => Exceed::MarkEcn,
            "dscp" => {
                let dscp = section.need("dscp", "a number from 0 to 63")?;
                Exceed::SetDscp(dscp.integer(0..=PolicerSpec::MOST_DSCP.into())? as u8)
            }
            other => return Err(value.refusal(format!("\"{other}\" is not {ALLOWED}"))),
        },
    };
    section.finish()?;
    let spec = PolicerSpec {
        rate_bps,
        burst_bytes: Some(burst_bytes),
        exceed,
    };
    checked(value, CellSpec::Policer(spec))?;
    Ok(spec)
}

fn service(section: &mut Section, files: &NamedFiles) -> Option<Service> {
    let read = one_service(section, files);
    section.noted(read).flatten()
}

fn one_service(section: &mut Section, files: &NamedFiles) -> Result<Option<Service>, Refusal> {
    let [rate, steps, trace] = ["rate", "rate_steps", "rate_trace"].map(|key| section.take(key));
    let repeat_after = section.take("repeat_after");
    if let (Some(value), None) = (&repeat_after, &steps) {
        return Err(value.refusal("is for rate_steps, which this table does not have"));
    }
    let repeat_after_ns = repeat_after
        .map(|value| value.parsed(units::period_ns))
        .transpose()?;
    match (rate, steps, trace) {
        (None, None, None) => Ok(None),
        (Some(rate), None, None) => Ok(Some(match rate.parsed(units::service_bps)? {
            Some(rate_bps) => Service::Constant { rate_bps },
            None => Service::Unlimited,
        })),
        (None, Some(steps), None) => rate_steps(&steps, repeat_after_ns).map(Some),
        (None, None, Some(trace)) => rate_trace(&trace, files).map(Some),
        (_, Some(one), _) | (_, _, Some(one)) => {
            Err(one.refusal("give one of rate, rate_steps and rate_trace"))
        }
    }
}

fn rate_steps(value: &Value, repeat_after_ns: Option<u64>) -> Result<Service, Refusal> {
    const ALLOWED: &str =
        "a list such as [{ at = \"0s\", rate = \"1gbit\" }, …], times rising from 0s";
    let mut steps: Vec<RateStep> = vec![];
    for item in value.items(ALLOWED)? {
        let mut section = item.section()?;
        let at_ns = section.needed("at", units::moment_ns);
        let rate_bps = section.needed("rate", units::step_rate_bps);
        let is_next = steps.last().map_or(at_ns == 0, |last| at_ns > last.at_ns);
        if !is_next && !section.is_noted() {
            return Err(section.refusal_here(format!("is not {ALLOWED}")));
        }
        section.finish()?;
        steps.push(RateStep { at_ns, rate_bps });
    }
    let Some(last) = steps.last() else {
        return Err(value.refusal(format!("is not {ALLOWED}")));
    };
    if repeat_after_ns.is_some_and(|period_ns| period_ns <= last.at_ns) {
        return Err(value.refusal("repeat_after must be later than the last step"));
    }
    let service = Service::Steps {
        steps,
        repeat_after_ns,
    };
    checked(value, rate_cell(service.clone()))?;
    Ok(service)
}

fn rate_trace(value: &Value, files: &NamedFiles) -> Result<Service, Refusal> {
    let trace = files.trace(&value.text()?);
    let at_ms = trace.map_err(|wrong| value.refusal(wrong))?.to_vec();
    let service = Service::Opportunities { at_ms };
    checked(value, rate_cell(service.clone()))?;
    Ok(service)
}

fn rate_cell(service: Service) -> CellSpec {
    CellSpec::Rate(RateSpec {
        service,
        queue: Default::default(),
        overhead_bytes: 0,
    })
}

fn discipline(value: &Value) -> Result<DisciplineSpec, Refusal> {
    if value.as_str().is_some() {
        return value.parsed(discipline_of_name);
    }
    let mut section = value.section()?;
    let name = section.need("name", "the name of a discipline")?;
    let spec = match name.parsed(discipline_of_name)? {
        DisciplineSpec::Codel { .. } => codel(&mut section),
        DisciplineSpec::Red { .. } => red(&mut section),
        plain => plain,
    };
    section.finish()?;
    Ok(spec)
}

fn discipline_of_name(name: &str) -> Result<DisciplineSpec, &'static str> {
    match name {
        "drop-tail" => Ok(DisciplineSpec::DropTail),
        "drop-head" => Ok(DisciplineSpec::DropHead),
        "codel" => Ok(DisciplineSpec::Codel {
            target_ns: CODEL_TARGET_NS,
            interval_ns: CODEL_INTERVAL_NS,
            ecn: false,
        }),
        "red" => Ok(DisciplineSpec::Red {
            min_bytes: None,
            max_bytes: None,
            max_probability: RED_MAX_PROBABILITY,
            weight: RED_WEIGHT,
            ecn: false,
        }),
        _ => Err(
            "one of \"drop-tail\", \"drop-head\", \"codel\" and \"red\", or a table such as { name = \
             \"codel\", target = \"5ms\" }",
        ),
    }
}

fn codel(section: &mut Section) -> DisciplineSpec {
    let target_ns = section.optional("target", units::delay_ns);
    let interval_ns = section.optional("interval", units::delay_ns);
    DisciplineSpec::Codel {
        target_ns: target_ns.unwrap_or(CODEL_TARGET_NS),
        interval_ns: interval_ns.unwrap_or(CODEL_INTERVAL_NS),
        ecn: truth(section, "ecn"),
    }
}

fn red(section: &mut Section) -> DisciplineSpec {
    let max_probability = section.optional("max_probability", units::share);
    let weight = section.read("weight", |value| value.number(0.000_001, 1.0));
    DisciplineSpec::Red {
        min_bytes: section.optional("min", units::depth_bytes),
        max_bytes: section.optional("max", units::depth_bytes),
        max_probability: max_probability.unwrap_or(RED_MAX_PROBABILITY),
        weight: weight.unwrap_or(RED_WEIGHT),
        ecn: truth(section, "ecn"),
    }
}

fn reorder(value: &Value) -> Result<ReorderSpec, Refusal> {
    let mut section = value.section()?;
    let by = section.need("by", "how many later segments pass a displaced one, from 1")?;
    let hold_limit_ns = section.optional("hold", units::delay_ns);
    let spec = ReorderSpec {
        probability: section.needed("share", units::share),
        displacement_packets: by.integer(1..=100_000)? as u32,
        hold_limit_ns: hold_limit_ns.unwrap_or(HOLD_LIMIT_NS),
    };
    section.finish()?;
    checked(value, CellSpec::Reorder(spec))?;
    Ok(spec)
}

fn jitter(value: &Value) -> Result<Option<JitterSpec>, Refusal> {
    if value.as_str().is_some() {
        let half_width_ns = value.parsed(units::delay_ns)?;
        let uniform = JitterSpec {
            distribution: Distribution::Uniform { half_width_ns },
            reorders: false,
        };
        return Ok((half_width_ns > 0).then_some(uniform));
    }
    let mut section = value.section()?;
    let spec = JitterSpec {
        distribution: distribution(&mut section)?,
        reorders: truth(&mut section, "reorders"),
    };
    section.finish()?;
    checked(
        value,
        CellSpec::Delay(DelaySpec {
            delay_ns: 0,
            jitter: Some(spec),
        }),
    )?;
    Ok(Some(spec))
}

fn distribution(section: &mut Section) -> Result<Distribution, Refusal> {
    const ALLOWED: &str = "one of \"uniform\" (with half_width), \"normal\" (std_dev), \"exponential\" \
                           (mean) and \"pareto\" (mean, shape)";
    let value = section.need("distribution", ALLOWED)?;
    match value.text()?.as_str() {
        "uniform" => Ok(Distribution::Uniform {
            half_width_ns: section.needed("half_width", units::delay_ns),
        }),
        "normal" => Ok(Distribution::Normal {
            std_dev_ns: section.needed("std_dev", units::delay_ns),
        }),
        "exponential" => Ok(Distribution::Exponential {
            mean_ns: section.needed("mean", units::delay_ns),
        }),
        "pareto" => Ok(Distribution::Pareto {
            mean_ns: section.needed("mean", units::delay_ns),
            shape: section
                .need(
                    "shape",
                    "a number above 1; the smaller, the longer the tail",
                )?
                .number(1.001, 1_000.0)?,
        }),
        other => Err(value.refusal(format!("\"{other}\" is not {ALLOWED}"))),
    }
}

/// The cells of shares, which a probability of 0 makes idle.
pub(super) fn corrupt_cell(probability: f64) -> CellSpec {
    CellSpec::Corrupt(CorruptSpec { probability })
}

/// Likewise.
pub(super) fn duplicate_cell(probability: f64) -> CellSpec {
    CellSpec::Duplicate(DuplicateSpec { probability })
}
