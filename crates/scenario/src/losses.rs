// SPDX-License-Identifier: MIT OR Apache-2.0
//! The forms of `loss`: a share, bursts, exact packets, every so many, windows of time.
//!
//! Pure. A table's form is told by the key that only it has. Start with [`losses`].

use fatpath_link::{CellSpec, LossSpec, LossWindow};

use super::check::checked;
use super::units;
use super::values::{Refusal, Section, Value};

/// One loss, or a list of them.
pub(super) fn losses(value: &Value) -> Result<Vec<LossSpec>, Refusal> {
    if value.as_toml().is_array() {
        let items = value.items("a list of losses")?;
        return items.iter().map(loss).collect();
    }
    Ok(vec![loss(value)?])
}

fn loss(value: &Value) -> Result<LossSpec, Refusal> {
    const FORMS: &str = "a share (\"1%\") or a table with share, with to_bad and to_good, with packets, \
                         with every, or with windows";
    if value.as_str().is_some() {
        let probability = value.parsed(units::share)?;
        return Ok(LossSpec::Independent { probability });
    }
    if !value.as_toml().is_table() {
        return Err(value.found(FORMS));
    }
    let mut section = value.section()?;
    let spec = if section.has("share") {
        LossSpec::Independent {
            probability: section.needed("share", units::share),
        }
    } else if section.has("to_bad") {
        gilbert_elliott(&mut section)
    } else if section.has("packets") {
        exact_packets(&mut section)?
    } else if section.has("every") {
        periodic(&mut section)?
    } else if section.has("windows") {
        windows(&mut section)?
    } else {
        return Err(value.refusal(format!("is not {FORMS}")));
    };
    section.finish()?;
    checked(value, CellSpec::Loss(spec.clone()))?;
    Ok(spec)
}

fn gilbert_elliott(section: &mut Section) -> LossSpec {
    let loss_in_good = section.optional("loss_in_good", units::share);
    let loss_in_bad = section.optional("loss_in_bad", units::share);
    LossSpec::GilbertElliott {
        to_bad: section.needed("to_bad", units::share),
        to_good: section.needed("to_good", units::share),
        loss_in_good: loss_in_good.unwrap_or(0.0),
        loss_in_bad: loss_in_bad.unwrap_or(1.0),
    }
}

fn exact_packets(section: &mut Section) -> Result<LossSpec, Refusal> {
    const ALLOWED: &str = "a list of numbers of data segments, rising, from 1, such as [20, 21]";
    let flow = section.whole("flow", 1..=u64::from(u32::MAX));
    let value = section.need("packets", ALLOWED)?;
    let items = value.items(ALLOWED)?;
    let packets: Vec<u64> = items
        .iter()
        .map(|item| item.integer(1..=u64::MAX >> 1))
        .collect::<Result<_, _>>()?;
    if packets.is_empty() || !packets.is_sorted_by(|one, next| one < next) {
        return Err(value.refusal(format!("is not {ALLOWED}")));
    }
    Ok(LossSpec::Packets {
        flow: flow.map(|flow| flow as u32),
        packets,
    })
}

fn periodic(section: &mut Section) -> Result<LossSpec, Refusal> {
    let every = section
        .need("every", "a number of segments")?
        .integer(1..=1_000_000_000_000)?;
    let first = section.whole("first", 1..=every);
    Ok(LossSpec::Periodic {
        every,
        first: first.unwrap_or(every),
    })
}

fn windows(section: &mut Section) -> Result<LossSpec, Refusal> {
    const ALLOWED: &str = "a list such as [{ from = \"5s\", until = \"6s\", share = \"50%\" }], in \
                           order, not overlapping";
    let value = section.need("windows", ALLOWED)?;
    let mut windows: Vec<LossWindow> = vec![];
    for item in value.items(ALLOWED)? {
        let mut section = item.section()?;
        let window = LossWindow {
            from_ns: section.needed("from", units::moment_ns),
            until_ns: section.needed("until", units::moment_ns),
            probability: section.needed("share", units::share),
        };
        let is_next = windows
            .last()
            .is_none_or(|last| last.until_ns <= window.from_ns);
        let is_wrong = !is_next || window.until_ns <= window.from_ns;
        if is_wrong && !section.is_noted() {
            return Err(section.refusal_here(format!("is not {ALLOWED}")));
        }
        section.finish()?;
        windows.push(window);
    }
    Ok(LossSpec::Windows { windows })
}
