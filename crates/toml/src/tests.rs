// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is read of a file, and what is said of one that is wrong.

use crate::{Document, Placeholders, Problem, Refusal, Section};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn document(text: &str) -> Document<'_> {
    Document::parse("a test file", text).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn place(problem: &Problem) -> (u32, u32) {
    (problem.line, problem.column)
}

/// `{n}` is 7, written at byte 2.
#[derive(Clone, Copy)]
struct Seven;

impl Placeholders for Seven {
    fn fill(self, text: &str) -> Result<String, String> {
        Ok(text.replace("{n}", "7"))
    }

    fn origin(self, text: &str) -> Option<usize> {
        (text == "{n}").then_some(2)
    }
}

fn parse_a(text: &str) -> Result<u8, &'static str> {
    (text == "a").then_some(1).ok_or("\"a\"")
}

#[test]
fn values_are_read_as_their_types() {
    let document =
        document("s = 'a'\nn = 0x10\nf = 1.5\nt = true\nl = [1, 2]\n[[x]]\ny = 1\n[[x]]");
    let mut root = document.root(());
    assert_eq!(root.needed("s", parse_a), 1);
    assert_eq!(root.whole("n", 0..=16), Some(16));
    assert_eq!(root.take("f").map(|f| f.number(1.0, 2.0)), Some(Ok(1.5)));
    assert_eq!(root.flag("t"), Some(true));
    assert_eq!(root.flag("absent"), None);
    let list = root.read_list("l", |item| item.integer(1..=2));
    let list: Vec<u64> = list.into_iter().map(|(number, _)| number).collect();
    assert_eq!(list, [1, 2]);
    let mut tables = root.take_list("x").unwrap();
    assert_eq!((tables[1].line(), tables[1].name()), (8, "x[2]"));
    assert_eq!(
        tables[0].finish().unwrap_err().to_string(),
        "unknown key `y` in x[1]; allowed: none"
    );
    assert_eq!(tables[0].whole("y", 0..=1), Some(1));
    assert_eq!(tables[0].finish(), Ok(()));
    assert_eq!(root.finish(), Ok(()));
    assert_eq!(document.finish(), Ok(()));
}

#[test]
fn a_value_of_another_kind_or_range_is_refused_with_what_is_allowed() {
    let long = "x".repeat(100);
    let text = format!("s = 5\nn = 'ü'\nf = []\nt = '{long}'\nl = 1\nx = {{}}\nd = 1979-05-27");
    let document = document(&text);
    let mut root = document.root(());
    root.read("s", |value| value.parsed(parse_a));
    root.read("n", |value| value.integer(1..=2));
    root.read("f", |value| value.number(1.0, 2.0));
    root.read("t", |value| value.boolean());
    root.read_list("l", |item| item.integer(1..=2));
    root.read("x", |value| value.text());
    root.read("d", |value| value.section());
    assert_eq!(root.needed("z", parse_a), 0);
    let told = document.finish().unwrap_err();
    let told: Vec<String> = told
        .iter()
        .map(|problem| problem.in_file("f").to_string())
        .collect();
    assert_eq!(
        told,
        [
            "f:1:1: z: is missing; it is \"a\"".to_owned(),
            "f:1:5: s: found 5; allowed: \"a\", as text in quotes".to_owned(),
            "f:2:5: n: found the text \"ü\"; allowed: a whole number from 1 to 2".to_owned(),
            "f:3:5: f: found an empty list; allowed: text in quotes, or a number".to_owned(),
            format!(
                "f:4:5: t: found the text \"{}…\"; allowed: true or false",
                &long[..64]
            ),
            "f:5:5: l: found 1; allowed: a list in square brackets with at least one entry; leave \
             the key out for any"
                .to_owned(),
            "f:6:5: x: found a table; allowed: text in quotes".to_owned(),
            "f:7:5: d: found a date or time; allowed: a table".to_owned(),
        ]
    );
}

#[test]
fn placeholders_stand_for_numbers_too_and_are_refused_where_their_value_is() {
    let document = document("\n# {n}\na = '{n}'\nb = '1{n}'\nc = 'x{n}'");
    let mut root = document.root(Seven);
    assert_eq!(root.whole("a", 0..=9), Some(7));
    assert_eq!(root.whole("b", 0..=99), Some(17));
    let mut refused = |key, most| {
        let value = root.take(key).unwrap();
        let refusal = value.integer(0..=most).unwrap_err();
        document.problem(refusal).to_string()
    };
    let allowed = "allowed: a whole number from 0 to 5";
    assert_eq!(
        refused("a", 5),
        format!("2:2: a: found the text \"7\"; {allowed}")
    );
    assert_eq!(
        refused("c", 5),
        format!("5:5: c: found the text \"x7\"; {allowed}")
    );
}

#[test]
fn a_rate_in_bps_is_answered_with_the_one_that_was_meant() {
    let document = document("rate = '500mbps'");
    let value = document.root(()).take("rate").unwrap();
    let told = value.parsed(parse_a).unwrap_err().to_string();
    assert_eq!(
        told,
        "rate: \"500mbps\" is ambiguous (tc reads bytes); write \"500mbit\""
    );
    assert_eq!(value.found("a rate").to_string(), told);
}

