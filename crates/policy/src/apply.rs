// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a flow gets of its rule, over its path and at a stage of its life: what the kernel half does with a rule
//! (bpf/include/settings.h), as a value.
//!
//! The dry run shows it to people, the simulator gives it to its flows. Start at [`apply`].

use crate::setting::{FP_MIN_SHARE_BYTES, FP_RUDE_CONVERGED_MILLI};
use crate::settings::{Rude, Ssthresh};
use crate::{Law, Setting, SettingValue, Settings, Stage, Unit};

/// What is known of a flow and its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathFacts {
    /// A full segment; `None` when it is not known.
    pub segment: Option<Segment>,
    /// Flows of the rule at the same time, this one too.
    pub flows: u64,
    /// The program has set its own SO_SNDBUF and SO_RCVBUF.
    pub program_sets_buffers: bool,
}

/// A full segment of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its payload.
    pub mss_bytes: u32,
    /// Its headers of IP and TCP.
    pub header_bytes: u32,
}

/// What a flow gets, in the order of the manual.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Applied(Vec<Given>);

/// One setting that a flow gets.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Given {
    /// Which.
    pub setting: Setting,
    /// What the flow gets.
    pub value: SettingValue,
    /// What the value is counted in.
    pub unit: Unit,
    /// Where the value comes from, for people.
    pub reason: String,
}

/// What a flow of a rule with these settings gets at this stage of its life.
pub fn apply(settings: &Settings, stage: Stage, facts: &PathFacts) -> Applied {
    let due = settings
        .iter()
        .filter(|(setting, _)| setting.spec().stage.is_due(stage))
        .filter(|(setting, _)| !is_programs_own(*setting, settings, facts));
    let given = due.map(|(setting, chosen)| {
        let (value, unit) = value_of(setting, &chosen.value, settings, stage, facts);
        Given {
            setting,
            value,
            unit,
            reason: chosen.reason.clone(),
        }
    });
    Applied(given.collect())
}

impl Stage {
    /// Whether what belongs to this stage is given at `now`.
    fn is_due(self, now: Stage) -> bool {
        match now {
            Stage::BeforeSyn => self == Stage::BeforeSyn,
            Stage::Established => true,
            Stage::Live => self != Stage::Established,
        }
    }
}

fn is_programs_own(setting: Setting, settings: &Settings, facts: &PathFacts) -> bool {
    is_buffer(setting)
        && facts.program_sets_buffers
        && !settings.is_on(Setting::OverrideApplication)
}

fn is_buffer(setting: Setting) -> bool {
    matches!(setting, Setting::SendBuffer | Setting::ReceiveBuffer)
}

fn value_of(
    setting: Setting,
    value: &SettingValue,
    settings: &Settings,
    stage: Stage,
    facts: &PathFacts,
) -> (SettingValue, Unit) {
    let unit = setting.spec().unit;
    match (setting, value, facts.segment) {
        // Before the SYN undivided: the window scale cannot grow later, the share can.
        (Setting::SendBuffer | Setting::ReceiveBuffer, SettingValue::Number(bytes), _)
            if settings.is_on(Setting::Divide) && stage != Stage::BeforeSyn =>
        {
            (SettingValue::Number(share_of(*bytes, facts.flows)), unit)
        }
        (_, SettingValue::Ssthresh(ssthresh), segment) => ssthresh_of(*ssthresh, segment),
        (Setting::RudeRate, SettingValue::Number(bps), Some(segment)) => {
            (SettingValue::Number(segment.without_headers(*bps)), unit)
        }
        _ => (value.clone(), unit),
    }
}

/// The share of a buffer that a rule's flows divide among themselves: `share_of()` of bpf/include/settings.h.
fn share_of(bytes: u64, flows: u64) -> u64 {
    let least = u64::from(FP_MIN_SHARE_BYTES).min(bytes);
    (bytes / flows.max(1)).max(least)
}

/// In segments where their size is known.
fn ssthresh_of(ssthresh: Ssthresh, segment: Option<Segment>) -> (SettingValue, Unit) {
    match (ssthresh, segment) {
        (Ssthresh::Bytes(bytes), None) => (SettingValue::Number(bytes), Unit::Bytes),
        (Ssthresh::Bytes(_), Some(segment)) => {
            let pkts = ssthresh.pkts(segment.mss_bytes);
            (SettingValue::Number(pkts.into()), Unit::Pkts)
        }
        (Ssthresh::Segments(pkts), _) => (SettingValue::Number(pkts.into()), Unit::Pkts),
    }
}

impl Segment {
    /// Of a rate of IP packets, what pacing counts: `without_headers()` of bpf/rude.bpf.c.
    pub fn without_headers(&self, rate_bps: u64) -> u64 {
        let mss_bytes = u128::from(self.mss_bytes);
        let packet_bytes = mss_bytes + u128::from(self.header_bytes);
        let data_bps = u128::from(rate_bps) * mss_bytes / packet_bytes.max(1);
        (data_bps as u64).max(1)
    }
}

impl Default for PathFacts {
    /// One flow, of which nothing is known.
    fn default() -> PathFacts {
        PathFacts {
            segment: None,
            flows: 1,
            program_sets_buffers: false,
        }
    }
}

impl Applied {
    /// All of it, in the order of the manual.
    pub fn iter(&self) -> impl Iterator<Item = &Given> {
        self.0.iter()
    }

    /// The value of a setting that is a number.
    pub fn number(&self, setting: Setting) -> Option<u64> {
        self.value(setting)?.as_number()
    }

    /// The same within 32 bits.
    pub fn number_u32(&self, setting: Setting) -> Option<u32> {
        u32::try_from(self.number(setting)?).ok()
    }

