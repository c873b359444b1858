// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands and options that people try and fatpath does not have: what does it instead.
//!
//! clap would suggest the name that is spelled most alike: for `reload`, `unload`, which ends all tuning.

use crate::failure::tell_usage_error;
use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::io::{Write, stderr, stdout};

/// Each with a sentence.
const INSTEAD: [(&str, &str); 8] = [
    (
        "reload",
        "to read the policy again: systemctl reload fatpath, or fatpath policy apply",
    ),
    ("restart", "systemctl restart fatpath; live flows go on"),
    ("start", "systemctl start fatpath, or fatpath daemon"),
    (
        "stop",
        "systemctl stop fatpath; tuning goes on until fatpath unload",
    ),
    (
        "check",
        "fatpath policy check, or fatpath doctor for the host",
    ),
    ("explain", "fatpath policy explain DESTINATION"),
    ("apply", "fatpath policy apply"),
    (
        "logs",
        "journalctl -u fatpath; flows that ended: fatpath archive query",
    ),
];

const RECV: [&str; 2] = ["recv", "receive"];

/// Prints what clap has to say, or what to do instead, and exits as clap does.
pub fn exit(error: &Error) -> ! {
    if is_help(error) {
        error.exit();
    }
    let words: Vec<String> = own_words().collect();
    let message = instead(error)
        .or_else(|| instead_of_option(error, &words))
        .unwrap_or_else(|| said(error));
    let mut output: Box<dyn Write> = match is_output_a_file(&words) {
        true => Box::new(stderr()),
        false => Box::new(stdout()),
    };
    let asked_for_json = words.iter().any(|word| word == "--json");
    tell_usage_error(&message, asked_for_json.then_some(&mut *output));
    std::process::exit(2)
}

/// What was asked for, or is printed where a command is missing.
fn is_help(error: &Error) -> bool {
    let asked = !error.use_stderr();
    asked || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
}

/// Without those of another program's command line.
fn own_words() -> impl Iterator<Item = String> {
    let words = std::env::args_os().skip(1).take_while(|word| word != "--");
    words.map(|word| word.to_string_lossy().into_owned())
}

/// `fatpath recv HOST:FILE -` writes the file to standard output, and nothing else.
fn is_output_a_file(words: &[String]) -> bool {
    receives(words) && words.iter().any(|word| word == "-")
}

fn receives(words: &[String]) -> bool {
    let command = words.first();
    command.is_some_and(|word| RECV.contains(&word.as_str()))
}

/// As clap says it.
fn said(error: &Error) -> String {
    let text = error.to_string();
    text.trim_start_matches("error: ").to_owned()
}

fn instead(error: &Error) -> Option<String> {
    let Some(ContextValue::String(tried)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let (_, sentence) = INSTEAD.iter().find(|(name, _)| name == tried)?;
    Some(format!("no such command '{tried}'; {sentence}"))
}

fn instead_of_option(error: &Error, words: &[String]) -> Option<String> {
    let Some(ContextValue::String(tried)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    if !receives(words) || tried != "--rate" {
        return None;
    }
    Some(format!(
        "{} has no --rate: the other host sends, and its daemon is to permit it: give `fatpath send --rate` there",
        words[0]
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Arguments;
    use clap::Parser;

    fn answer(words: &[&str]) -> Option<String> {
        let words = std::iter::once(&"fatpath").chain(words);
        Arguments::try_parse_from(words)
            .err()
            .as_ref()
            .and_then(instead)
    }

    #[test]
    fn reload_never_leads_to_unload() {
        let sentence = answer(&["reload"]).unwrap();
        assert!(sentence.contains("systemctl reload"), "{sentence}");
        assert!(!sentence.contains("unload"), "{sentence}");
    }

    #[test]
    fn recv_has_no_rate_and_says_who_has() {
        let answer = |words: &[&str]| {
            let all = std::iter::once(&"fatpath").chain(words);
            let error = Arguments::try_parse_from(all).err().unwrap();
            let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
            instead_of_option(&error, &words)
        };
        for (command, rate) in [
            ("recv", &["--rate", "1mbit"][..]),
            ("receive", &["--rate=1mbit"]),
        ] {
            let sentence = answer(&[&[command, "host:file", "."], rate].concat()).unwrap();
            assert!(
                sentence.contains("give `fatpath send --rate` there"),
                "{sentence}"
            );
        }
        assert_eq!(answer(&["recv", "host:file", ".", "--nonsense"]), None);
        assert_eq!(answer(&["model", "--rate", "1mbit"]), None);
    }

    #[test]
    fn none_of_them_is_a_command() {
        for (name, _) in INSTEAD {
            assert!(answer(&[name]).is_some(), "{name}");
        }
        assert_eq!(answer(&["no-such-thing"]), None);
        assert_eq!(answer(&["flows", "--nonsense"]), None);
    }
}
