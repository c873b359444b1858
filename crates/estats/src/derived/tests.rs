// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::testing::{SECOND, sample};
use fatpath_api::SampleKind;
use proptest::prelude::*;

fn busy() -> Sample {
    Sample {
        bytes_sent: 5_000_000,
        segs_retrans: 7,
        ..sample(1, SampleKind::Interval, 4 * SECOND)
    }
}

fn value(text: &str) -> Option<f64> {
    let derived = Derived::parse([("X", text)]).unwrap();
    derived.values(&busy()).get("X").copied()
}

fn problem(text: &str) -> (usize, String) {
    let bad = Derived::parse([("X", text)]).unwrap_err();
    (bad.position, bad.what)
}

#[test]
fn the_average_bandwidth_of_the_wad() {
    let text = "DataBytesOut * 8 / (now - StartTime)";
    assert_eq!(value(text), Some(10_000_000.0));
    assert_eq!(
        value("(DataBytesOut * 8) / (CurrTime - StartTime)"),
        value(text)
    );
}

#[test]
fn arithmetic_is_the_usual_one() {
    for (text, wanted) in [
        ("2 + 3 * 4", 14.0),
        ("(2 + 3) * 4", 20.0),
        ("8 / 4 / 2", 1.0),
        ("8 / 4 * 2", 4.0),
        ("2 * 8 / 4", 4.0),
        ("10 - 4 - 3", 3.0),
        ("10 - 4 + 3", 9.0),
        ("2 ^ 3", 8.0),
        ("-2 + 5", 3.0),
        ("2 * (-3)", -6.0),
        ("sqrt(16) + abs(-1)", 5.0),
        ("PktsRetrans * 1.5", 10.5),
    ] {
        assert_eq!(value(text), Some(wanted), "{text}");
    }
}

#[test]
fn what_has_no_value_is_left_out() {
    assert_eq!(value("1 / (SegsRetrans - 7)"), None);
    assert_eq!(value("CurSsthresh * 2"), None);
    assert_eq!(value("sqrt(0 - 1)"), None);
}

#[test]
fn each_error_has_its_place() {
    for (text, place, word) in [
        ("CurCwnd * CurMss", 11, "no such variable: CurMss"),
        ("CurCwnd + FastRetran", 11, "Linux has no FastRetran"),
        ("CurCwnd * ", 10, "too early"),
        ("", 1, "too early"),
        ("(CurCwnd", 1, "never closed"),
        ("CurCwnd)", 8, "closes no ("),
        ("CurCwnd CurMSS", 9, "an operator"),
        ("2 * * 3", 5, "a number"),
        ("sqrt CurCwnd", 6, "needs ("),
        ("CurCwnd; 1", 8, "not allowed"),
        ("1.2.3 + 1", 1, "not a number"),
        ("system(1)", 1, "no such variable"),
        ("{CurCwnd", 1, "not allowed"),
        ("1 + é", 5, "not allowed"),
    ] {
        let (position, what) = problem(text);
        assert!(what.contains(word), "{text}: {what}");
        assert_eq!(position, place, "{text}: {what}");
    }
}

#[test]
fn formulas_are_bounded() {
    let long = "1+".repeat(600) + "1";
    assert!(problem(&long).1.contains("1000 characters"));
    let deep = "(".repeat(40) + "1" + &")".repeat(40);
    assert!(problem(&deep).1.contains("nested"));
    let names: Vec<String> = (0..65).map(|n| format!("X{n}")).collect();
    let many = names.iter().map(|name| (name.as_str(), "1"));
    assert!(Derived::parse(many).unwrap_err().what.contains("at most"));
    assert!(Derived::parse([("a b", "1")]).is_err());
}

proptest! {
    #[test]
    fn nothing_panics(text in ".{0,60}") {
        if let Ok(derived) = Derived::parse([("X", text.as_str())]) {
            derived.values(&busy());
        }
    }

    #[test]
    fn nothing_made_of_its_words_panics(
        words in prop::collection::vec(
            prop::sample::select(vec!["CurCwnd", "now", "1", "2.5", "+", "-", "*", "/", "^", "(", ")", "sqrt", "ln", " "]),
            0..30,
        ),
    ) {
        let text = words.concat();
        if let Ok(derived) = Derived::parse([("X", text.as_str())]) {
            derived.values(&busy());
        }
    }
}
