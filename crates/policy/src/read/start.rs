// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a flow with one of our laws starts, and goes on after a pause. Start at [`read_start`].

use super::law::law_name;
use super::values::{self, INITIAL_RATE, SSTHRESH};
use crate::policy::{AfterIdle, Chosen, Path, Ssthresh};
use crate::problem::Refusal;
use crate::toml_reader::{Section, found, under_key};
use crate::{Law, our_laws};
use toml::de::DeValue;

/// The keys that only our laws heed.
const START_KEYS: [&str; 5] = [
    "max_ssthresh",
    "initial_ssthresh",
    "initial_rate",
    "after_idle",
    "hystart",
];

/// How a flow starts and goes on after a pause.
#[derive(Default)]
pub(super) struct Start {
    pub max_ssthresh_pkts: Option<Chosen<u32>>,
    pub initial_ssthresh: Option<Chosen<Ssthresh>>,
    pub initial_rate_bps: Option<Chosen<u64>>,
    pub after_idle: Option<Chosen<AfterIdle>>,
    pub hystart: Option<Chosen<bool>>,
}

/// Reads [`START_KEYS`]. `path` is `None` when a part of it was refused.
pub(super) fn read_start(section: &mut Section, path: Option<&Path>) -> Start {
    refuse_start_without_our_law(section);
    Start {
        max_ssthresh_pkts: section.read("max_ssthresh", |value| SSTHRESH.read_u32(value)),
        initial_ssthresh: section
            .read("initial_ssthresh", |value| initial_ssthresh(value, path))
            .flatten(),
        initial_rate_bps: section.read("initial_rate", |value| INITIAL_RATE.read(value)),
        after_idle: section.read("after_idle", after_idle),
        hystart: section
            .read("hystart", values::truth)
            .map(|hystart| Chosen::new(hystart, format!("given as {hystart}"))),
    }
}

fn refuse_start_without_our_law(section: &mut Section) {
    let name = law_name(section);
    if name.is_some_and(|name| Law::named(name).ours().is_some()) {
        return;
    }
    for key in START_KEYS {
        let Some(value) = section.value(key) else {
            continue;
        };
        let message = match name {
            Some(name) => format!("`{name}` does not heed it"),
            None => "the rule gives no law that heeds it".to_owned(),
        };
        let laws = our_laws().collect::<Vec<_>>().join(", ");
        let remedy = format!("give the rule congestion_control = one of {laws}");
        section.report.add(
            value.span().start,
            under_key(key, Refusal::new(message, remedy)),
        );
    }
}

/// Segments, or `"bdp"`.
fn initial_ssthresh(
    value: &DeValue,
    path: Option<&Path>,
) -> Result<Option<Chosen<Ssthresh>>, Refusal> {
    if value.as_str().is_none_or(|text| text.trim() != "bdp") {
        let pkts = SSTHRESH
            .read_u32(value)
            .map_err(|_| found(value, format!("{}, or \"bdp\"", SSTHRESH.allowed())))?;
        return Ok(Some(Chosen::new(
            Ssthresh::Segments(pkts.value),
            pkts.reason,
        )));
    }
    let bytes = path
        .map(|path| values::bdp_bytes(value, path))
        .transpose()?;
    Ok(bytes.map(|bytes| Chosen::new(Ssthresh::Bytes(bytes.value), bytes.reason)))
}

fn after_idle(value: &DeValue) -> Result<Chosen<AfterIdle>, Refusal> {
    let all = [AfterIdle::Restart, AfterIdle::Keep, AfterIdle::Pace];
    let chosen = all
        .into_iter()
        .find(|one| value.as_str() == Some(one.name()));
    chosen
        .map(|chosen| Chosen::new(chosen, format!("given as {}", chosen.name())))
        .ok_or_else(|| found(value, "\"restart\", \"keep\" or \"pace\""))
}
