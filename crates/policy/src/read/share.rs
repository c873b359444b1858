// SPDX-License-Identifier: MIT OR Apache-2.0
//! A rate that the flows of a rule share: `"500mbit/n"`. Start at [`pacing_rate`].

use super::law::law_name;
use super::values::{self, Measure};
use crate::rule::Path;
use crate::settings::Chosen;
use crate::{Law, Setting, SettingValue, Settings, our_window_laws};
use fatpath_toml::{Refusal, Section, Value};

/// A rate for each flow, or one that those that send share.
pub(super) fn pacing_rate(value: &Value) -> Result<Chosen<SettingValue>, Refusal> {
    let setting = Setting::PacingRate;
    let Some(text) = value.as_str().and_then(values::before_n) else {
        return values::plain(value, setting);
    };
    let measure = Measure::of(setting);
    let bps = measure
        .read_text(text)
        .ok_or_else(|| value.found(measure.allowed()))?;
    let rate = SettingValue::Shared(bps);
    let reason = format!(
        "given as {}: each of the n flows that send gets 1/n",
        SettingValue::shared_text(bps)
    );
    Ok(Chosen::new(rate, reason))
}

/// Refuses what does not go with a rate that flows share, in a phase or outside: our laws that set the window count those
/// that send.
pub(super) fn refuse_shared_rate(
    section: &Section,
    settings: &Settings,
    collective: Option<&Settings>,
    path: Option<&Path>,
) {
    let is_shared = |settings: &Settings| settings.is_shared(Setting::PacingRate);
    if !is_shared(settings) && !collective.is_some_and(is_shared) {
        return;
    }
    let note = |key: &str, message: &str, remedy: &str| {
        if let Some(value) = section.value(key) {
            section.note(value.refusal(message).allowed(remedy));
        }
    };
    let law = law_name(section);
    if !law.is_some_and(|name| Law::named(name).is_our_window_law()) {
        let laws = our_window_laws().collect::<Vec<_>>().join(", ");
        let remedy = format!("give the rule congestion_control = one of {laws}");
        let message = "the rule gives no law that counts the flows that send";
        note(Setting::PacingRate.key(), message, &remedy);
    }
    if settings.may_be_rude() {
        let remedy = "give pacing_rate without \"/n\", and rude_total_rate to rude flows";
        note("rude", "rude flows share no pacing_rate", remedy);
    }
    let follows = path.map(|path| [("rate", path.follows.rate), ("rtt", path.follows.rtt)]);
    for (key, _) in follows.into_iter().flatten().filter(|(_, does)| *does) {
        let message = "nothing is measured of a path whose flows share a pacing_rate";
        note(
            key,
            message,
            "give the path's own, or a pacing_rate without \"/n\"",
        );
    }
}
