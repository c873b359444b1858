// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `[auto]` section of the policy file. Start at [`read`].

use super::values;
use crate::{Auto, AutoMode, Prefix, Rule};
use fatpath_toml::{Refusal, Section, Value};

/// A rule whose path is measured has paths learned, also without the section.
pub(super) fn read(root: &mut Section, rules: &[Rule]) -> Auto {
    let allowed = "a table, under a line `[auto]`";
    let measured = rules.iter().find(|rule| !rule.path.follows.is_nothing());
    let Some(section) = root.read("auto", |value| value.section_or(allowed)) else {
        return Auto {
            mode: measured.map_or(AutoMode::Off, |_| AutoMode::Observe),
            ..Auto::default()
        };
    };
    let mut section = section.titled("[auto]");
    let exclude = section.read_list("exclude", values::prefix);
    let private = section.read_list("private", private);
    if let (Some(rule), Some(value)) = (measured, section.value("mode"))
        && value.as_str() == Some(AutoMode::Off.name())
    {
        let message = format!(
            "rule `{}` asks for what is measured, and nothing is learned of paths",
            rule.name
        );
        let remedy =
            "write mode = \"observe\", which tunes no flow, or give the rule its rtt and rate";
        section.note(value.refusal(message).allowed(remedy));
    }
    let auto = Auto {
        mode: section.read("mode", mode).unwrap_or(AutoMode::Observe),
        exclude: exclude.into_iter().map(|(prefix, _)| prefix).collect(),
        private: private.into_iter().map(|(prefix, _)| prefix).collect(),
        override_application: section
            .read("override_application", values::truth)
            .unwrap_or_default(),
    };
    section.note_unknown();
    auto
}

/// What is learned is of a whole /24, of IPv6 of a /48.
fn private(value: &Value) -> Result<Prefix, Refusal> {
    let prefix = values::prefix(value)?;
    let longest = if prefix.is_ipv4() { 24 } else { 48 };
    match prefix.length_bits() <= longest {
        true => Ok(prefix),
        false => Err(value.found(&format!(
            "a prefix of at most {longest} bits: no narrower path is known"
        ))),
    }
}

fn mode(value: &Value) -> Result<AutoMode, Refusal> {
    let mut modes = AutoMode::ALL.into_iter();
    let chosen = modes.find(|mode| value.as_str() == Some(mode.name()));
    chosen.ok_or_else(|| value.found("\"off\", \"observe\" or \"tune\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn without_the_section_nothing_is_learned() {
        assert_eq!(parse("[host]\n", None).unwrap().auto, Auto::default());
        assert_eq!(Auto::default().mode, AutoMode::Off);
    }

    #[test]
    fn the_section_says_what_is_learned() {
        let text = "[auto]\nmode = \"tune\"\nexclude = [\"192.0.2.0/24\"]\nprivate = [\"10.0.0.0/8\", \"2001:db8::/48\"]\n";
        let auto = parse(text, None).unwrap().auto;
        assert_eq!(auto.mode, AutoMode::Tune);
        assert_eq!(auto.exclude, ["192.0.2.0/24".parse().unwrap()]);
        let private = ["10.0.0.0/8", "2001:db8::/48"].map(|prefix| prefix.parse().unwrap());
        assert_eq!(auto.private, private);
        assert!(!auto.override_application);
        assert_eq!(
            parse("[auto]\n", None).unwrap().auto.mode,
            AutoMode::Observe
        );
    }

    #[test]
    fn programs_buffers_are_overridden_only_where_flows_are_tuned() {
        let overrides = |mode: &str, value: &str| {
            let text = format!("[auto]\nmode = \"{mode}\"\noverride_application = {value}\n");
            parse(&text, None).unwrap().auto.overrides()
        };
        assert!(overrides("tune", "true"));
        assert!(!overrides("tune", "false") && !overrides("observe", "true"));
    }

    #[test]
    fn what_is_wrong_is_told_with_what_is_allowed() {
        let refused = |text: &str| parse(text, None).unwrap_err()[0].to_string();
        assert!(refused("[auto]\nmode = \"on\"\n").contains("\"observe\""));
        assert!(refused("[auto]\nexclude = [\"far\"]\n").contains("far"));
        assert!(refused("[auto]\nmodes = \"off\"\n").contains("modes"));
        for narrow in ["192.0.2.7", "192.0.2.0/25", "2001:db8::/49"] {
            let text = format!("[auto]\nprivate = [\"{narrow}\"]\n");
            assert!(
                refused(&text).contains("no narrower path is known"),
                "{narrow}"
            );
        }
        let not_truth = "[auto]\noverride_application = \"yes\"\n";
        assert!(refused(not_truth).contains("true or false"));
        assert!(refused("auto = 1\n").contains("[auto]"));
    }
}
