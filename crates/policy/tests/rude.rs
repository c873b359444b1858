// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rude TCP in a policy file: what the keys become, and what is said of bad ones.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

use fatpath_policy::{Flow, NotRude, Policy, Rude, RudeShare, Setting, User, explain, parse};

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

/// What a rule gives datagrams to its destination, to users of whom 1000 is listed.
fn share(settings: &str) -> Result<RudeShare, NotRude> {
    let flow = Flow::parse("192.0.2.1:50000").unwrap();
    let policy = policy(settings).unwrap();
    policy.rude_share(&flow, |user| *user == User::Id(1000))
}

#[test]
fn datagrams_get_the_rate_of_a_rule_that_allows_them() {
    let lent = RudeShare {
        rule: "a".to_owned(),
        rate_bps: 900_000_000,
    };
    for rude in ["allowed", "always"] {
        let settings = format!("rude = '{rude}'\nrude_rate = '900mbit'");
        assert_eq!(share(&settings), Ok(lent.clone()));
        assert_eq!(
            share(&format!("{settings}\nrude_users = ['alice', 1000]")),
            Ok(lent.clone())
        );
        assert_eq!(
            share(&format!("{settings}\nrude_users = ['alice', 1001]")),
            Err(NotRude::NotListed("a".to_owned()))
        );
    }
}

#[test]
fn datagrams_without_a_rate_of_their_own_are_refused() {
    let a = || "a".to_owned();
    let refused = |settings: &str| share(settings).unwrap_err();
    assert_eq!(refused(""), NotRude::Never(a()));
    assert_eq!(refused("rude = 'never'"), NotRude::Never(a()));
    assert_eq!(refused("rude = 'allowed'"), NotRude::NoRate(a()));
    let unlimited = "rude = 'allowed'\nrude_rate = 'unlimited'\ncwnd_clamp = 100";
    assert_eq!(refused(unlimited), NotRude::NoRate(a()));
    let shared = "rude = 'allowed'\nrude_rate = '1mbit'\nrude_total_rate = '2mbit'";
    assert_eq!(refused(shared), NotRude::Shared(a()));
}

/// As for a TCP flow; where that is not known for sure, there is no permission.
#[test]
fn the_first_rule_that_may_match_decides_about_datagrams() {
    let share = |first: &str, flow: &str| {
        let text = format!(
            "[[rule]]\nname = 'first'\ndestination = ['192.0.2.0/24']\n{first}\n\
             [[rule]]\nname = 'second'\ndestination = ['192.0.2.1']\nrude = 'always'\nrude_rate = '1mbit'\n"
        );
        let share = parse(&text, None)
            .unwrap()
            .rude_share(&Flow::parse(flow).unwrap(), |_| true);
        share.map(|share| share.rule)
    };
    let here = "192.0.2.1:50000";
    assert_eq!(
        share("destination_ports = [443]", here),
        Ok("second".to_owned())
    );
    assert_eq!(share("", here), Err(NotRude::Never("first".to_owned())));
    for open in [
        "source = ['10.0.0.0/8']",
        "source_ports = [1]",
        "cgroup = '/x'",
    ] {
        let unknown = Err(NotRude::Unknown("first".to_owned()));
        assert_eq!(share(open, here), unknown, "{open}");
    }
    let other = share("", "198.51.100.1:50000");
    assert!(matches!(other, Err(NotRude::NoRule(_))), "{other:?}");
}
