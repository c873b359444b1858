// SPDX-License-Identifier: MIT OR Apache-2.0
//! Laws and start-up settings in a policy file: what they become, and what is said of bad ones.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

use fatpath_cc::{Idle, Law, Start};
use fatpath_policy::{
    Flow, PathFacts, Policy, Segment, Settings, Stage, apply, explain, our_laws, parse,
};

fn policy() -> Policy {
    parse(include_str!("files/laws.toml"), None).unwrap()
}

fn settings(policy: &Policy, last: u8) -> &Settings {
    let flow = Flow::parse(&format!("192.0.2.{last}")).unwrap();
    &policy.first_match(&flow).unwrap().settings
}

#[test]
fn each_way_to_name_a_law_gives_its_parameters() {
    let policy = policy();
    let law = |last| settings(&policy, last).law().unwrap().to_string();
    assert_eq!(law(1), "fp_aimd(a = 6, b = 0.3)");
    assert_eq!(law(2), "fp_aimd(a = 6, b = 0.5)");
    assert_eq!(law(3), "fp_aimd(a = 4, b = 0.125)");
    // RFC 3649, Appendix B: the row of 1,529 segments, for the 1,381 that 2 MB hold.
    assert_eq!(law(4), "fp_aimd(a = 10, b = 0.31)");
    assert_eq!(
        law(5),
        "fp_scalable(a = 0.005, b = 0.125, legacy_window = 32)"
    );
    assert_eq!(law(7), "fp_reno");
}

#[test]
fn the_simulator_gets_the_same_law_and_start() {
    let policy = policy();
    let ours = |last| settings(&policy, last).law().unwrap().ours();
    let scalable = Law::named("scalable").unwrap();
    let scalable = scalable.with_all(&[("a", 0.005), ("legacy_window", 32.0)]);
    assert_eq!(ours(5), scalable.ok());
    let facts = PathFacts {
        segment: Some(Segment {
            mss_bytes: 1448,
            header_bytes: 52,
        }),
        ..PathFacts::default()
    };
    let start = |last, otherwise| {
        apply(settings(&policy, last), Stage::Established, &facts).start(otherwise)
    };
    let bdp_pkts = 12_500_000 / 1448;
    assert_eq!(
        start(5, Start::default()),
        Start {
            initial_ssthresh_pkts: bdp_pkts,
            idle: Idle::Pace,
            hystart: true,
            ..Start::default()
        }
    );
    let highspeed = start(6, Start::default());
    assert_eq!(highspeed.initial_rate_bps, 500_000_000);
    assert_eq!(
        (highspeed.initial_ssthresh_pkts, highspeed.idle),
        (500, Idle::Keep)
    );
    let otherwise = Start {
        max_ssthresh_pkts: 7,
        idle: Idle::Keep,
        ..Start::default()
    };
    let of_rule = Start {
        max_ssthresh_pkts: 100,
        ..otherwise
    };
    assert_eq!(start(1, otherwise), of_rule);
    assert!(start(8, otherwise).hystart, "the default of fp_cubic");
    assert!(!start(9, otherwise).hystart);
}

#[test]
fn every_law_is_taken_with_every_parameter_at_both_ends_of_its_range() {
    for (name, spec) in our_laws().zip(fatpath_cc::laws()) {
        for parameter in &spec.parameters {
            for end in [parameter.min, parameter.max] {
                let law = Law::named(&name).unwrap();
                let number = parameter.to_number(end);
                let text = format!(
                    "[[rule]]\nname = 'r'\ncongestion_control = {{ law = '{name}', {} = {number} }}\n",
                    parameter.key
                );
                let read =
                    parse(&text, None).map(|policy| policy.rules[0].settings.law().unwrap().ours());
                // What contradicts the other parameters' defaults is refused by both.
                assert_eq!(
                    read.ok().flatten(),
                    law.with_given(&[(parameter.key, number)])
                        .ok()
                        .map(|(law, _)| law),
                    "{text}"
                );
            }
        }
    }
}

