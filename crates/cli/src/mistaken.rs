// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands that people try and fatpath does not have: what does it instead.
//!
//! clap would suggest the name that is spelled most alike: for `reload`, `unload`, which ends all tuning.

use crate::failure::print_usage_error;
use clap::Error;
use clap::error::{ContextKind, ContextValue};

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
    let instead = instead(error);
    if error.use_stderr() && asked_for_json() {
        let message = instead.clone().unwrap_or_else(|| first_line(error));
        print_usage_error(&message);
    }
    match instead {
        None => error.exit(),
        Some(sentence) => {
            eprintln!("fatpath: {sentence}");
            std::process::exit(2)
        }
    }
}

/// Not among the words of another program's command line.
fn asked_for_json() -> bool {
    let words = std::env::args_os().take_while(|word| word != "--");
    words.into_iter().any(|word| word == "--json")
}

fn first_line(error: &Error) -> String {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    first.trim_start_matches("error: ").to_owned()
}

fn instead(error: &Error) -> Option<String> {
    let Some(ContextValue::String(tried)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let (_, sentence) = INSTEAD.iter().find(|(name, _)| name == tried)?;
    Some(format!("there is no command `{tried}`; {sentence}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Arguments;
    use clap::Parser;

    fn said(words: &[&str]) -> Option<String> {
        let words = std::iter::once(&"fatpath").chain(words);
        Arguments::try_parse_from(words)
            .err()
            .as_ref()
            .and_then(instead)
    }

    #[test]
    fn reload_never_leads_to_unload() {
        let sentence = said(&["reload"]).unwrap();
        assert!(sentence.contains("systemctl reload"), "{sentence}");
        assert!(!sentence.contains("unload"), "{sentence}");
    }

    #[test]
    fn none_of_them_is_a_command() {
        for (name, _) in INSTEAD {
            assert!(said(&[name]).is_some(), "{name}");
        }
        assert_eq!(said(&["no-such-thing"]), None);
        assert_eq!(said(&["flows", "--nonsense"]), None);
    }
}
