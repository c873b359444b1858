// SPDX-License-Identifier: MIT OR Apache-2.0
//! A rule of the policy in the form that the kernel reads.

use crate::abi;
use crate::pod::field_of;
use fatpath_policy::{AfterIdle, Law, Rude, Rule, Setting, SettingValue, Settings, Ssthresh};
use std::ops::Range;

/// Ids of the rules for paths.
pub(crate) const PATH_RULE_IDS: Range<u32> = abi::FP_MAX_RULE_IDS..abi::FP_ALL_RULE_IDS;

/// Whether the rule of an id is one for paths, and not of the policy file.
pub fn is_path_rule(id: u32) -> bool {
    PATH_RULE_IDS.contains(&id)
}

/// What a rule gives, and what it gives in a collective phase: the same where it does not differ.
pub(crate) fn rules_of(rule: &Rule) -> (abi::fp_rule, abi::fp_rule) {
    let with = |settings| abi::fp_rule {
        has_phases: u32::from(rule.has_phases()),
        ..rule_of(settings)
    };
    let collective = rule.collective.as_ref().unwrap_or(&rule.settings);
    (with(&rule.settings), with(collective))
}

/// Each setting in its place of `fp_rule.value`; what is more than a number has fields of its own.
pub(crate) fn rule_of(settings: &Settings) -> abi::fp_rule {
    let mut rule = abi::fp_rule {
        // Without a law of its own: the first, Reno.
        shares_rate: u32::from(settings.is_shared(Setting::PacingRate)),
        rude_fair_law: settings.law().and_then(Law::number).unwrap_or(0),
        ..Default::default()
    };
    for (setting, chosen) in settings.iter() {
        rule.given |= 1 << setting as u32;
        if let Some(value) = rule.value.get_mut(setting as usize) {
            *value = number_of(&chosen.value);
        }
    }
    if let Some(Ssthresh::Bytes(bytes)) = settings.initial_ssthresh() {
        rule.initial_ssthresh_bytes = bytes;
    }
    if let Some(law) = settings.law() {
        give_law(&mut rule, law);
    }
    rule
}

/// 0 for what no number says: users stand in a map of their own.
fn number_of(value: &SettingValue) -> u64 {
    match value {
        SettingValue::Number(number) | SettingValue::Shared(number) => *number,
        SettingValue::Truth(truth) => u64::from(*truth),
        SettingValue::Ssthresh(Ssthresh::Segments(pkts)) => u64::from(*pkts),
        SettingValue::AfterIdle(after_idle) => u64::from(number_of_idle(*after_idle)),
        SettingValue::Rude(rude) => u64::from(number_of_rude(*rude)),
        SettingValue::Unlimited => abi::FP_RUDE_UNLIMITED, // only rude_rate has it
        SettingValue::Ssthresh(Ssthresh::Bytes(_)) => 0,
        SettingValue::Law(_) | SettingValue::Users(_) => 0,
    }
}

fn number_of_idle(after_idle: AfterIdle) -> u32 {
    match after_idle {
        AfterIdle::Restart => abi::FP_IDLE_RESTART,
        AfterIdle::Keep => abi::FP_IDLE_KEEP,
        AfterIdle::Pace => abi::FP_IDLE_PACE,
    }
}

fn number_of_rude(rude: Rude) -> u32 {
    match rude {
        Rude::Never => abi::FP_RUDE_NEVER,
        Rude::Allowed => abi::FP_RUDE_ALLOWED,
        Rude::Always => abi::FP_RUDE_ALWAYS,
    }
}

fn give_law(rule: &mut abi::fp_rule, law: &Law) {
    rule.law = field_of(law.name());
    let ours = law.ours();
    let values = ours.iter().flat_map(|law| law.values());
    for (field, value) in rule.law_params.iter_mut().zip(values) {
        *field = *value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel half counts on it that the twins number the settings alike.
    #[test]
    fn the_kernel_half_counts_the_settings_as_the_policy_does() {
        let numbers = [
            (Setting::SendBuffer, abi::FP_SEND_BUFFER),
            (Setting::NotsentLowat, abi::FP_NOTSENT_LOWAT),
            (Setting::Pacing, abi::FP_PACING),
            (Setting::MaxSsthresh, abi::FP_SOCKET_SETTINGS),
            (Setting::MaxBurst, abi::FP_MAX_BURST),
            (Setting::Reordering, abi::FP_RULE_VALUES),
            (Setting::Divide, abi::FP_SETTINGS - 1),
        ];
        for (setting, number) in numbers {
            assert_eq!(setting as u32, number, "{setting:?}");
        }
    }

    #[test]
    fn each_setting_stands_in_its_place() {
        let text = "[[rule]]\nname = 'r'\nrto_min = '20ms'\npacing_rate = '1gbit'\nrude = 'always'\n\
            rude_rate = '1mbit'\nsend_buffer = 9000000\ndivide = true\n";
        let policy = fatpath_policy::parse(text, None).expect("the policy is good");
        let rule = rule_of(&policy.rules[0].settings);
        let value = |setting: u32| rule.value[setting as usize];
        assert_eq!(value(abi::FP_RTO_MIN), 20_000);
        assert_eq!(value(abi::FP_PACING_RATE), 1_000_000_000);
        assert_eq!(value(abi::FP_RUDENESS), u64::from(abi::FP_RUDE_ALWAYS));
        assert_ne!(rule.given & 1 << abi::FP_DIVIDE, 0);
        assert_eq!(rule.given & 1 << abi::FP_OVERRIDE_APPLICATION, 0);
        assert_eq!(value(abi::FP_RUDE_RATE), 1_000_000);
        let unlimited = text.replace("'1mbit'", "'unlimited'");
        let policy = fatpath_policy::parse(&unlimited, None).expect("the policy is good");
        let rule = rule_of(&policy.rules[0].settings);
        assert_eq!(
            rule.value[abi::FP_RUDE_RATE as usize],
            abi::FP_RUDE_UNLIMITED
        );
    }
}
