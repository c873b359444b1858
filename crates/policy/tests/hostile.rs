// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whatever the input, the readers answer: no panic, no stack overflow, no long wait.
//!
//! The same as the fuzz target in `fuzz/`, in small, so that every test run has it.
#![allow(clippy::disallowed_methods)] // reads how much of a processor a parser takes

use fatpath_policy::{Classifier, Flow, Prefix, explain, import_wad, parse, parse_bytes};
use proptest::prelude::*;
use std::time::Duration;

const GOOD: &str = include_str!("files/good.toml");
const BAD: &str = include_str!("files/bad.toml");
const AUTO: &str = "[auto]\nmode = \"tune\"\nexclude = [\"192.0.2.0/24\"]\nprivate = [\"10.0.0.0/8\", \
                    \"2001:db8::/48\"]\noverride_application = true\n";
const WAD: &str = include_str!("files/odd.wad");

/// All that the crate does with a text. Problems lie within the text, and are told in order.
fn drive(bytes: &[u8]) {
    match parse_bytes(bytes, None) {
        Ok(policy) => {
            Classifier::build(&policy);
            explain(
                &policy,
                &Flow::parse("10.5.1.7:443").expect("a destination"),
            )
            .to_string();
        }
        Err(problems) => {
            let lines = bytes.split(|byte| *byte == b'\n').count() as u32;
            assert!(!problems.is_empty());
            assert!(
                problems
                    .iter()
                    .all(|problem| (1..=lines).contains(&problem.line))
            );
            assert!(problems.is_sorted_by_key(|problem| (problem.line, problem.column)));
        }
    }
    let text = String::from_utf8_lossy(bytes);
    if let Ok(imported) = import_wad(&text) {
        parse(&imported.toml, None)
            .unwrap_or_else(|problems| panic!("{problems:?}\n{}", imported.toml));
    }
}

/// A text with a few pieces cut, doubled, or replaced.
fn mutated(text: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "[",
        "]]",
        "\"",
        "=",
        "-1",
        "99999999999",
        "\n",
        ",",
        "bdp",
        "::",
        "/0",
        "ü",
        "{",
        "#",
        ":",
        "0",
    ]);
    let edit = (0..text.len(), 0..12_usize, piece);
    prop::collection::vec(edit, 1..6).prop_map(|edits| {
        let mut bytes = text.as_bytes().to_vec();
        for (at, len, piece) in edits {
            let start = at.min(bytes.len());
            let end = (start + len).min(bytes.len());
            bytes.splice(start..end, piece.bytes());
        }
        bytes
    })
}

proptest! {
    #[test]
    fn any_bytes_get_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        drive(&bytes);
    }

    #[test]
    fn any_text_gets_an_answer(text in "([\\[\\]\"={},.#:0-9a-z\n ]|\\PC){0,300}") {
        drive(text.as_bytes());
    }

    #[test]
    fn a_mutated_file_gets_an_answer(
        bytes in prop_oneof![mutated(GOOD), mutated(AUTO), mutated(BAD), mutated(WAD)],
    ) {
        drive(&bytes);
    }

    #[test]
    fn what_import_writes_parse_reads(
        entries in prop::collection::vec(
            ("\\PC{0,70}", prop::collection::vec(wad_line(), 0..14)), 1..12),
    ) {
        let text: String = entries
            .iter()
            .map(|(name, lines)| format!("[{name}]\n{}\n", lines.join("\n")))
            .collect();
        if let Ok(imported) = import_wad(&text) {
            parse(&imported.toml, None).map_err(|problems| TestCaseError::fail(format!("{problems:?}")))?;
        }
    }

    #[test]
    fn a_prefix_reads_back_as_it_is_written(bits in any::<[u8; 16]>(), v4 in any::<bool>(), length in 0..=128_u8) {
        let address: std::net::IpAddr = if v4 { [bits[0], bits[1], bits[2], bits[3]].into() } else { bits.into() };
        let prefix = Prefix::holding(address, if v4 { length % 33 } else { length });
        let prefix = prefix.expect("the length is bounded");
        prop_assert_eq!(prefix.to_string().parse(), Ok(prefix));
        prop_assert!(prefix.contains(address));
    }
}

fn wad_line() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "0.0.0.0",
            "10.5.128.74",
            "192.0.2.0/24",
            "2001:db8::1"
        ])
        .prop_map(|address| format!("dst_addr: {address}")),
        prop::sample::select(vec!["0.0.0.0", "10.1.0.1"])
            .prop_map(|address| format!("src_addr: {address}")),
        (0..3_u32).prop_map(|mode| format!("mode: {mode}")),
        (4096..9_000_000_u32).prop_map(|bytes| format!("sndbuf: {bytes}")),
        (0..2_u32).prop_map(|bytes| format!("rcvbuf: {}", bytes * 4096)),
        (0..9_u32).prop_map(|segments| format!("wadai: {segments}")),
        (0..10_u32).prop_map(|tenth| format!("wadmd: .{tenth}")),
        (0..400_u32).prop_map(|segments| format!("reorder: {segments}")),
        (0..2_u32).prop_map(|flag| format!("delack: {flag}")),
        (0..2_u32).prop_map(|flag| format!("divide: {flag}")),
        (0..100_u32).prop_map(|port| format!("dst_port: {port}")),
        "[a-z]{1,9}: \\PC{0,40}",
    ]
}

/// A megabyte each of what has broken parsers: nesting, long lines, errors without end.
/// What this thread has used; the time that passes is also that of whatever else runs.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanoseconds = text.split_whitespace().next().expect("numbers");
    Duration::from_nanos(nanoseconds.parse().expect("a number"))
}

#[test]
fn large_and_deep_inputs_are_answered_in_time() {
    let mega = 1 << 20;
    let inputs = [
        "[".repeat(mega),
        format!("a = {}", "[".repeat(mega)),
        format!("a = {}", "{b = ".repeat(mega / 5)),
        format!("a{} = 1", ".a".repeat(mega / 2)),
        format!("[a{}]", ".a".repeat(mega / 2)),
        "=\n".repeat(mega / 2),
        "a = 1\n".repeat(mega / 6),
        "[[rule]]\n".repeat(mega / 9),
        "key: value\n".repeat(mega / 11),
        format!("[x]\n{}", "a:\n".repeat(mega / 4)),
        "\"".repeat(mega),
    ];
    for input in inputs {
        let before = processor_time();
        drive(input.as_bytes());
        let took = processor_time() - before;
        let name: String = input.chars().take(20).collect();
        assert!(took < Duration::from_secs(20), "{name:?} took {took:?}");
    }
}
