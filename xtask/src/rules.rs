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
