// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rude TCP in a policy file: what the keys become, and what is said of bad ones.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

use fatpath_policy::{Flow, Policy, Rude, Setting, User, explain, parse};

fn policy(settings: &str) -> Result<Policy, Vec<String>> {
    let text = format!("[[rule]]\nname = 'a'\ndestination = ['192.0.2.1']\n{settings}\n");
    parse(&text, None).map_err(|problems| problems.iter().map(|p| p.to_string()).collect())
}

fn problem(settings: &str) -> String {
    let problems = policy(settings).unwrap_err();
    assert_eq!(problems.len(), 1, "{problems:?}");
    problems[0].clone()
}

const WHOLE: &str = "congestion_control = 'fp_aimd'\nrude = 'allowed'\nrude_rate = '900mbit'\n\
    rude_total_rate = '1gbit'\nrude_users = ['alice', 1000]\nrude_converged = 0.025";

#[test]
fn every_key_is_read() {
    let policy = policy(WHOLE).unwrap();
    let settings = &policy.rules[0].settings;
    assert!(settings.may_be_rude());
    assert_eq!(settings.rude(), Some(Rude::Allowed));
    assert_eq!(settings.number(Setting::RudeRate), Some(900_000_000));
    let total = settings.number(Setting::RudeTotalRate);
    assert_eq!(total, Some(1_000_000_000));
    let users = [User::Name("alice".into()), User::Id(1000)];
    assert_eq!(settings.rude_users(), Some(&users[..]));
    assert_eq!(settings.number(Setting::RudeConverged), Some(25));
}

#[test]
fn an_explanation_names_them() {
    let flow = Flow::parse("192.0.2.1").unwrap();
    let said = explain(&policy(WHOLE).unwrap(), &flow).to_string();
    for wanted in ["900 Mb/s", "1 Gb/s", "alice or uid 1000", "25 thousandths"] {
        assert!(said.contains(wanted), "{wanted} is not in {said}");
    }
}

#[test]
fn a_rate_may_be_unlimited_and_is_warned_of() {
    let unlimited = "rude = 'allowed'\nrude_rate = 'unlimited'";
    let read = policy(unlimited).unwrap();
    let settings = &read.rules[0].settings;
    assert!(settings.is_unlimited(Setting::RudeRate));
    assert_eq!(settings.number(Setting::RudeRate), None);
    let explanation = explain(&read, &Flow::parse("192.0.2.1").unwrap());
    let rate = explanation
        .settings
        .iter()
        .find(|line| line.setting == "rude_rate");
    assert_eq!(rate.unwrap().value_text(), "unlimited");
    let json = serde_json::to_value(settings).unwrap();
    assert_eq!(json["rude_rate_bps"]["value"], "unlimited");
    let warning = read.warnings[0].to_string();
    assert!(warning.contains("only its window bounds"), "{warning}");
    for bounded in [
        "rude = 'allowed'\nrude_rate = '1gbit'".to_owned(),
        format!("{unlimited}\nrude_total_rate = '1gbit'"),
    ] {
        assert_eq!(policy(&bounded).unwrap().warnings, [], "{bounded}");
    }
}

#[test]
fn nobody_may_be_rude_by_default() {
    assert!(!policy("").unwrap().rules[0].settings.may_be_rude());
    assert!(
        !policy("rude = 'never'").unwrap().rules[0]
            .settings
            .may_be_rude()
    );
}

#[test]
fn bad_values_are_told() {
    for (settings, said) in [
        ("rude = true", "\"never\", \"allowed\" or \"always\""),
        ("rude = 'yes'", "\"never\", \"allowed\" or \"always\""),
        ("rude_rate = '1gbit'", "no flow of the rule may be rude"),
        (
            "rude = 'never'\nrude_users = [1]",
            "no flow of the rule may be rude",
        ),
        ("rude = 'always'\nrude_rate = 5", "8kbit to 1tbit"),
        (
            "rude = 'always'\nrude_rate = 'unlimitd'",
            "or \"unlimited\"",
        ),
        (
            "rude = 'always'\nrude_total_rate = 'unlimited'",
            "8kbit to 1tbit",
        ),
        ("rude_rate = 'unlimited'", "no flow of the rule may be rude"),
        ("rude = 'always'\nrude_users = []", "at least one entry"),
        ("rude = 'always'\nrude_users = [-1]", "a user's name"),
        (
            "rude = 'always'\nrude_users = [4294967295]",
            "a user's name",
        ),
        ("rude = 'always'\nrude_users = ['a b']", "a user's name"),
        ("rude = 'always'\nrude_users = ['']", "a user's name"),
        ("rude = 'always'\nrude_converged = 0", "0.001 to 1"),
        ("rude = 'always'\nrude_converged = 0.0105", "0.001 to 1"),
        ("rude = 'always'\nrude_converged = 1.1", "0.001 to 1"),
        ("rude = 'always'\nrude_converged = nan", "0.001 to 1"),
        (
            "rude = 'always'\ncongestion_control = 'cubic'",
            "`cubic` has no fair window",
        ),
        (
            "congestion_control = 'fp_rude'",
            "is not a congestion-control law",
        ),
    ] {
        let problem = problem(settings);
        assert!(problem.contains(said), "{settings}: {problem}");
    }
}
