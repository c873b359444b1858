// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a rule's flows may go on without congestion control, and how far. Start at [`read_rude`].

use super::law::law_name;
use super::values::{self, RUDE_RATE};
use crate::policy::{Chosen, Rude, User};
use crate::problem::Refusal;
use crate::toml_reader::{Section, found, under_key};
use crate::{Law, our_laws};
use toml::de::DeValue;

/// The keys that mean nothing where no flow may be rude.
const TERMS: [&str; 4] = [
    "rude_rate",
    "rude_total_rate",
    "rude_users",
    "rude_converged",
];

/// What a rule says of Rude TCP.
#[derive(Default)]
pub(super) struct RudeTerms {
    pub rude: Option<Chosen<Rude>>,
    pub rate_bps: Option<Chosen<u64>>,
    pub total_rate_bps: Option<Chosen<u64>>,
    pub users: Option<Chosen<Vec<User>>>,
    pub converged_milli: Option<Chosen<u32>>,
}

/// Reads `rude` and [`TERMS`].
pub(super) fn read_rude(section: &mut Section) -> RudeTerms {
    let terms = RudeTerms {
        rude: section.read("rude", rude),
        rate_bps: section.read("rude_rate", |value| RUDE_RATE.read(value)),
        total_rate_bps: section.read("rude_total_rate", |value| RUDE_RATE.read(value)),
        users: read_users(section),
        converged_milli: section.read("rude_converged", converged),
    };
    match terms.rude.as_ref().map(|rude| rude.value) {
        None | Some(Rude::Never) => refuse_terms(section),
        Some(_) => refuse_law_of_others(section),
    }
    terms
}

fn rude(value: &DeValue) -> Result<Chosen<Rude>, Refusal> {
    let chosen = Rude::ALL
        .into_iter()
        .find(|one| value.as_str() == Some(one.name()));
    chosen
        .map(|chosen| Chosen::new(chosen, format!("given as {}", chosen.name())))
        .ok_or_else(|| found(value, "\"never\", \"allowed\" or \"always\""))
}

fn read_users(section: &mut Section) -> Option<Chosen<Vec<User>>> {
    section.value("rude_users")?;
    let users: Vec<User> = section
        .read_list("rude_users", values::user)
        .into_iter()
        .map(|(user, _)| user)
        .collect();
    Some(Chosen::new(users, "only these may be rude"))
}

/// A fraction of the fair window, kept in thousandths.
fn converged(value: &DeValue) -> Result<Chosen<u32>, Refusal> {
    let milli = values::number(value).map(|number| number * 1000.0);
    let whole = milli.filter(|milli| (milli - milli.round()).abs() < 1e-6);
    whole
        .map(|milli| milli.round())
        .filter(|milli| (1.0..=1000.0).contains(milli))
        .map(|milli| Chosen::new(milli as u32, format!("given as {}", milli / 1000.0)))
        .ok_or_else(|| found(value, "0.001 to 1, with at most three decimals"))
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
    for key in TERMS {
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
