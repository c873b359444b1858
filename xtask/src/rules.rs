// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules that no compiler checks.

use crate::{modules, purity};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};

/// Source files that carry a licence line.
const LICENSED: [&str; 8] = ["rs", "c", "h", "sh", "py", "ts", "tsx", "css"];

/// Checks every rule; all breaches are named at once.
pub fn check(root: &Path) -> Result<()> {
    let mut breaches = Vec::new();
    for file in files(root)? {
        let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let name = file.strip_prefix(root).unwrap_or(&file).to_path_buf();
        breaches.extend(unlicensed(&name, &text));
        breaches.extend(purity::exception(&name, &text));
        breaches.extend(tests_in_documentation(&name, &text));
    }
    breaches.extend(purity::breaches(root)?);
    breaches.extend(modules::breaches(root)?);
    ensure!(
        breaches.is_empty(),
        "rules of the repository:\n{}",
        breaches.join("\n")
    );
    Ok(())
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

fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let output = std::process::Command::new("git")
        .args(["ls-files", "-co", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("git lists the files to check")?;
    let listed = String::from_utf8(output.stdout).context("git's list of files")?;
    Ok(listed
        .lines()
        .map(|line| root.join(line))
        .filter(|path| path.is_file() && has_licence_line(path))
        .collect())
}

fn has_licence_line(path: &Path) -> bool {
    let extension = path
        .extension()
        .and_then(|e| e.to_str())
        .unwrap_or_default();
    LICENSED.contains(&extension)
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
