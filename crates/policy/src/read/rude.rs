// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a rule's flows may go on without congestion control, and how far. Start at [`refuse_rude_terms`].

use super::law::law_name;
use super::values;
use crate::settings::{Chosen, Rude};
use crate::{Law, Setting, SettingValue, Settings, Way, our_window_laws};
use fatpath_toml::{Refusal, Section, Value};

/// Refuses what means nothing where no flow may be rude, and a law that has no fair window.
pub(super) fn refuse_rude_terms(section: &Section, settings: &Settings) {
    match settings.may_be_rude() {
        false => refuse_terms(section),
        true => refuse_law_of_others(section),
    }
}

pub(super) fn rude(value: &Value) -> Result<Chosen<SettingValue>, Refusal> {
    let chosen = Rude::ALL
        .into_iter()
        .find(|one| value.as_str() == Some(one.name()));
    chosen
        .map(|chosen| {
            let reason = format!("given as {}", chosen.name());
            Chosen::new(SettingValue::Rude(chosen), reason)
        })
        .ok_or_else(|| value.found(&Setting::Rude.allowed()))
}

/// A rate, or none that bounds the flow.
pub(super) fn rude_rate(value: &Value) -> Result<Chosen<SettingValue>, Refusal> {
    if value.as_str().map(str::trim) != Some(SettingValue::UNLIMITED) {
        return values::plain(value, Setting::RudeRate);
    }
    let reason = "given as unlimited: no estimate of the path paces it, its window bounds it";
    Ok(Chosen::new(SettingValue::Unlimited, reason))
}

pub(super) fn read_users(section: &mut Section) -> Option<Chosen<SettingValue>> {
    let key = Setting::RudeUsers.key();
    let is_given = section.has(key);
    let users = section.read_list(key, values::user).into_iter();
    let users = SettingValue::Users(users.map(|(user, _)| user).collect());
    is_given.then(|| Chosen::new(users, "only these may be rude"))
}

fn refuse_terms(section: &Section) {
    let rude = section.value("rude");
    if rude.is_some_and(|value| value.as_str() != Some(Rude::Never.name())) {
        return; // refused already
    }
    let terms = Setting::of_way(Way::Rude).filter(|setting| *setting != Setting::Rude);
    for key in terms.map(Setting::key) {
        if let Some(value) = section.value(key) {
            let remedy = "give the rule rude = \"allowed\" or \"always\"";
            let refusal = value.refusal("no flow of the rule may be rude");
            section.note(refusal.allowed(remedy));
        }
    }
}

/// The fair window beside a rude flow is kept by the laws of bpf/cc that set the window alone.
fn refuse_law_of_others(section: &Section) {
    let Some(name) = law_name(section) else {
        return;
    };
    if Law::named(name).is_our_window_law() {
        return;
    }
    let laws = our_window_laws().collect::<Vec<_>>().join(", ");
    let remedy = format!("give congestion_control = one of {laws}, or leave it out (fp_reno)");
    if let Some(value) = section.value("rude") {
        let message = format!("`{name}` has no fair window for a rude flow to go back to");
        section.note(value.refusal(message).allowed(remedy));
    }
}
