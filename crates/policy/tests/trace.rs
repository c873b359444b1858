// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `[[trace]]` tables: what they mean, and what is told of a bad one.

#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

use fatpath_policy::{Flow, Trace, explain, parse};

const RULE: &str = "[[rule]]\nname = 'a'\ndestination = ['10.0.0.0/8']\nnotsent_lowat = 16384\n";

fn traces(tables: &str) -> Vec<Trace> {
    parse(&format!("{RULE}{tables}\n"), None).unwrap().traces
}

fn told(tables: &str) -> String {
    let problems = parse(&format!("{RULE}{tables}\n"), None).unwrap_err();
    let lines = problems.iter().map(|problem| format!("{problem}\n"));
    lines.collect()
}

#[test]
fn only_a_table_asks_for_a_trace_and_is_bounded_by_default() {
    assert_eq!(traces(""), []);
    let [trace] = &traces("[[trace]]\nname = 'all'")[..] else {
        panic!("one trace")
    };
    assert_eq!((trace.max_flows, trace.interval_us), (100, 0));
    assert_eq!((trace.file_bytes, trace.total_bytes), (64 << 20, 1 << 30));
    assert_eq!(trace.max_files, 10_000);
    let folder = trace.own_folder();
    assert_eq!(folder.to_str(), Some("/var/lib/fatpath/traces/all"));
    assert!(trace.wants_rule(None) && trace.wants_rule(Some("a")));
}

#[test]
fn each_key_is_read() {
    let read = traces(
        "[[trace]]\nname = 'wan-1'\ndestination = ['10.5.0.0/16']\nsource = ['10.1.0.9']\n\
         destination_ports = [443, '5000-5010']\nsource_ports = [2811]\ncgroup = '/x'\n\
         rules = ['a']\ninterval = '1s'\nmax_flows = 7\nfile_size = '2MiB'\nsize = '8MiB'\n\
         files = 3\nfolder = '/data/traces'\n[[trace]]\nname = 'other'",
    );
    let [trace, _other] = &read[..] else {
        panic!("two traces: {read:?}")
    };
    let matches = &trace.matches;
    assert_eq!((matches.destination.len(), matches.source.len()), (1, 1));
    assert_eq!(
        (matches.destination_ports.len(), matches.source_ports.len()),
        (2, 1)
    );
    assert_eq!(matches.cgroup.as_deref(), Some("/x"));
    assert_eq!((trace.interval_us, trace.max_flows), (1_000_000, 7));
    assert_eq!((trace.file_bytes, trace.total_bytes), (2 << 20, 8 << 20));
    assert_eq!(trace.max_files, 3);
    assert_eq!(trace.own_folder().to_str(), Some("/data/traces/wan-1"));
    assert!(trace.wants_rule(Some("a")) && !trace.wants_rule(Some("b")) && !trace.wants_rule(None));
}

#[test]
fn bad_tables_are_told_with_their_line_and_the_remedy() {
    let named = |keys: &str| format!("[[trace]]\nname = 't'\n{keys}");
    let bad = [
        "[trace]".to_owned(),
        "[[trace]]".to_owned(),
        "[[trace]]\nname = '../up'".to_owned(),
        "[[trace]]\nname = '..'".to_owned(),
        named("[[trace]]\nname = 't'"),
        named("destination = ['10.0.0.1/8']"),
        named("destination_ports = [0]"),
        named("rules = ['b']"),
        named("interval = '10us'"),
        named("interval = '10ms'"),
        named("max_flows = 0"),
        named("file_size = '1kB'"),
        named("file_size = '1GiB'"),
        named("size = '1MB'"),
        named("files = 1"),
        named("folder = 'traces'"),
        named("folder = '/data/../etc'"),
        named("max_flow = 3"),
        named("[instruments]\nflows = 'none'"),
        named("rules = ['a']\n[[rule]]\nname = 'b'\n[instruments]\nrules = ['b']"),
        (0..17)
            .map(|number| format!("[[trace]]\nname = 't{number}'\n"))
            .collect(),
    ];
    insta::assert_snapshot!(bad.map(|tables| told(&tables)).concat());
}

#[test]
fn an_explanation_says_which_traces_write_the_flow() {
    let tables = "[[trace]]\nname = 'wan'\nrules = ['a']\ninterval = '1s'\n\
                  [[trace]]\nname = 'web'\ndestination_ports = [443]\nmax_flows = 1\n";
    let policy = parse(&format!("{RULE}{tables}"), None).unwrap();
    let note = |to: &str| {
        let flow = Flow::parse(to).unwrap();
        explain(&policy, &flow).notes.join("\n")
    };
    insta::assert_snapshot!(
        ["10.1.1.1", "10.1.1.1:443", "10.1.1.1:80", "192.0.2.1:80"]
            .map(|to| format!("{to}\n{}\n", note(to)))
            .concat()
    );
}
