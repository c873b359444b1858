// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a flow with one of our laws starts, and goes on after a pause. Start at [`initial_ssthresh`].

use super::law::law_name;
use super::values::{self, Measure};
use crate::rule::Path;
use crate::settings::{AfterIdle, Chosen, Ssthresh};
use crate::{Law, Setting, SettingValue, Way, our_window_laws};
use fatpath_toml::{Refusal, Section, Value};

/// Only our laws that set the window alone heed what they read of the rule.
pub(super) fn refuse_start_without_our_law(section: &Section) {
    let name = law_name(section);
    if name.is_some_and(|name| Law::named(name).is_our_window_law()) {
        return;
    }
    for key in Setting::of_way(Way::Laws).map(Setting::key) {
        let Some(value) = section.value(key) else {
            continue;
        };
        let message = match name {
            Some(name) => format!("`{name}` does not heed it"),
            None => "the rule gives no law that heeds it".to_owned(),
        };
        let laws = our_window_laws().collect::<Vec<_>>().join(", ");
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
