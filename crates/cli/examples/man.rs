// SPDX-License-Identifier: MIT OR Apache-2.0
//! The man pages, from the same definitions as `--help`.

use anyhow::{Context, Result};
use std::path::Path;

fn main() -> Result<()> {
    let directory = std::env::args().nth(1).context("usage: man DIRECTORY")?;
    write(Path::new(&directory))
}

/// The reference of the policy file, which is also a page of the documentation.
const POLICY: &str = include_str!("../../../docs/policy.md");

/// Rude TCP: the administrator's page, and the socket option's.
const RUDE: &str = include_str!("../../../docs/rude.md");

/// Writes `man1/fatpath.1`, a page for each subcommand, `man5/fatpath-policy.5` and `man7/fatpath-rude.7`.
fn write(directory: &Path) -> Result<()> {
    let failed = || format!("cannot write into {}", directory.display());
    for section in ["man1", "man5", "man7"] {
        std::fs::create_dir_all(directory.join(section)).with_context(failed)?;
    }
    for (text, name, section) in [(POLICY, "fatpath-policy", 5), (RUDE, "fatpath-rude", 7)] {
        let page = mandown::convert(&without_tables(text), name, section);
        let file = directory.join(format!("man{section}/{name}.{section}"));
        std::fs::write(file, page).with_context(failed)?;
    }
    clap_mangen::generate_to(fatpath_cli::command(), directory.join("man1")).with_context(failed)
}

/// The rows of tables as list items, since man pages of Markdown have no tables.
fn without_tables(markdown: &str) -> String {
    let mut text = String::new();
    let mut lines = markdown.lines().peekable();
    while let Some(line) = lines.next() {
        let is_row = line.starts_with('|');
        let is_head = is_row && lines.peek().is_some_and(|next| next.starts_with("|--"));
        if is_head || line.starts_with("|--") {
            continue;
        }
        text.push_str(&if is_row {
            list_item(line)
        } else {
            line.to_owned()
        });
        text.push('\n');
    }
    text
}

fn list_item(row: &str) -> String {
    let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
    let code_less = |cell: &str| cell.replace('`', "");
    match cells.as_slice() {
        [key, rest @ ..] => {
            let said: Vec<&str> = rest.iter().copied().filter(|c| !c.is_empty()).collect();
            let colon = if said.is_empty() { "" } else { ": " };
            format!(
                "* **{}**{colon}{}\n",
                code_less(key),
                code_less(&said.join(". "))
            )
        }
        [] => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::without_tables;

    #[test]
    fn rows_become_items_and_other_lines_stay() {
        let markdown = "a\n\n| key | value |\n|---|---|\n| `x` | 1 to 2 |\n\nb";
        assert_eq!(without_tables(markdown), "a\n\n* **x**: 1 to 2\n\n\nb\n");
    }
}
