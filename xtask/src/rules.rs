// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules that no compiler checks.

use crate::links::Documents;
use crate::{citations, modules, promises, purity};
use anyhow::{Context, Result, ensure};
use std::path::Path;

/// Source files that carry a licence line.
const LICENSED: [&str; 8] = ["rs", "c", "h", "sh", "py", "ts", "tsx", "css"];

/// Other files in which people write to people.
const CITING: [&str; 2] = ["md", "toml"];

/// What mdBook makes the book of.
const CONTENTS: &str = "docs/SUMMARY.md";

/// Checks every rule; all breaches are named at once.
pub fn check(root: &Path) -> Result<()> {
    let mut breaches = Vec::new();
    let files = files(root)?;
    for file in &files {
        let name = Path::new(file);
        let is_licensed = has_extension(name, &LICENSED);
        if !is_licensed && !has_extension(name, &CITING) {
            continue;
        }
        let text = std::fs::read_to_string(root.join(name)).with_context(|| file.clone())?;
        breaches.extend(citations::breaches(name, &text, &files));
        if is_licensed {
            breaches.extend(unlicensed(name, &text));
            breaches.extend(purity::exception(name, &text));
            breaches.extend(tests_in_documentation(name, &text));
        }
    }
    breaches.extend(links(root, &files)?);
    breaches.extend(promises::breaches(root, &files)?);
    breaches.extend(purity::breaches(root)?);
    breaches.extend(modules::breaches(root)?);
    ensure!(
        breaches.is_empty(),
        "rules of the repository:\n{}",
        breaches.join("\n")
    );
    Ok(())
}

fn links(root: &Path, files: &[String]) -> Result<Vec<String>> {
    let names = files.iter().map(Path::new);
    let names: Vec<&Path> = names.filter(|name| has_extension(name, &["md"])).collect();
    let read = |name: &&Path| std::fs::read_to_string(root.join(name));
    let texts = names.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let both = || names.iter().copied().zip(texts.iter().map(String::as_str));
    let documents = Documents::of(both());
    let mut breaches: Vec<String> = both()
        .flat_map(|(name, text)| documents.breaches(name, text, files))
        .collect();
    let contents = both().find(|(name, _)| *name == Path::new(CONTENTS));
    let (name, text) = contents.context("the book has a table of contents")?;
    breaches.extend(documents.left_out(name, text));
    Ok(breaches)
}

fn unlicensed(name: &Path, text: &str) -> Option<String> {
    let head = text
        .lines()
        .take(2)
        .any(|line| line.contains("SPDX-License-Identifier"));
    (!head).then(|| {
        format!(
            "  {}: line 1 must be an SPDX-License-Identifier",
            name.display()
        )
    })
}

/// `make test` does not run them: cargo would compile every dependency of the libraries once more for them, with the
/// features that the libraries alone ask for.
fn tests_in_documentation(name: &Path, text: &str) -> Vec<String> {
    let is_comment = |line: &&str| line.starts_with("///") || line.starts_with("//!");
    let comments = text.lines().map(str::trim_start).zip(1..);
    let fences =
        comments.filter(|(line, _)| is_comment(line) && line[3..].trim_start().starts_with("```"));
    // Every second fence ends a block.
    let begins = fences
        .step_by(2)
        .filter(|(line, _)| !line.ends_with("```text"));
    let breach = |(_, number)| {
        format!(
            "  {}:{number}: an example that no test runs: make it a test, or mark it as text",
            name.display()
        )
    };
    begins.map(breach).collect()
}

/// All files of the repository, relative to its root.
fn files(root: &Path) -> Result<Vec<String>> {
    let output = std::process::Command::new("git")
        .args(["ls-files", "-co", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("git lists the files to check")?;
    let listed = String::from_utf8(output.stdout).context("git's list of files")?;
    Ok(listed
        .lines()
        .filter(|name| root.join(name).is_file())
        .map(str::to_owned)
        .collect())
}

fn has_extension(name: &Path, extensions: &[&str]) -> bool {
    let extension = name.extension().and_then(|e| e.to_str());
    extension.is_some_and(|e| extensions.contains(&e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_in_documentation_is_a_breach_and_text_is_none() {
        let text = "/// ```text\n/// a -> b\n/// ```\nfn a() {}\n\n    //! ```\n    //! b();\n    //! ```\n// ```\n";
        let breaches = tests_in_documentation(Path::new("a.rs"), text);
        assert_eq!(breaches.len(), 1);
        assert!(breaches[0].contains("a.rs:6"), "{breaches:?}");
    }
}
