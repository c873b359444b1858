// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a rule's flows may go on without congestion control, and how far. Start at [`refuse_rude_terms`].

use super::law::law_name;
use super::values;
use crate::problem::Refusal;
use crate::settings::{Chosen, Rude};
use crate::toml_reader::{Section, found, under_key};
use crate::{Law, Setting, SettingValue, Settings, Way, our_laws};
use toml::de::DeValue;

/// Refuses what means nothing where no flow may be rude, and a law that has no fair window.
pub(super) fn refuse_rude_terms(section: &mut Section, settings: &Settings) {
    match settings.may_be_rude() {
        false => refuse_terms(section),
        true => refuse_law_of_others(section),
    }
}

pub(super) fn rude(value: &DeValue) -> Result<Chosen<SettingValue>, Refusal> {
    let chosen = Rude::ALL
        .into_iter()
        .find(|one| value.as_str() == Some(one.name()));
    chosen
        .map(|chosen| {
            let reason = format!("given as {}", chosen.name());
            Chosen::new(SettingValue::Rude(chosen), reason)
        })
        .ok_or_else(|| found(value, Setting::Rude.allowed()))
}

pub(super) fn read_users(section: &mut Section) -> Option<Chosen<SettingValue>> {
    let key = Setting::RudeUsers.key();
    section.value(key)?;
    let users = section
        .read_list(key, values::user)
        .into_iter()
        .map(|(user, _)| user)
        .collect();
    Some(Chosen::new(
        SettingValue::Users(users),
        "only these may be rude",
    ))
}

fn refuse_terms(section: &mut Section) {
    if section.value("rude").is_some_and(|value| {
        value
            .get_ref()
            .as_str()
            .is_none_or(|text| text != Rude::Never.name())
    }) {
        return; // refused already
    }
    let terms = Setting::of_way(Way::Rude).filter(|setting| *setting != Setting::Rude);
    for key in terms.map(Setting::key) {
        if let Some(value) = section.value(key) {
            let remedy = "give the rule rude = \"allowed\" or \"always\"";
            let refusal = Refusal::new("no flow of the rule may be rude", remedy);
            section
                .report
                .add(value.span().start, under_key(key, refusal));
        }
    }
}

/// The fair window beside a rude flow is kept by the laws of bpf/cc.
fn refuse_law_of_others(section: &mut Section) {
    let Some(name) = law_name(section) else {
        return;
    };
    if Law::named(name).ours().is_some() {
        return;
    }
    let laws = our_laws().collect::<Vec<_>>().join(", ");
    let refusal = Refusal::new(
        format!("`{name}` cannot say what a rude flow's fair window is"),
        format!("give congestion_control = one of {laws}, or leave it out (fp_reno)"),
    );
    if let Some(value) = section.value("rude") {
        section
            .report
            .add(value.span().start, under_key("rude", refusal));
    }
}
