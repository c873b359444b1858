// SPDX-License-Identifier: MIT OR Apache-2.0
//! `rtt` and `rate` of a rule: what the path is, or that it is measured. Start at [`read`].

use super::values::{Measure, RATE, RTT};
use crate::MeasuredPath;
use crate::rule::{Follows, Path};
use fatpath_toml::Section;

/// The value that says so.
const MEASURED: &str = "measured";

/// Reads both; none where one of them was refused. What was measured takes the place of what the file gives until then.
pub(super) fn read(section: &mut Section, measured: Option<&MeasuredPath>) -> Option<Path> {
    let rtt = read_part(section, "rtt", "rtt_otherwise", RTT);
    let rate = read_part(section, "rate", "rate_otherwise", RATE);
    let (rtt, rate) = (rtt?, rate?);
    let rtt_us = measured
        .filter(|_| rtt.is_measured)
        .and_then(|measured| measured.rtt_us.map(u64::from));
    let rate_bps = measured
        .filter(|_| rate.is_measured)
        .and_then(|measured| measured.rate_bps);
    let is_known = rtt_us.is_some() || rate_bps.is_some();
    Some(Path {
        rtt_us: rtt_us
            .or(rtt.given)
            .map(|us| u32::try_from(us).expect("the range ends within 32 bits")),
        rate_bps: rate_bps.or(rate.given),
        follows: Follows {
            rtt: rtt.is_measured,
            rate: rate.is_measured,
            by: measured
                .filter(|_| is_known)
                .map(|measured| measured.by.clone()),
            most_buffer_bytes: measured.and_then(|measured| measured.most_buffer_bytes),
        },
    })
}

#[derive(Default)]
struct Part {
    /// As it is, or as it is until it is measured.
    given: Option<u64>,
    is_measured: bool,
}

fn read_part(
    section: &mut Section,
    key: &'static str,
    otherwise: &'static str,
    measure: Measure,
) -> Option<Part> {
    let is_measured = section
        .value(key)
        .is_some_and(|value| value.as_str().is_some_and(|text| text.trim() == MEASURED));
    if !is_measured && let Some(value) = section.take(otherwise) {
        let message = format!("`{otherwise}` is for a path whose {key} is measured");
        let remedy = format!("write {key} = \"{MEASURED}\", or leave `{otherwise}` out");
        section.note(value.refusal(message).allowed(remedy));
        section.take(key);
        return None;
    }
    let (asked, measure) = match is_measured {
        true => (otherwise, measure),
        false => (key, measure.or(&format!(", or \"{MEASURED}\""))),
    };
    if is_measured || !section.has(asked) {
        // Known, whether it is there or not.
        section.take(key);
    }
    if !section.has(asked) {
        return Some(Part {
            given: None,
            is_measured,
        });
    }
    let given = section.read(asked, |value| measure.read(value))?;
    Some(Part {
        given: Some(given.value),
        is_measured,
    })
}
