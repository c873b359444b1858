// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the flows of a rule get: a value for each setting that the rule gives.

use crate::{Law, Setting, Unit};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::collections::BTreeMap;

/// What the flows of a rule get. An absent setting leaves the kernel's own value alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings(BTreeMap<Setting, Chosen<SettingValue>>);

/// The value of a setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum SettingValue {
    /// A number in the unit of the setting.
    Number(u64),
    /// On or off.
    Truth(bool),
    /// A slow-start threshold.
    Ssthresh(Ssthresh),
    /// What becomes of the window in a pause.
    AfterIdle(AfterIdle),
    /// Whether a flow may go on without congestion control.
    Rude(Rude),
    /// A law with its parameters.
    Law(Law),
    /// Users.
    Users(Vec<User>),
    /// A rate that those of the rule's flows share that send, bits a second: each of n has 1/n.
    #[serde(serialize_with = "serialize_shared")]
    Shared(u64),
    /// No bound, where a number would be one.
    #[serde(serialize_with = "serialize_unlimited")]
    Unlimited,
}

/// A value together with why it is what it is, for people.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Chosen<T> {
    /// The value, in the unit of the field that holds it.
    pub value: T,
    /// Where it comes from, for instance `1 Gb/s x 100 ms = 12.5 MB (bdp), x 2`.
    pub reason: String,
}

/// A slow-start threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ssthresh {
    /// In segments, 2 to 2^20.
    Segments(u32),
    /// What the path holds, in bytes: see [`Ssthresh::pkts`].
    Bytes(u64),
}

/// What becomes of the window in a pause longer than the RTO.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterIdle {
    /// It decays to the initial window (RFC 2861), and slow start follows.
    Restart,
    /// It stays.
    Keep,
    /// It decays, and the flow goes on paced at ssthresh × MSS / RTT until the first ACK.
    Pace,
}

/// Whether a flow may go on without congestion control, once the gate is open (`fatpath rude on`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rude {
    /// Whatever is asked.
    Never,
    /// When its program asks, by the socket option TCP_RUDE or `fatpath rude run`.
    Allowed,
    /// Whatever its program says.
    Always,
}

/// A user as the policy names him.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum User {
    /// By name, as `getent passwd` knows it.
    Name(String),
    /// By number.
    Id(u32),
}

impl Settings {
    /// Those that are given, in the order of the manual.
    pub fn iter(&self) -> impl Iterator<Item = (Setting, &Chosen<SettingValue>)> {
        self.0.iter().map(|(setting, chosen)| (*setting, chosen))
    }

    /// Whether the rule gives it.
    pub fn gives(&self, setting: Setting) -> bool {
        self.0.contains_key(&setting)
    }

    /// The value of a setting that is a number, in its unit.
    pub fn number(&self, setting: Setting) -> Option<u64> {
        self.value(setting)?.as_number()
    }

    /// The value of a setting that is on or off.
    pub fn truth(&self, setting: Setting) -> Option<bool> {
        self.value(setting)?.as_truth()
    }

    /// Whether the rule switches it on.
    pub fn is_on(&self, setting: Setting) -> bool {
        self.truth(setting) == Some(true)
    }

    /// The law of congestion control.
    pub fn law(&self) -> Option<&Law> {
        self.value(Setting::CongestionControl)?.as_law()
    }

    /// The slow-start threshold of a new flow.
    pub fn initial_ssthresh(&self) -> Option<Ssthresh> {
        match self.value(Setting::InitialSsthresh)? {
            SettingValue::Ssthresh(ssthresh) => Some(*ssthresh),
            _ => None,
        }
    }

    /// Whether the rule lifts the bound that the setting is.
    pub fn is_unlimited(&self, setting: Setting) -> bool {
        self.value(setting) == Some(&SettingValue::Unlimited)
    }

    /// Whether the rule's flows share what the setting is.
    pub fn is_shared(&self, setting: Setting) -> bool {
        matches!(self.value(setting), Some(SettingValue::Shared(_)))
    }

    /// Whether a flow may go on without congestion control; `None`: never.
    pub fn rude(&self) -> Option<Rude> {
        self.value(Setting::Rude)?.as_rude()
    }

    /// Who may be rude; `None`: everybody. Never empty.
    pub fn rude_users(&self) -> Option<&[User]> {
        match self.value(Setting::RudeUsers)? {
            SettingValue::Users(users) => Some(users),
            _ => None,
        }
    }

    /// Whether some flow of the rule may be rude.
    pub fn may_be_rude(&self) -> bool {
        matches!(self.rude(), Some(Rude::Allowed | Rude::Always))
    }

    /// With those of a base that they do not give.
    pub fn over(self, base: &Settings) -> Settings {
        let mut all = base.clone();
        all.0.extend(self.0);
        all
    }

    /// With what the law has by default and the rule does not say.
    pub(crate) fn with_defaults_of_law(mut self) -> Settings {
        let name = self.law().map(|law| law.name().to_owned());
        let law = self.law().and_then(Law::ours);
        if let (Some(name), true) = (name, law.is_some_and(|law| law.spec().hystart)) {
            let hystart = Chosen::new(SettingValue::Truth(true), format!("default of {name}"));
            self.0.entry(Setting::Hystart).or_insert(hystart);
        }
        self
    }

