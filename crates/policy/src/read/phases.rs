// SPDX-License-Identifier: MIT OR Apache-2.0
//! Phases of programs: `[phases.NAME]`, and what a rule gives in one (`phase.collective`). Start at [`read`].

use crate::phases::{MAX_PATTERN_LENGTH, MAX_PATTERNS, MAX_PHASE_TABLES};
use crate::settings::Chosen;
use crate::{Law, Pattern, PhaseTable, Rule, Setting, SettingValue, Settings, our_window_laws};
use fatpath_toml::{Refusal, Section, Value};

/// What can differ: a socket is given it at the moment of the change, or the laws read it of the rule.
const BY_PHASE: [Setting; 8] = [
    Setting::CongestionControl,
    Setting::Pacing,
    Setting::PacingRate,
    Setting::MaxSsthresh,
    Setting::InitialSsthresh,
    Setting::AfterIdle,
    Setting::Hystart,
    Setting::MaxBurst,
];

/// The tables `[phases.NAME]`.
pub(super) fn read(root: &mut Section, rules: &[Rule]) -> Vec<PhaseTable> {
    let tables = root.take_named("phases");
    let tables = root.noted(tables).unwrap_or_default();
    if tables.len() > MAX_PHASE_TABLES {
        let refusal = root.refusal(format!("{} tables [phases.NAME]", tables.len()));
        root.note(refusal.allowed(format!("allowed: at most {MAX_PHASE_TABLES}")));
        return Vec::new();
    }
    let read: Vec<PhaseTable> = tables
        .into_iter()
        .map(|(name, section)| read_table(name, section))
        .collect();
    let differs = rules.iter().find(|rule| rule.has_phases());
    if let (Some(rule), true) = (differs, read.is_empty()) {
        let refusal = root.refusal(format!(
            "rule `{}` differs by phase, and no table says what a phase is",
            rule.name
        ));
        root.note(refusal.allowed("write [phases.mpi]"));
    }
    read
}

fn read_table(name: String, section: Section) -> PhaseTable {
    let mut section = section.titled(format!("[phases.{name}]"));
    let built_in = PhaseTable::built_in(&name);
    let libraries = read_patterns(&mut section, "library");
    let collective = read_patterns(&mut section, "collective");
    section.note_unknown();
    let or_built_in = |key: &'static str, read: Vec<Pattern>, own: Option<Vec<Pattern>>| {
        if read.is_empty() && own.is_none() && !section.has(key) {
            section.note(section.missing(key, "a list of names, in which * stands for any characters; only [phases.mpi] has its own"));
        }
        match read.is_empty() {
            true => own.unwrap_or_default(),
            false => read,
        }
    };
    PhaseTable {
        libraries: or_built_in(
            "library",
            libraries,
            built_in.clone().map(|own| own.libraries),
        ),
        collective: or_built_in("collective", collective, built_in.map(|own| own.collective)),
        name,
    }
}

/// A text, or a list of them.
fn read_patterns(section: &mut Section, key: &'static str) -> Vec<Pattern> {
    if section
        .value(key)
        .is_some_and(|value| value.as_str().is_some())
    {
        return section.read(key, pattern).into_iter().collect();
    }
    let read = section.read_list(key, pattern);
    if read.len() > MAX_PATTERNS {
        let refusal = section.refusal(format!("{} names in `{key}`", read.len()));
        section.note(refusal.allowed(format!("allowed: at most {MAX_PATTERNS}")));
    }
    read.into_iter().map(|(pattern, _)| pattern).collect()
}

fn pattern(value: &Value) -> Result<Pattern, Refusal> {
    const ALLOWED: &str = "1 to 255 visible characters, in which * stands for any";
    let text = value.raw()?;
    let is_good = !text.is_empty()
        && text.len() <= MAX_PATTERN_LENGTH
        && text.chars().all(|c| c.is_ascii_graphic())
        && text.chars().any(|c| c != '*');
    match is_good {
        true => Ok(Pattern::new(text)),
        false => Err(value.found(ALLOWED)),
    }
}

