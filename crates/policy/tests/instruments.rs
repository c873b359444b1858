// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `[instruments]` section: what it means, and what is told of a bad one.

use fatpath_policy::{Instruments, SampledFlows, explain, parse};

const RULE: &str = "[[rule]]\nname = 'a'\ndestination = ['10.0.0.0/8']\nnotsent_lowat = 16384\n";

fn instruments(section: &str) -> Instruments {
    let text = format!("{RULE}[instruments]\n{section}\n");
    parse(&text, None).expect("it is good").instruments
}

fn told(section: &str) -> String {
    let problems = parse(&format!("{RULE}[instruments]\n{section}\n"), None);
    let problems = problems.expect_err("it is bad");
    problems
        .iter()
        .map(|problem| format!("{problem}\n"))
        .collect()
}

#[test]
fn without_a_section_all_flows_are_sampled_ten_times_a_second() {
    let policy = parse(RULE, None).expect("it is good");
    assert_eq!(policy.instruments, Instruments::default());
    assert_eq!(policy.instruments.interval_us, 100_000);
    assert!(policy.instruments.wants(None) && policy.instruments.wants(policy.rules.first()));
}

#[test]
fn every_key_is_read() {
    let read = instruments(
        "rules = ['a']\ninterval = '1ms'\none_in = 10\nmax_flows = 5\nmax_flows_per_prefix = 2\n\
         [instruments.derived]\nZero = '0'\nAveBW = 'DataBytesOut * 8 / (now - StartTime)'",
    );
    assert_eq!(read.flows, SampledFlows::Rules);
    assert_eq!((read.interval_us, read.one_in), (1000, 10));
    assert_eq!((read.max_flows, read.max_flows_per_prefix), (5, 2));
    let derived: Vec<_> = read
        .derived
        .iter()
        .map(|d| (d.name.as_str(), d.line))
        .collect();
    assert_eq!(derived, [("Zero", 12), ("AveBW", 13)]);
    assert_eq!(
        read.derived[1].formula,
        "DataBytesOut * 8 / (now - StartTime)"
    );
    assert!(!read.wants(None));
}

#[test]
fn bad_values_are_told_with_what_is_allowed() {
    insta::assert_snapshot!(
        [
            "flows = 'some'",
            "flows = 'all'\nrules = ['a']",
            "rules = ['b']",
            "rules = []",
            "interval = '10us'",
            "interval = 100",
            "one_in = 0",
            "max_flows = 2000000",
            "intervall = '1s'",
            "derived = 3",
            "derived = { '9x' = '1', ok = 5, long = '' }",
        ]
        .map(told)
        .concat()
    );
}

#[test]
fn an_explanation_says_whether_the_flow_is_sampled() {
    let note = |section: &str, to: &str| {
        let text = format!("{RULE}[instruments]\n{section}\n");
        let policy = parse(&text, None).expect("it is good");
        let flow = fatpath_policy::Flow::to(to.parse().expect("an address"));
        explain(&policy, &flow).notes.concat()
    };
    let sampled = "the instruments sample it, every 1 s at most";
    assert_eq!(note("interval = '1s'", "192.0.2.1"), sampled);
    let not = "the instruments do not sample it (flows = \"rules\")";
    assert_eq!(note("flows = 'rules'", "192.0.2.1"), not);
    assert_eq!(
        note("flows = 'rules'\none_in = 3", "10.1.1.1"),
        "the instruments sample 1 in 3 such flows, every 100 ms at most"
    );
}