    fn value(&self, setting: Setting) -> Option<&SettingValue> {
        self.0.get(&setting).map(|chosen| &chosen.value)
    }
}

impl SettingValue {
    /// [`SettingValue::Unlimited`] as it stands in the policy file.
    pub(crate) const UNLIMITED: &str = "unlimited";

    /// [`SettingValue::Shared`] as it stands in the policy file.
    pub fn shared_text(bps: u64) -> String {
        format!("{}/n", Unit::Bps.written(bps))
    }

    pub(crate) fn as_number(&self) -> Option<u64> {
        match self {
            SettingValue::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub(crate) fn as_truth(&self) -> Option<bool> {
        match self {
            SettingValue::Truth(truth) => Some(*truth),
            _ => None,
        }
    }

    pub(crate) fn as_after_idle(&self) -> Option<AfterIdle> {
        match self {
            SettingValue::AfterIdle(after_idle) => Some(*after_idle),
            _ => None,
        }
    }

    pub(crate) fn as_rude(&self) -> Option<Rude> {
        match self {
            SettingValue::Rude(rude) => Some(*rude),
            _ => None,
        }
    }

    pub(crate) fn as_law(&self) -> Option<&Law> {
        match self {
            SettingValue::Law(law) => Some(law),
            _ => None,
        }
    }
}

fn serialize_shared<S: Serializer>(bps: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&SettingValue::shared_text(*bps))
}

fn serialize_unlimited<S: Serializer>(serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(SettingValue::UNLIMITED)
}

impl FromIterator<(Setting, Chosen<SettingValue>)> for Settings {
    fn from_iter<I: IntoIterator<Item = (Setting, Chosen<SettingValue>)>>(given: I) -> Self {
        Settings(given.into_iter().collect())
    }
}

/// Every setting by its name with its unit, `null` for one that is not given.
impl Serialize for Settings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(Setting::ALL.len()))?;
        for setting in Setting::ALL {
            match setting {
                Setting::CongestionControl => map.serialize_entry("law", &self.0.get(&setting)),
                Setting::OverrideApplication | Setting::Divide => {
                    map.serialize_entry(setting.key(), &self.is_on(setting))
                }
                // Its value says whether it is one of segments or of bytes.
                Setting::InitialSsthresh => {
                    map.serialize_entry(setting.key(), &self.0.get(&setting))
                }
                _ => map.serialize_entry(setting.name_with_unit(), &self.0.get(&setting)),
            }?;
        }
        map.end()
    }
}

impl Rude {
    /// Whether a flow is to be rude whose program asks for it, or does not.
    pub fn makes_rude(self, program_asks: bool) -> bool {
        match self {
            Rude::Never => false,
            Rude::Allowed => program_asks,
            Rude::Always => true,
        }
    }

    pub(crate) const ALL: [Rude; 3] = [Rude::Never, Rude::Allowed, Rude::Always];

    /// As it stands in the policy file.
    pub fn name(self) -> &'static str {
        match self {
            Rude::Never => "never",
            Rude::Allowed => "allowed",
            Rude::Always => "always",
        }
    }
}

impl std::fmt::Display for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            User::Name(name) => f.write_str(name),
            User::Id(id) => write!(f, "uid {id}"),
        }
    }
}

impl std::fmt::Display for Ssthresh {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ssthresh::Segments(pkts) => write!(f, "{pkts} segments"),
            Ssthresh::Bytes(bytes) => f.write_str(&fatpath_units::show_bytes(*bytes)),
        }
    }
}

impl Ssthresh {
    /// In segments of `mss_bytes`; 2 at least, as the kernel half has it.
    pub fn pkts(self, mss_bytes: u32) -> u32 {
        match self {
            Ssthresh::Segments(pkts) => pkts,
            Ssthresh::Bytes(bytes) => {
                let pkts = bytes / u64::from(mss_bytes.max(1));
                u32::try_from(pkts).unwrap_or(u32::MAX).max(2)
            }
        }
    }
}

impl AfterIdle {
    pub(crate) const ALL: [AfterIdle; 3] = [AfterIdle::Restart, AfterIdle::Keep, AfterIdle::Pace];

    /// As it stands in the policy file.
    pub fn name(self) -> &'static str {
        match self {
            AfterIdle::Restart => "restart",
            AfterIdle::Keep => "keep",
            AfterIdle::Pace => "pace",
        }
    }
}

impl From<AfterIdle> for fatpath_cc::Idle {
    fn from(after_idle: AfterIdle) -> Self {
        match after_idle {
            AfterIdle::Restart => fatpath_cc::Idle::Restart,
            AfterIdle::Keep => fatpath_cc::Idle::Keep,
            AfterIdle::Pace => fatpath_cc::Idle::Pace,
        }
    }
}

impl<T> Chosen<T> {
    pub(crate) fn new(value: T, reason: impl Into<String>) -> Self {
        Chosen {
            value,
            reason: reason.into(),
        }
    }

    pub(crate) fn map<U>(self, of: impl FnOnce(T) -> U) -> Chosen<U> {
        Chosen {
            value: of(self.value),
            reason: self.reason,
        }
    }
}