/// What a rule with this law says: the law, the warnings.
fn read(law: &str) -> (String, String) {
    let text = format!("[[rule]]\nname = 'r'\ncongestion_control = {law}\n");
    let policy = parse(&text, None).unwrap();
    let warnings = policy.warnings.iter().map(|warning| warning.to_string());
    let warnings = warnings.collect::<Vec<_>>().join("\n");
    (
        policy.rules[0].settings.law().unwrap().to_string(),
        warnings,
    )
}

/// Kelly's slides: a of 4/100, 2/100, 1/100 and 0.005 for b of 1/2, 1/4, 1/8 and 1/16.
#[test]
fn scalables_a_and_b_follow_from_one_another_by_the_legacy_window() {
    let expected = [
        ("b = 0.5", "a = 0.04, b = 0.5, legacy_window = 16"),
        ("b = 0.25", "a = 0.02, b = 0.25, legacy_window = 16"),
        ("a = 0.005", "a = 0.005, b = 0.063, legacy_window = 16"),
        (
            "a = 0.005, legacy_window = 32",
            "a = 0.005, b = 0.125, legacy_window = 32",
        ),
        (
            "legacy_window = 32",
            "a = 0.005, b = 0.125, legacy_window = 32",
        ),
        ("a = 0.04, b = 0.5", "a = 0.04, b = 0.5, legacy_window = 16"),
    ];
    for (given, law) in expected {
        let (read, warnings) = read(&format!("{{ law = 'fp_scalable', {given} }}"));
        assert_eq!(read, format!("fp_scalable({law})"));
        assert_eq!(warnings, "", "{given}");
    }
    assert_eq!(read("'fp_scalable'").1, "");
    for given in [
        "a = 0.01, b = 0.5",
        "a = 0.04, b = 0.125",
        "a = 1",
        "a = 0.01, b = 0.125, legacy_window = 100",
    ] {
        let (_, warnings) = read(&format!("{{ law = 'fp_scalable', {given} }}"));
        assert!(warnings.contains("legacy window of"), "{given}: {warnings}");
    }
}

#[test]
fn a_law_as_strong_as_a_hundred_flows_is_warned_of_with_whom_it_harms() {
    for (given, flows) in [
        ("a = 10000, b = 0.001", "2581"),
        ("streams = 100", "115"),
        ("virtual_mss = 10000", "100"),
    ] {
        let (_, warnings) = read(&format!("{{ law = 'fp_aimd', {given} }}"));
        assert!(
            warnings.contains(&format!("{flows} Reno flows")),
            "{given}: {warnings}"
        );
        assert!(warnings.contains("everybody else"), "{warnings}");
    }
    for given in [
        "streams = 80",
        "virtual_mss = 9000",
        "highspeed_buffer = '1GB'",
        "a = 6, b = 0.3",
    ] {
        assert_eq!(
            read(&format!("{{ law = 'fp_aimd', {given} }}")).1,
            "",
            "{given}"
        );
    }
}

#[test]
fn bad_laws_and_starts_are_told_with_what_is_allowed() {
    let problems = parse(include_str!("files/bad-laws.toml"), None).unwrap_err();
    let told = problems
        .iter()
        .map(|problem| format!("{}\n", problem.in_file("bad-laws.toml")));
    insta::assert_snapshot!(told.collect::<String>());
}

#[test]
fn explanations_show_them() {
    let policy = policy();
    let told = (1..=9).map(|last| {
        let flow = Flow::parse(&format!("192.0.2.{last}")).unwrap();
        let explanation = explain(&policy, &flow).to_string();
        let lines = explanation.lines().filter(|line| line.starts_with("  "));
        lines.map(|line| format!("{line}\n")).collect::<String>()
    });
    insta::assert_snapshot!(told.collect::<Vec<_>>().join("\n"));
}

/// It paces by its own model of the path, and has neither a slow start nor a fair window.
#[test]
fn bbr_takes_no_setting_that_it_does_not_heed() {
    for setting in [
        "hystart = true",
        "max_burst = 64",
        "after_idle = 'pace'",
        "rude = 'allowed'",
    ] {
        let text = format!("[[rule]]\nname = 'r'\ncongestion_control = 'fp_bbr'\n{setting}\n");
        let error = format!("{:?}", parse(&text, None).unwrap_err());
        assert!(
            error.contains("fp_bbr") && error.contains("fp_cubic"),
            "{error}"
        );
    }
}