#[test]
fn a_title_names_the_section_and_leaves_its_keys_their_own_names() {
    let document = document("[a.b]\nkey = 1\nother = 2");
    let mut root = document.root(());
    let mut tables = root.take_named("a").unwrap();
    let (name, section) = tables.remove(0);
    let mut bare = section.clone().titled("the b");
    let refused = |section: &mut Section| {
        let value = section.take("key").unwrap();
        value.integer(2..=3).unwrap_err().to_string()
    };
    assert_eq!(name, "b");
    assert!(refused(&mut section.with(())).starts_with("a.b.key: found 1"));
    assert!(refused(&mut bare).starts_with("key: found 1"));
    assert_eq!(
        bare.finish().unwrap_err().to_string(),
        "unknown key `other` in the b; allowed: key"
    );
}

#[test]
fn what_is_no_toml_is_told_with_its_place() {
    let told = |text: &'static str| {
        let problems = Document::parse("a test file", text).err().unwrap();
        let told: Vec<String> = problems.iter().map(Problem::to_string).collect();
        told.join(" | ")
    };
    assert_eq!(
        told("a = 1\na = 2"),
        "2:1: the key occurs twice; each key once in its table"
    );
    assert_eq!(
        told("a = x1\nb = 5ms"),
        "1:5: string values must be quoted; expected literal string | 2:5: string values must be quoted; \
         expected literal string"
    );
}

/// All of a table's problems, when `known` are its keys.
fn noted(text: &str, known: &[&'static str]) -> Vec<Problem> {
    let document = document(text);
    let mut root = document.root(());
    for key in known {
        root.read(key, |value| value.integer(0..=9));
    }
    root.note_unknown();
    document.finish().err().unwrap_or_default()
}

/// The first, as a reader finds it who stops there: unknown keys come last.
fn first(text: &str, known: &[&'static str]) -> Option<Problem> {
    let document = document(text);
    let mut root = document.root(());
    let read = |root: &mut Section| -> Result<(), Refusal> {
        for key in known {
            root.take(key)
                .map(|value| value.integer(0..=9))
                .transpose()?;
        }
        root.finish()
    };
    read(&mut root)
        .err()
        .map(|refusal| document.problem(refusal))
}

const KNOWN: [&str; 4] = ["rate", "delay", "queue", "overhead"];

proptest! {
    #[test]
    fn no_text_makes_it_panic_and_problems_lie_within_it(text in "([\\[\\]\"={},.#:0-9a-z\n ]|\\PC){0,200}") {
        let lines = text.split('\n').count() as u32;
        if let Err(problems) = Document::parse("a test file", &text) {
            prop_assert!(!problems.is_empty());
            prop_assert!(problems.is_sorted_by_key(place));
            prop_assert!(problems.iter().all(|problem| (1..=lines).contains(&problem.line)));
        }
    }

    #[test]
    fn whoever_stops_is_told_one_of_what_is_noted(
        entries in proptest::collection::btree_map("rate|delay|queue|[a-z]{1,6}", 0..20u64, 0..8)
    ) {
        let text: String = entries.iter().map(|(key, n)| format!("{key} = {n}\n")).collect();
        let all = noted(&text, &KNOWN);
        let wrong: Vec<_> = entries
            .iter()
            .zip(1..)
            .filter(|((key, n), _)| !KNOWN.contains(&key.as_str()) || **n > 9)
            .map(|(_, line)| line)
            .collect();
        prop_assert_eq!(all.iter().map(|problem| problem.line).collect::<Vec<_>>(), wrong);
        match first(&text, &KNOWN) {
            None => prop_assert!(all.is_empty()),
            Some(problem) => prop_assert!(all.contains(&problem)),
        }
    }

    #[test]
    fn a_problem_is_told_where_its_value_stands(
        before in "(#[a-zäµ€ ]{0,9}\n){0,5}", name in "[äµ€a-z]{0,9}", spaces in 0usize..9
    ) {
        let text = format!("{before}\"{name}\" = {{ rate ={}10 }}\n", " ".repeat(spaces));
        let document = document(&text);
        let (_, value) = document.root(()).entries().remove(0);
        let refusal = value.section().unwrap().take("rate").unwrap().integer(0..=9).unwrap_err();
        let line = before.matches('\n').count() + 1;
        let column = name.chars().count() + "\"\" = { rate =".len() + spaces + 1;
        prop_assert_eq!(place(&document.problem(refusal)), (line as u32, column as u32));
    }

    #[test]
    fn whole_numbers_of_any_notation_are_read(number in 0..=i64::MAX as u64, notation in 0usize..4) {
        let written = [
            format!("{number}"), format!("{number:#x}"), format!("{number:#o}"), format!("{number:#b}"),
        ];
        let text = format!("n = {}", written[notation]);
        prop_assert_eq!(document(&text).root(()).whole("n", 0..=u64::MAX), Some(number));
    }

    #[test]
    fn one_slip_in_a_key_is_recognised(which in 0usize..4, at in 0usize..8, letter in "[a-z]") {
        let key = KNOWN[which];
        let mut slip = key.to_owned();
        slip.replace_range(at % key.len()..=at % key.len(), &letter);
        let known: BTreeSet<&str> = KNOWN.into();
        prop_assume!(!known.contains(slip.as_str()));
        let told = noted(&format!("{slip} = 1"), &KNOWN);
        prop_assert_eq!(&told[0].allowed, &format!("did you mean `{key}`?"));
    }
}