/// `phase.collective` of a rule: all that the rule gives, with what differs in its place, which `read` reads.
pub(super) fn read_collective<'v>(
    section: &mut Section<'v>,
    of_rule: &Settings,
    read: impl Fn(&mut Section<'v>, Setting) -> Option<Chosen<SettingValue>>,
) -> Option<Settings> {
    let phase = section.read("phase", |value| value.section_or("a table of phases"))?;
    let mut phase = phase.titled("phase");
    let collective = phase.read("collective", |value| {
        value.section_or("a table of settings")
    });
    phase.note_unknown();
    let mut collective = collective?.titled("phase.collective");
    refuse_other_laws(section, &collective, of_rule);
    let read = |setting| Some((setting, read(&mut collective, setting)?));
    let differs: Settings = BY_PHASE.into_iter().filter_map(read).collect();
    let is_unpaced = collective
        .value("pacing")
        .is_some_and(|value| value.as_toml().as_bool() == Some(false));
    collective.note_unknown();
    let has_own_hystart = section.has("hystart");
    let is_kept = |setting: &Setting| match setting {
        Setting::Pacing | Setting::PacingRate => !is_unpaced,
        // The rule's law's default is not the phase's law's.
        Setting::Hystart => has_own_hystart || differs.law().is_none(),
        _ => true,
    };
    let kept = of_rule.iter().filter(|(setting, _)| is_kept(setting));
    let kept: Settings = kept
        .map(|(setting, chosen)| (setting, chosen.clone()))
        .collect();
    Some(differs.over(&kept).with_defaults_of_law())
}

/// Laws of fatpath that set the window run by one program, which knows both of a flow that has one in a phase and another
/// outside. Any other is a change of TCP_CONGESTION, at which the kernel wipes what a law remembers.
fn refuse_other_laws(rule: &Section, collective: &Section, of_rule: &Settings) {
    let law = of_rule.law();
    if !law.is_some_and(|law| law.is_our_window_law()) {
        let refusal =
            rule.refusal("what differs by phase needs a law of fatpath that sets the window");
        rule.note(
            refusal.allowed("give the rule congestion_control = \"fp_aimd\", or another such law"),
        );
        return;
    }
    let Some(named) = super::law::law_name(collective) else {
        return;
    };
    if !Law::named(named).is_our_window_law() {
        let laws = our_window_laws().collect::<Vec<_>>().join(", ");
        let refusal = collective.refusal(format!(
            "`{named}` in a phase: at each change of TCP_CONGESTION the kernel wipes what the law has learned"
        ));
        collective.note(refusal.allowed(format!("allowed in a phase: {laws}")));
    }
}

#[cfg(test)]
mod tests {
    use crate::{Setting, parse};

    const RULE: &str = "[phases.mpi]\n[[rule]]\nname = \"mpi\"\npacing_rate = \"500mbit\"\n\
        congestion_control = { law = \"fp_aimd\", a = 4, b = 0.125 }\n";

    #[test]
    fn a_phase_is_the_rule_with_what_differs() {
        let text = format!(
            "{RULE}phase.collective = {{ pacing_rate = \"60mbit\", initial_ssthresh = 20, \
             congestion_control = {{ law = \"fp_aimd\", a = 1 }} }}\n"
        );
        let policy = parse(&text, None).unwrap();
        let rule = &policy.rules[0];
        let collective = rule.collective.as_ref().unwrap();
        let rate = |settings: &crate::Settings| settings.number(Setting::PacingRate);
        assert_eq!(rate(&rule.settings), Some(500_000_000));
        assert_eq!(rate(collective), Some(60_000_000));
        assert_ne!(rule.settings.law(), collective.law());
        assert!(collective.gives(Setting::InitialSsthresh));
        let mpi = &policy.phases[0];
        assert!(mpi.is_library("/usr/lib/libmpi.so.40") && mpi.is_collective("PMPI_Alltoall"));
    }

