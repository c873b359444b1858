// SPDX-License-Identifier: MIT OR Apache-2.0
//! A rate that the flows of a rule share, in a policy file: what it becomes, and what is said of bad ones.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

use fatpath_policy::{Explanation, Flow, Policy, Setting, SettingValue, explain, parse};
use proptest::prelude::*;

fn policy(settings: &str) -> Result<Policy, Vec<String>> {
    let text = format!("[phases.mpi]\n[[rule]]\nname = 'a'\n{settings}\n");
    parse(&text, None).map_err(|problems| problems.iter().map(|p| p.to_string()).collect())
}

fn problem(settings: &str) -> String {
    let problems = policy(settings).unwrap_err();
    assert_eq!(problems.len(), 1, "{problems:?}");
    problems[0].clone()
}

fn explained(settings: &str) -> Explanation {
    explain(
        &policy(settings).unwrap(),
        &Flow::parse("192.0.2.1").unwrap(),
    )
}

const LAW: &str = "congestion_control = 'fp_aimd'\n";

#[test]
fn an_explanation_has_it_as_the_rule_has() {
    let shared = explained(&format!("{LAW}pacing_rate = ' 0.5gbit/n '"));
    let said = shared.to_string();
    assert!(said.contains("500mbit/n"), "{said}");
    assert!(
        said.contains("each of the n flows that send gets 1/n"),
        "{said}"
    );
    let settings = policy(&format!("{LAW}pacing_rate = '500 Mb/s/n'"))
        .unwrap()
        .rules[0]
        .settings
        .clone();
    assert!(settings.is_shared(Setting::PacingRate));
    assert_eq!(settings.number(Setting::PacingRate), None);
    let json = serde_json::to_value(&settings).unwrap();
    assert_eq!(json["pacing_rate_bps"]["value"], "500mbit/n");
}

#[test]
fn a_phase_has_its_own_or_that_of_the_rule() {
    let shared = "pacing_rate = '500mbit/n'";
    let of = |rule: &str, phase: &str| {
        let policy = policy(&format!("{LAW}{rule}\nphase.collective = {{ {phase} }}\n")).unwrap();
        policy.rules[0].collective.clone().unwrap()
    };
    let is_shared = |rule, phase| of(rule, phase).is_shared(Setting::PacingRate);
    assert!(is_shared("", shared) && is_shared(shared, "max_burst = 8"));
    assert!(!is_shared(shared, "pacing_rate = '60mbit'"));
    assert!(!of(shared, "pacing = false").gives(Setting::PacingRate));
    let text = format!("{LAW}pacing_rate = '450mbit'\nphase.collective = {{ {shared} }}\n");
    let notes = explained(&text).notes.join("\n");
    assert!(notes.contains("gets pacing_rate 500mbit/n"), "{notes}");
}

#[test]
fn what_is_wrong_is_told_with_what_is_allowed() {
    let of = |rate: &str| problem(&format!("{LAW}pacing_rate = '{rate}'"));
    for bad in [
        "1kbit/n",
        "35gbit/n",
        "/n",
        "500/n",
        "mbit/n",
        "500mbit/4",
        "500mbit/n/n",
    ] {
        let said = of(bad);
        assert!(
            said.contains(bad) && said.contains("or \"500mbit/n\""),
            "{said}"
        );
    }
    for (other, place) in [
        (
            format!("{LAW}initial_rate = '500mbit/n'"),
            "5:16: initial_rate",
        ),
        (
            "rude = 'always'\nrude_rate = '500mbit/n'".to_owned(),
            "5:13: rude_rate",
        ),
    ] {
        let said = problem(&other);
        assert!(said.contains(place), "{said}");
        assert!(
            said.contains("of rates only pacing_rate can be shared"),
            "{said}"
        );
    }
}

#[test]
fn only_flows_that_are_counted_share() {
    let shared = "pacing_rate = '500mbit/n'";
    for law in [
        "",
        "congestion_control = 'cubic'\n",
        "congestion_control = 'fp_bbr'\n",
    ] {
        let said = problem(&format!("{law}{shared}"));
        assert!(
            said.contains("no law that counts") && said.contains("fp_aimd"),
            "{said}"
        );
    }
    let rude = problem(&format!("{LAW}{shared}\nrude = 'allowed'"));
    assert!(rude.contains("rude_total_rate"), "{rude}");
    let phase = format!("{LAW}rude = 'allowed'\nphase.collective = {{ {shared} }}\n");
    assert!(problem(&phase).contains("rude_total_rate"));
    let measured = problem(&format!("{LAW}{shared}\nrtt = 'measured'\nrate = '1gbit'"));
    assert!(measured.contains("nothing is measured"), "{measured}");
}

proptest! {
    #[test]
    fn what_is_shown_is_read_again(bps in 8_000u64..=34_000_000_000) {
        let shown = SettingValue::shared_text(bps);
        let read = policy(&format!("{LAW}pacing_rate = '{shown}'")).unwrap();
        let json = serde_json::to_value(&read.rules[0].settings).unwrap();
        prop_assert_eq!(&json["pacing_rate_bps"]["value"], &shown);
        let whole = policy(&format!("pacing_rate = '{}'", shown.trim_end_matches("/n"))).unwrap();
        prop_assert_eq!(whole.rules[0].settings.number(Setting::PacingRate), Some(bps));
    }
}