    /// Whether it is switched on.
    pub fn is_on(&self, setting: Setting) -> bool {
        self.value(setting).and_then(SettingValue::as_truth) == Some(true)
    }

    /// The whole of a number of which the flow has a share among others that send.
    pub fn shared(&self, setting: Setting) -> Option<u64> {
        match self.value(setting)? {
            SettingValue::Shared(whole) => Some(*whole),
            _ => None,
        }
    }

    /// Whether the rule lifts the bound that the setting is.
    pub fn is_unlimited(&self, setting: Setting) -> bool {
        self.value(setting) == Some(&SettingValue::Unlimited)
    }

    /// The law of congestion control.
    pub fn law(&self) -> Option<&Law> {
        self.value(Setting::CongestionControl)?.as_law()
    }

    /// Whether the flow may go on without congestion control; `None`: never.
    pub fn rude(&self) -> Option<Rude> {
        self.value(Setting::Rude)?.as_rude()
    }

    /// RUDE_OFF_NICELY ends when the artificial window is within this of the fair one, thousandths.
    pub fn rude_converged_milli(&self) -> u32 {
        self.number_u32(Setting::RudeConverged)
            .unwrap_or(FP_RUDE_CONVERGED_MILLI)
    }

    /// How the flow starts, as `fatpath-cc` has it; `otherwise` where the rule does not say.
    pub fn start(&self, otherwise: fatpath_cc::Start) -> fatpath_cc::Start {
        let pkts = |setting, otherwise| self.number_u32(setting).unwrap_or(otherwise);
        fatpath_cc::Start {
            max_ssthresh_pkts: pkts(Setting::MaxSsthresh, otherwise.max_ssthresh_pkts),
            initial_ssthresh_pkts: pkts(Setting::InitialSsthresh, otherwise.initial_ssthresh_pkts),
            initial_rate_bps: self
                .number(Setting::InitialRate)
                .unwrap_or(otherwise.initial_rate_bps),
            idle: self
                .value(Setting::AfterIdle)
                .and_then(SettingValue::as_after_idle)
                .map_or(otherwise.idle, fatpath_cc::Idle::from),
            hystart: self
                .value(Setting::Hystart)
                .and_then(SettingValue::as_truth)
                .unwrap_or(otherwise.hystart),
            ..otherwise
        }
    }

    fn value(&self, setting: Setting) -> Option<&SettingValue> {
        let given = self.0.iter().find(|given| given.setting == setting)?;
        Some(&given.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: &str = "[[rule]]\nname = 'a'\ncongestion_control = 'fp_reno'\nrtt = '100ms'\nrate = '1gbit'\n\
        send_buffer = 8000000\nreceive_buffer = 100000\ninitial_window = 20\nrto_min = '20ms'\n\
        initial_ssthresh = 'bdp'\nrude = 'allowed'\nrude_rate = '1gbit'\n";

    fn applied(more: &str, stage: Stage, facts: PathFacts) -> Applied {
        let policy = crate::parse(&format!("{RULE}{more}"), None).expect("the policy is good");
        apply(&policy.rules[0].settings, stage, &facts)
    }

    fn given(applied: &Applied) -> Vec<Setting> {
        applied.iter().map(|given| given.setting).collect()
    }

    #[test]
    fn a_flow_gets_each_setting_at_its_stage() {
        let before_syn = applied("", Stage::BeforeSyn, PathFacts::default());
        assert_eq!(given(&before_syn), [Setting::ReceiveBuffer]);
        let established = given(&applied("", Stage::Established, PathFacts::default()));
        let live = given(&applied("", Stage::Live, PathFacts::default()));
        let missed = established.iter().filter(|one| !live.contains(one));
        let of_the_beginning = [Setting::InitialWindow, Setting::InitialSsthresh];
        assert_eq!(missed.copied().collect::<Vec<_>>(), of_the_beginning);
    }

    #[test]
    fn divided_buffers_are_shared_but_for_the_syn_and_never_too_small() {
        let facts = PathFacts {
            flows: 16,
            ..PathFacts::default()
        };
        let buffers = |stage| {
            let applied = applied("divide = true\n", stage, facts);
            [Setting::SendBuffer, Setting::ReceiveBuffer].map(|setting| applied.number(setting))
        };
        assert_eq!(buffers(Stage::Live), [Some(500_000), Some(65_536)]);
        assert_eq!(buffers(Stage::BeforeSyn), [None, Some(100_000)]);
        assert_eq!(share_of(5_000, 3), 5_000);
    }

    #[test]
    fn a_programs_own_buffer_stays_unless_it_is_overridden() {
        let facts = PathFacts {
            program_sets_buffers: true,
            ..PathFacts::default()
        };
        let bytes = |more| applied(more, Stage::Live, facts).number(Setting::SendBuffer);
        assert_eq!(bytes(""), None);
        assert_eq!(bytes("override_application = true\n"), Some(8_000_000));
    }

    #[test]
    fn what_depends_on_the_segment_is_told_in_it_once_it_is_known() {
        let unknown = applied("", Stage::Established, PathFacts::default());
        assert_eq!(unknown.number(Setting::InitialSsthresh), Some(12_500_000));
        assert_eq!(unknown.number(Setting::RudeRate), Some(1_000_000_000));
        let segment = Segment {
            mss_bytes: 1250,
            header_bytes: 1250,
        };
        let facts = PathFacts {
            segment: Some(segment),
            ..PathFacts::default()
        };
        let known = applied("", Stage::Established, facts);
        assert_eq!(known.number(Setting::InitialSsthresh), Some(10_000));
        assert_eq!(known.number(Setting::RudeRate), Some(500_000_000));
        assert_eq!(known.rude_converged_milli(), 10);
    }
}
