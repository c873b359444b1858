// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands that people try and fatpath does not have: what does it instead.
//!
//! clap would suggest the name that is spelled most alike: for `reload`, `unload`, which ends all tuning.

use crate::failure::tell_usage_error;
use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

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

/// Prints what clap has to say, or what to do instead, and exits as clap does.
pub fn exit(error: &Error) -> ! {
    if is_help(error) {
        error.exit();
    }
    let message = instead(error).unwrap_or_else(|| said(error));
    tell_usage_error(&message, asked_for_json());
    std::process::exit(2)
}

/// What was asked for, or is printed where a command is missing.
fn is_help(error: &Error) -> bool {
    let asked = !error.use_stderr();
    asked || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
}

/// Not among the words of another program's command line.
fn asked_for_json() -> bool {
    let words = std::env::args_os().take_while(|word| word != "--");
    words.into_iter().any(|word| word == "--json")
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
    fn none_of_them_is_a_command() {
        for (name, _) in INSTEAD {
            assert!(answer(&[name]).is_some(), "{name}");
        }
        assert_eq!(answer(&["no-such-thing"]), None);
        assert_eq!(answer(&["flows", "--nonsense"]), None);
    }
}