    #[test]
    fn a_phase_may_have_another_of_the_laws_that_share_a_program() {
        let hystart = |rule: &str, phase: &str| {
            let text = format!(
                "[phases.mpi]\n[[rule]]\nname = \"mpi\"\n{rule}\nphase.collective = {{ {phase} }}\n"
            );
            let policy = parse(&text, None).unwrap();
            let collective = policy.rules[0].collective.as_ref().unwrap();
            (
                collective.law().unwrap().name().to_owned(),
                collective.is_on(Setting::Hystart),
            )
        };
        let (reno, cubic) = (
            "congestion_control = \"fp_reno\"",
            "congestion_control = \"fp_cubic\"",
        );
        assert_eq!(hystart(reno, cubic), ("fp_cubic".to_owned(), true));
        assert_eq!(hystart(cubic, reno), ("fp_reno".to_owned(), false));
        let asked = format!("{cubic}\nhystart = true");
        assert_eq!(hystart(&asked, reno), ("fp_reno".to_owned(), true));
        assert_eq!(
            hystart(cubic, "pacing = true"),
            ("fp_cubic".to_owned(), true)
        );
    }

    #[test]
    fn pacing_ends_in_a_phase_that_says_so() {
        let text = format!("{RULE}phase.collective = {{ pacing = false }}\n");
        let policy = parse(&text, None).unwrap();
        let collective = policy.rules[0].collective.as_ref().unwrap();
        assert!(!collective.gives(Setting::PacingRate) && collective.law().is_some());
    }

    #[test]
    fn an_explanation_says_what_differs() {
        let text =
            format!("{RULE}phase.collective = {{ pacing = false, initial_ssthresh = 12 }}\n");
        let policy = parse(&text, None).unwrap();
        let flow = crate::Flow::to("192.0.2.1".parse().unwrap());
        let notes = crate::explain(&policy, &flow).notes.join("\n");
        assert!(
            notes.contains("gets initial_ssthresh 12 segments, no pacing_rate"),
            "{notes}"
        );
    }

    #[test]
    fn own_tables_name_library_and_functions() {
        let text = "[phases.gloo]\nlibrary = \"libgloo.so*\"\ncollective = [\"*allreduce*\"]\n";
        let policy = parse(text, None).unwrap();
        assert!(policy.phases[0].is_library("libgloo.so.0"));
        assert!(policy.phases[0].is_collective("_ZN4gloo9allreduceERNS_16AllreduceOptionsE"));
    }

    #[test]
    fn what_is_wrong_is_told_with_what_is_allowed() {
        let refused = |text: &str| parse(text, None).unwrap_err()[0].to_string();
        let rule = RULE.replace("[phases.mpi]\n", "");
        let differs = "phase.collective = { pacing = false }\n";
        assert!(refused(&format!("{rule}{differs}")).contains("[phases.mpi]"));
        assert!(refused("[phases.x]\nlibrary = \"libx.so\"\n").contains("collective"));
        assert!(refused("[phases.mpi]\nlibrary = \"*\"\n").contains("visible characters"));
        for law in ["cubic", "fp_bbr"] {
            let other = format!("{RULE}phase.collective = {{ congestion_control = \"{law}\" }}\n");
            let said = refused(&other);
            assert!(said.contains("wipes what the law has learned"), "{said}");
            assert!(said.contains("fp_highspeed"), "{said}");
        }
        let cubic = format!("[phases.mpi]\n[[rule]]\nname = \"a\"\n{differs}");
        assert!(refused(&cubic).contains("needs a law of fatpath"));
        let unknown = format!("{RULE}phase.collective = {{ rto_min = \"10ms\" }}\n");
        assert!(refused(&unknown).contains("rto_min"));
        assert!(refused(&format!("{RULE}phase.point = {{}}\n")).contains("point"));
    }
}
