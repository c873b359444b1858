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
                    law.with(parameter.key, number).ok(),
                    "{text}"
                );
            }
        }
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
    let told = (1..=7).map(|last| {
        let flow = Flow::parse(&format!("192.0.2.{last}")).unwrap();
        let explanation = explain(&policy, &flow).to_string();
        let lines = explanation.lines().filter(|line| line.starts_with("  "));
        lines.map(|line| format!("{line}\n")).collect::<String>()
    });
    insta::assert_snapshot!(told.collect::<Vec<_>>().join("\n"));
}
