// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a flow with one of our laws starts, and goes on after a pause. Start at [`initial_ssthresh`].

use super::law::law_name;
use super::values::{self, Measure};
use crate::rule::Path;
use crate::settings::{AfterIdle, Chosen, Ssthresh};
use crate::{Law, Setting, SettingValue, Way, our_laws, our_window_laws};
use fatpath_toml::{Refusal, Section, Value};

/// Only our laws heed what they read of the rule: those that set the window alone all of it, the others a rate to start at.
pub(super) fn refuse_start_without_our_law(section: &Section) {
    let name = law_name(section);
    let law = name.map(Law::named);
    let heeds = |setting| {
        let is_rate = setting == Setting::InitialRate;
        (law.as_ref())
            .is_some_and(|law| law.is_our_window_law() || is_rate && law.is_our_rate_law())
    };
    for setting in Setting::of_way(Way::Laws).filter(|setting| !heeds(*setting)) {
        let Some(value) = section.value(setting.key()) else {
            continue;
        };
        let message = match name {
            Some(name) => format!("`{name}` does not heed it"),
            None => "the rule gives no law that heeds it".to_owned(),
        };
        let laws: Vec<_> = match setting {
            Setting::InitialRate => our_laws().collect(),
            _ => our_window_laws().collect(),
        };
        let laws = laws.join(", ");
        let remedy = format!("give the rule congestion_control = one of {laws}");
        section.note(value.refusal(message).allowed(remedy));
    }
}

/// Segments, or `"bdp"`. `path` is `None` when a part of it was refused; none is given while it is still to be measured.
pub(super) fn initial_ssthresh(
    value: &Value,
    path: Option<&Path>,
) -> Result<Option<Chosen<SettingValue>>, Refusal> {
    if value.as_str().is_none_or(|text| text.trim() != "bdp") {
        let pkts = Measure::of(Setting::InitialSsthresh).read_u32(value)?;
        return Ok(Some(
            pkts.map(|pkts| SettingValue::Ssthresh(Ssthresh::Segments(pkts))),
        ));
    }
    let bytes = path.map_or(Ok(None), |path| values::bdp_bytes(value, path))?;
    Ok(bytes.map(|bytes| bytes.map(|bytes| SettingValue::Ssthresh(Ssthresh::Bytes(bytes)))))
}

pub(super) fn after_idle(value: &Value) -> Result<Chosen<SettingValue>, Refusal> {
    let chosen = AfterIdle::ALL
        .into_iter()
        .find(|one| value.as_str() == Some(one.name()));
    chosen
        .map(|chosen| {
            let reason = format!("given as {}", chosen.name());
            Chosen::new(SettingValue::AfterIdle(chosen), reason)
        })
        .ok_or_else(|| value.found(&Setting::AfterIdle.allowed()))
}
