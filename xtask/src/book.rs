// SPDX-License-Identifier: MIT OR Apache-2.0
//! The book that mdBook made of docs/: every link and picture of its pages is there, and every page of docs/ is in it.

use crate::links::resolved;
use anyhow::{Context, Result, ensure};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// As `book.toml` says.
const BOOK: &str = "target/book";

/// Has all pages on one, for printing: its anchors are another matter.
const WHOLE: &str = "print.html";

/// Checks the book below `root`; all breaches are named at once.
pub fn check(root: &Path) -> Result<()> {
    let pages = pages(&root.join(BOOK), Path::new(""))?;
    let is_there = |path: &Path| pages.contains_key(path) || root.join(BOOK).join(path).exists();
    let mut breaches: Vec<String> = pages
        .iter()
        .filter(|(name, _)| *name != Path::new(WHOLE))
        .flat_map(|(name, text)| breaches(name, text, &pages, &is_there))
        .collect();
    breaches.sort();
    ensure!(pages.len() > 30, "{BOOK} has {} pages", pages.len());
    ensure!(
        breaches.is_empty(),
        "links of the book:\n{}",
        breaches.join("\n")
    );
    println!(
        "the book: {} pages, and every link leads somewhere",
        pages.len()
    );
    Ok(())
}

/// The HTML files below a folder, by their names from the top.
fn pages(top: &Path, below: &Path) -> Result<HashMap<PathBuf, String>> {
    let folder = top.join(below);
    let mut found = HashMap::new();
    let entries = std::fs::read_dir(&folder);
    for entry in entries.with_context(|| format!("{}: make book", folder.display()))? {
        let entry = entry?;
        let name = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            found.extend(pages(top, &name)?);
        } else if name.extension().is_some_and(|it| it == "html") {
            found.insert(name, std::fs::read_to_string(entry.path())?);
        }
    }
    Ok(found)
}

/// A line for each link of a page that leads nowhere.
fn breaches(
    name: &Path,
    text: &str,
    pages: &HashMap<PathBuf, String>,
    is_there: &dyn Fn(&Path) -> bool,
) -> Vec<String> {
    let links = ["href=\"", "src=\""].into_iter().flat_map(|attribute| {
        let rests = text.split(attribute).skip(1);
        rests.filter_map(|rest| Some(rest.split_once('"')?.0))
    });
    let inner = links.filter(|link| !link.contains(':') && !link.starts_with("//"));
    let leads_somewhere = |link: &str| {
        let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
        let page = match path {
            "" => name.to_owned(),
            path => resolved(name, path),
        };
        let anchored = |text: &String| text.contains(&format!("id=\"{anchor}\""));
        is_there(&page) && (anchor.is_empty() || pages.get(&page).is_none_or(anchored))
    };
    inner
        .filter(|link| !leads_somewhere(link))
        .map(|link| format!("  {}: {link}", name.display()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead_nowhere_are_named() {
        let text = "<a href=\"../b.html#two\"><a href=\"#no\"><a href=\"https://x.example/\"><img src=\"../c.png\"><a href=\"../d.md\">";
        let pages = [
            (PathBuf::from("a/a.html"), text.to_owned()),
            (PathBuf::from("b.html"), "<h2 id=\"two\">".to_owned()),
        ];
        let pages = HashMap::from(pages);
        let is_there = |path: &Path| pages.contains_key(path);
        let told = breaches(Path::new("a/a.html"), text, &pages, &is_there);
        assert_eq!(
            told,
            [
                "  a/a.html: #no",
                "  a/a.html: ../d.md",
                "  a/a.html: ../c.png"
            ]
        );
    }
}
