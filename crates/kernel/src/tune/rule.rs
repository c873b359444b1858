// SPDX-License-Identifier: MIT OR Apache-2.0
//! A rule of the policy in the form that the kernel reads.

use crate::abi;
use crate::pod::field_of;
use fatpath_policy::{AfterIdle, Law, Rude, Setting, Settings, Ssthresh};

/// The settings that a socket can be given; route metrics are not among them.
pub(crate) fn rule_of(settings: &Settings) -> abi::fp_rule {
    let mut rule = abi::fp_rule {
        flags: flags_of(settings),
        ..Default::default()
    };
    let mut give = |setting: u32, value: Option<u32>, field: &mut u32| {
        if let Some(value) = value {
            rule.given |= 1 << setting;
            *field = value;
        }
    };
    let value = |setting| settings.number(setting).map(|value| value as u32);
    use Setting as S;
    give(
        abi::FP_SEND_BUFFER,
        value(S::SendBuffer),
        &mut rule.send_buffer_bytes,
    );
    give(
        abi::FP_RECEIVE_BUFFER,
        value(S::ReceiveBuffer),
        &mut rule.receive_buffer_bytes,
    );
    give(
        abi::FP_INITIAL_WINDOW,
        value(S::InitialWindow),
        &mut rule.initial_window_pkts,
    );
    give(
        abi::FP_CWND_CLAMP,
        value(S::CwndClamp),
        &mut rule.cwnd_clamp_pkts,
    );
    give(abi::FP_RTO_MIN, value(S::RtoMin), &mut rule.rto_min_us);
    give(
        abi::FP_DELAYED_ACK_MAX,
        value(S::DelayedAckMax),
        &mut rule.delayed_ack_max_us,
    );
    give(
        abi::FP_NOTSENT_LOWAT,
        value(S::NotsentLowat),
        &mut rule.notsent_lowat_bytes,
    );
    give(
        abi::FP_MAX_SSTHRESH,
        value(S::MaxSsthresh),
        &mut rule.max_ssthresh_pkts,
    );
    give(
        abi::FP_AFTER_IDLE,
        settings.after_idle().map(after_idle),
        &mut rule.after_idle,
    );
    give_start(&mut rule, settings);
    if let Some(rate) = settings.number(Setting::PacingRate) {
        rule.given |= 1 << abi::FP_PACING_RATE;
        rule.pacing_rate_bytes_per_s = rate / 8;
    }
    if let Some(law) = settings.law() {
        give_law(&mut rule, law);
    }
    give_rude(&mut rule, settings);
    rule
}

/// The users stand in a map of their own.
fn give_rude(rule: &mut abi::fp_rule, settings: &Settings) {
    rule.rude = match settings.rude() {
        None | Some(Rude::Never) => abi::FP_RUDE_NEVER,
        Some(Rude::Allowed) => abi::FP_RUDE_ALLOWED,
        Some(Rude::Always) => abi::FP_RUDE_ALWAYS,
    };
    let number = |setting| settings.number(setting).unwrap_or(0);
    rule.rude_rate_bytes_per_s = number(Setting::RudeRate) / 8;
    rule.rude_total_bytes_per_s = number(Setting::RudeTotalRate) / 8;
    rule.rude_only_users = settings.gives(Setting::RudeUsers).into();
    // Without a law of its own: the first, Reno.
    rule.rude_fair_law = settings.law().and_then(Law::number).unwrap_or(0);
    rule.rude_converged_milli = number(Setting::RudeConverged) as u32;
}

fn flags_of(settings: &Settings) -> u32 {
    let mut flags = 0;
    if settings.is_on(Setting::OverrideApplication) {
        flags |= abi::FP_RULE_OVERRIDE;
    }
    if settings.is_on(Setting::Divide) {
        flags |= abi::FP_RULE_DIVIDE;
    }
    flags
}

fn give_law(rule: &mut abi::fp_rule, law: &Law) {
    rule.given |= 1 << abi::FP_LAW;
    rule.law = field_of(law.name());
    let ours = law.ours();
    let values = ours.iter().flat_map(|law| law.values());
    for (field, value) in rule.law_params.iter_mut().zip(values) {
        *field = *value;
    }
}

fn after_idle(chosen: AfterIdle) -> u32 {
    match chosen {
        AfterIdle::Restart => abi::FP_IDLE_RESTART,
        AfterIdle::Keep => abi::FP_IDLE_KEEP,
        AfterIdle::Pace => abi::FP_IDLE_PACE,
    }
}

/// The start-up settings that are no plain number of 32 bits.
fn give_start(rule: &mut abi::fp_rule, settings: &Settings) {
    if let Some(ssthresh) = settings.initial_ssthresh() {
        rule.given |= 1 << abi::FP_INITIAL_SSTHRESH;
        match ssthresh {
            Ssthresh::Segments(pkts) => rule.initial_ssthresh_pkts = pkts,
            Ssthresh::Bytes(bytes) => rule.initial_ssthresh_bytes = bytes,
        }
    }
    if let Some(rate) = settings.number(Setting::InitialRate) {
        rule.given |= 1 << abi::FP_INITIAL_RATE;
        rule.initial_rate_bps = rate;
    }
    if let Some(hystart) = settings.truth(Setting::Hystart) {
        rule.given |= 1 << abi::FP_HYSTART;
        rule.flags |= u32::from(hystart) * abi::FP_RULE_HYSTART;
    }
}
