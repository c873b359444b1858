// SPDX-License-Identifier: MIT OR Apache-2.0
//! One `[[rule]]` of the policy file. Start at [`read`].

use super::law::read_law;
use super::path;
use super::phases::read_collective;
use super::rude::{read_users, refuse_rude_terms, rude, rude_rate};
use super::share::{pacing_rate, refuse_shared_rate};
use super::start::{after_idle, initial_ssthresh, refuse_start_without_our_law};
use super::values;
use crate::MeasuredPaths;
use crate::rule::{Match, Path, Rule};
use crate::settings::Chosen;
use crate::{PortRange, Setting, SettingValue, Settings, Way};
use fatpath_toml::Section;

/// Reads a rule; whatever is refused is noted and left out.
pub(super) fn read(
    section: &mut Section,
    laws: Option<&[String]>,
    measured: &MeasuredPaths,
) -> Rule {
    if !section.has("name") {
        let remedy = "write name = \"…\", a name of its own for logs and tables";
        section.note(section.refusal("the rule has no name").allowed(remedy));
    }
    let name = section.read("name", values::name).unwrap_or_default();
    let matches = read_match(section);
    let path = path::read(section, measured.get(&name));
    let known = path.as_ref();
    let settings = read_settings(section, known, laws);
    let collective = read_collective(section, &settings, |phase, setting| {
        read_setting(phase, setting, known, laws)
    });
    refuse_shared_rate(section, &settings, collective.as_ref(), known);
    refuse_without_settings(section);
    refuse_route_metrics(section);
    section.note_unknown();
    Rule {
        name,
        line: section.line(),
        matches,
        path: path.unwrap_or_default(),
        settings,
        collective,
    }
}

pub(super) fn read_match(section: &mut Section) -> Match {
    let prefixes = |read: Vec<(_, _)>| read.into_iter().map(|(prefix, _)| prefix).collect();
    Match {
        destination: prefixes(section.read_list("destination", values::prefix)),
        source: prefixes(section.read_list("source", values::prefix)),
        destination_ports: read_ports(section, "destination_ports"),
        source_ports: read_ports(section, "source_ports"),
        cgroup: section.read("cgroup", values::cgroup),
    }
}

fn read_ports(section: &mut Section, key: &'static str) -> Vec<PortRange> {
    let mut ranges = section.read_list(key, values::ports);
    ranges.sort_by_key(|(range, _)| *range);
    for pair in ranges.windows(2) {
        let ((one, one_value), (next, next_value)) = (&pair[0], &pair[1]);
        if next.first <= one.last {
            let later = if one_value.at() > next_value.at() {
                one_value
            } else {
                next_value
            };
            let refusal = later.refusal(format!("{one} and {next} overlap"));
            section.note(refusal.allowed("name each port once"));
        }
    }
    ranges.into_iter().map(|(range, _)| range).collect()
}

/// `path` is `None` when a part of it was refused.
fn read_settings(section: &mut Section, path: Option<&Path>, laws: Option<&[String]>) -> Settings {
    refuse_start_without_our_law(section);
    let read = |setting| Some((setting, read_setting(section, setting, path, laws)?));
    let given: Settings = Setting::ALL.into_iter().filter_map(read).collect();
    let settings = given.with_defaults_of_law();
    refuse_rude_terms(section, &settings);
    settings
}

/// `path` is `None` when a part of it was refused.
fn read_setting(
    section: &mut Section,
    setting: Setting,
    path: Option<&Path>,
    laws: Option<&[String]>,
) -> Option<Chosen<SettingValue>> {
    let key = setting.key();
    match setting {
        Setting::SendBuffer | Setting::ReceiveBuffer => section
            .read(key, |value| values::buffer(value, setting, path))
            .flatten()
            .map(|bytes| bytes.map(SettingValue::Number)),
        Setting::CongestionControl => {
            read_law(section, path, laws).map(|law| law.map(SettingValue::Law))
        }
        Setting::InitialSsthresh => section
            .read(key, |value| initial_ssthresh(value, path))
            .flatten(),
        Setting::AfterIdle => section.read(key, after_idle),
        Setting::Rude => section.read(key, rude),
        Setting::RudeRate => section.read(key, rude_rate),
        Setting::PacingRate => section.read(key, pacing_rate),
        Setting::RudeUsers => read_users(section),
        Setting::Pacing | Setting::OverrideApplication | Setting::Divide => section
            .read(key, values::truth)
            .filter(|is_on| *is_on)
            .map(|_| Chosen::new(SettingValue::Truth(true), why(setting))),
        _ => section.read(key, |value| values::plain(value, setting)),
    }
}

/// What a setting does that is on or absent.
fn why(setting: Setting) -> &'static str {
    match setting {
        Setting::Pacing => "given as true",
        Setting::Divide => {
            "the rule's concurrent flows share the buffers: each of n gets 1/n, 64 KiB at least"
        }
        _ => "what the program itself chose of the settings here is ignored",
    }
}

/// What a program may set of its own socket, but for the buffers.
fn set_by_programs() -> impl Iterator<Item = Setting> {
    let own = [Setting::CongestionControl, Setting::PacingRate];
    let is_option = |setting: &Setting| matches!(setting.spec().way, Way::Option | Way::Timer);
    let all = Setting::ALL.into_iter();
    all.filter(move |setting| own.contains(setting) || is_option(setting))
}

fn refuse_without_settings(section: &Section) {
    let buffers = ["send_buffer", "receive_buffer"];
    let programs: Vec<&str> = set_by_programs().map(Setting::key).collect();
    let has = |keys: &[&str]| keys.iter().any(|key| section.has(key));
    let (is_divisible, is_overridable) = (has(&buffers), has(&buffers) || has(&programs));
    for setting in Setting::of_way(Way::Rule) {
        let asked = section
            .value(setting.key())
            .filter(|value| value.as_toml().as_bool() == Some(true));
        let Some(value) = asked else { continue };
        let buffer = "give it send_buffer, receive_buffer or both";
        match setting {
            Setting::Divide if !is_divisible => {
                section.note(value.refusal("the rule sets no buffer").allowed(buffer));
            }
            Setting::OverrideApplication if !is_overridable => {
                let refusal = value.refusal("the rule sets nothing that a program sets itself");
                let others = programs.join(", ");
                section.note(refusal.allowed(format!("give it a buffer or one of {others}")));
            }
            _ => {}
        }
    }
}

/// A route knows destinations only, so a metric would also reach the flows that the rule leaves out.
fn refuse_route_metrics(section: &Section) {
    for key in Setting::of_way(Way::Route).map(Setting::key) {
        let Some(value) = section.value(key) else {
            continue;
        };
        if !section.has("destination") {
            let message = "this is a metric of routes, and the rule names no destination";
            let remedy = "give the rule destination = [\"PREFIX\", …]";
            section.note(value.refusal(message).allowed(remedy));
            continue;
        }
        let narrower = ["source", "destination_ports", "source_ports", "cgroup"];
        if let Some(other) = narrower.into_iter().find(|other| section.has(other)) {
            let message = format!(
                "this is a metric of routes, which holds for every flow to the destination, not only for those of `{other}`"
            );
            let remedy = "move it to a rule that has only `destination`";
            section.note(value.refusal(message).allowed(remedy));
        }
    }
}
