// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a program may send datagrams without congestion control, and at what rate: by the rule that a TCP flow to the same
//! address and port would match. The gate and the mark are not the policy's. Start at [`Policy::rude_share`].

use crate::{Flow, Policy, Rule, Setting, User, Verdict};

/// What a rule gives a sender of datagrams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RudeShare {
    /// Name of the rule.
    pub rule: String,
    /// Its `rude_rate`, bits of IP packets a second.
    pub rate_bps: u64,
}

/// Why a sender of datagrams has to have congestion control, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRude {
    /// No rule matches.
    #[error(
        "no rule of the policy is for a flow {0}: add one with rude = \"allowed\" and rude_rate"
    )]
    NoRule(Flow),
    /// This rule may match or not.
    #[error(
        "rule `{0}` asks for a source, a source port or a cgroup, and that of the datagrams is not known: put a rule for them \
         before it"
    )]
    Unknown(String),
    /// The rule does not allow it.
    #[error("rule `{0}` does not allow it: give it rude = \"allowed\" and rude_rate")]
    Never(String),
    /// The rule allows it to others.
    #[error("rule `{0}` allows it to others: add the user to its rude_users")]
    NotListed(String),
    /// The rule bounds no flow by a rate of its own.
    #[error("rule `{0}` has no number for rude_rate: give it one, such as \"900mbit\"")]
    NoRate(String),
    /// The rule bounds all its flows together.
    #[error(
        "the flows of rule `{0}` share its rude_total_rate, of which the kernel keeps the count, and it counts no datagrams: \
         give them a rule with rude_rate alone"
    )]
    Shared(String),
}

impl Policy {
    /// What a sender of datagrams to where `flow` goes gets, when `is_listed` says which users it is among.
    ///
    /// # Errors
    /// It has to have congestion control. So it has where a rule comes first that asks for what `flow` leaves open.
    pub fn rude_share(
        &self,
        flow: &Flow,
        is_listed: impl Fn(&User) -> bool,
    ) -> Result<RudeShare, NotRude> {
        let rules = self.rules.iter();
        let mut possible = rules.map(|rule| (rule, rule.matches.verdict(flow)));
        let met = possible.find(|(_, verdict)| !matches!(verdict, Verdict::Differs(_)));
        match met {
            None => Err(NotRude::NoRule(flow.clone())),
            Some((rule, Verdict::Matches)) => share_of(rule, is_listed),
            Some((rule, _)) => Err(NotRude::Unknown(rule.name.clone())),
        }
    }
}

fn share_of(rule: &Rule, is_listed: impl Fn(&User) -> bool) -> Result<RudeShare, NotRude> {
    let (name, settings) = (rule.name.clone(), &rule.settings);
    if !settings.may_be_rude() {
        return Err(NotRude::Never(name));
    }
    if !settings
        .rude_users()
        .is_none_or(|users| users.iter().any(is_listed))
    {
        return Err(NotRude::NotListed(name));
    }
    if settings.gives(Setting::RudeTotalRate) {
        return Err(NotRude::Shared(name));
    }
    match settings.number(Setting::RudeRate) {
        Some(rate_bps) => Ok(RudeShare {
            rule: name,
            rate_bps,
        }),
        None => Err(NotRude::NoRate(name)),
    }
}
