// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program's command: placeholders are filled in, then it is split into words as a shell does.
//!
//! Pure, and no shell: `$`, `|` and `>` mean nothing. Start with [`words`].

use thiserror::Error;

/// Why a command cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CommandError {
    /// A placeholder that nothing gives a value.
    #[error("{{{0}}} is neither a host nor named in [set]")]
    Unknown(String),
    /// `{` without `}`.
    #[error("a {{ is not closed; write {{{{ for a literal brace")]
    Unclosed,
    /// A quote without its partner.
    #[error("a quote is not closed")]
    Quote,
    /// Nothing to run.
    #[error("names no program")]
    Empty,
}

/// The words of `template` after every `{NAME}` has become `value(NAME)`. A value may hold several
/// words, or none. `{{` is a brace.
pub fn words(
    template: &str,
    value: impl Fn(&str) -> Option<String>,
) -> Result<Vec<String>, CommandError> {
    let line = expand(template, value)?;
    let words = shlex::split(&line).ok_or(CommandError::Quote)?;
    if words.is_empty() {
        Err(CommandError::Empty)
    } else {
        Ok(words)
    }
}

/// The names in braces, in order.
///
/// # Errors
/// [`CommandError::Unclosed`].
pub fn names(template: &str) -> Result<Vec<&str>, CommandError> {
    let names = pieces(template)?
        .into_iter()
        .filter_map(|piece| match piece {
            Piece::Name(name) => Some(name),
            Piece::Text(_) | Piece::Brace => None,
        });
    Ok(names.collect())
}

/// A template with every `{NAME}` replaced by `value(NAME)`, and `{{` by a brace.
///
/// # Errors
/// [`CommandError::Unclosed`], and [`CommandError::Unknown`] where there is no value.
pub fn expand(
    template: &str,
    value: impl Fn(&str) -> Option<String>,
) -> Result<String, CommandError> {
    let texts = pieces(template)?.into_iter().map(|piece| match piece {
        Piece::Text(text) => Ok(text.to_owned()),
        Piece::Brace => Ok("{".to_owned()),
        Piece::Name(name) => value(name).ok_or_else(|| CommandError::Unknown(name.to_owned())),
    });
    texts.collect()
}

pub(super) enum Piece<'t> {
    Text(&'t str),
    /// Written `{{`.
    Brace,
    Name(&'t str),
}

pub(super) fn pieces(template: &str) -> Result<Vec<Piece<'_>>, CommandError> {
    let mut pieces = vec![];
    let mut rest = template;
    while let Some(brace) = rest.find('{') {
        pieces.push(Piece::Text(&rest[..brace]));
        rest = &rest[brace + 1..];
        if let Some(after) = rest.strip_prefix('{') {
            pieces.push(Piece::Brace);
            rest = after;
            continue;
        }
        let (name, after) = rest.split_once('}').ok_or(CommandError::Unclosed)?;
        pieces.push(Piece::Name(name));
        rest = after;
    }
    pieces.push(Piece::Text(rest));
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(name: &str) -> Option<String> {
        match name {
            "server" => Some("10.77.0.2".into()),
            "window" => Some("-w 64K".into()),
            "nothing" => Some(String::new()),
            _ => None,
        }
    }

    #[test]
    fn placeholders_may_hold_several_words_or_none() {
        assert_eq!(
            words("iperf3 -c {server} {window} {nothing}", value).unwrap(),
            ["iperf3", "-c", "10.77.0.2", "-w", "64K"]
        );
    }

    #[test]
    fn words_are_split_as_a_shell_does() {
        assert_eq!(
            words("sh -c 'a  $b' {{x}", value).unwrap(),
            ["sh", "-c", "a  $b", "{x}"]
        );
    }

    #[test]
    fn errors_name_what_is_wrong() {
        assert_eq!(
            words("x {who}", value),
            Err(CommandError::Unknown("who".into()))
        );
        assert_eq!(words("x {server", value), Err(CommandError::Unclosed));
        assert_eq!(words("x 'y", value), Err(CommandError::Quote));
        assert_eq!(words("{nothing}", value), Err(CommandError::Empty));
    }
}
