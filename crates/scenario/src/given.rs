// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values of a command line, written without quotes, as the TOML that a file has in their place.
//!
//! Pure. Start with [`as_toml`].

use fatpath_toml::{Document, Problem};

/// Tables and lists as they are, and what `is_bare`; others quoted. `title` is what all of them are, for messages.
pub(super) fn as_toml(
    title: &'static str,
    key: &str,
    value: &str,
    is_bare: bool,
) -> Result<String, String> {
    if value.chars().any(char::is_control) {
        return Err(format!("{key}: the value has a control character"));
    }
    if !is_bare && !value.starts_with(['[', '{']) {
        let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
        return Ok(format!("\"{quoted}\""));
    }
    let alone = format!("value = {value}");
    let parsed = Document::parse(title, &alone).map_err(first);
    parsed.map_err(|why| format!("{key}: {value} is not TOML: {why}"))?;
    Ok(value.to_owned())
}

/// A whole number.
pub(super) fn is_digits(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_digit())
}

/// What is wrong first.
pub(super) fn first(problems: Vec<Problem>) -> String {
    let problem = problems.into_iter().next();
    problem.map_or(String::new(), |one| one.sentence())
}
