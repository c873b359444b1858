// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tests that docs/promises.md names, as `PROGRAM::TEST`, exist: a function TEST in a file PROGRAM.rs or PROGRAM.sh.

use anyhow::{Context, Result};
use std::path::Path;

const PROMISES: &str = "docs/promises.md";

/// One line for each test that is named and not there. `files` are all files of the repository.
pub fn breaches(root: &Path, files: &[String]) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(root.join(PROMISES)).context(PROMISES)?;
    let read = |file: &String| std::fs::read_to_string(root.join(file)).unwrap_or_default();
    let missing = missing(&text, |program| {
        let is_it = |file: &&String| is_program(file, program);
        files.iter().filter(is_it).map(read).collect()
    });
    let breach = |(line, test)| format!("  {PROMISES}:{line}: no test {test}");
    Ok(missing.into_iter().map(breach).collect())
}

fn is_program(file: &str, program: &str) -> bool {
    let path = Path::new(file);
    let is_source = path.extension().is_some_and(|e| e == "rs" || e == "sh");
    is_source && path.file_stem().is_some_and(|stem| stem == program)
}

/// The tests named in `text`, with their lines, that no source of their program has.
fn missing(text: &str, sources: impl Fn(&str) -> Vec<String>) -> Vec<(usize, &str)> {
    let named = text.lines().zip(1..).flat_map(|(line, number)| {
        let quoted = line.split('`').skip(1).step_by(2);
        quoted.map(move |word| (number, word))
    });
    let is_missing = |(_, word): &(usize, &str)| {
        word.split_once("::").is_some_and(|(program, test)| {
            !is_placeholder(test) && !sources(program).iter().any(|source| has(source, test))
        })
    };
    named.filter(is_missing).collect()
}

fn is_placeholder(test: &str) -> bool {
    test.chars().all(|c| c.is_ascii_uppercase())
}

fn has(source: &str, test: &str) -> bool {
    let (of_rust, of_shell) = (format!("fn {test}("), format!("{test}() {{"));
    let begins = |line: &str| line.contains(&of_rust) || line.starts_with(&of_shell);
    source.lines().any(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_is_not_there_is_missing() {
        let text =
            "`PROGRAM::TEST` and `a::one`\n`a::two`, `b::three` and `gone::one`; `a` two::one";
        let sources = |program: &str| match program {
            "a" => vec!["#[test]\n    fn one() {}\n// two\n".to_owned()],
            "b" => vec!["three() {\n    true\n}\n".to_owned()],
            _ => Vec::new(),
        };
        assert_eq!(missing(text, sources), [(2, "a::two"), (2, "gone::one")]);
    }
}
