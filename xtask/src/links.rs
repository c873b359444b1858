// SPDX-License-Identifier: MIT OR Apache-2.0
//! Links of the documents: the file that a relative link names is in the repository, and the heading behind its `#` in
//! that file. The pages below `docs/` lead to one another only: they are also read as a book, and where they are installed.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

/// What is read without the rest of the repository.
const BOOK: &str = "docs";

/// The Markdown files by name, with what can be linked to in each.
pub struct Documents(HashMap<PathBuf, Vec<String>>);

impl Documents {
    /// Of names and texts.
    pub fn of<'t>(texts: impl IntoIterator<Item = (&'t Path, &'t str)>) -> Documents {
        let texts = texts.into_iter();
        Documents(
            texts
                .map(|(name, text)| (name.to_owned(), anchors(text)))
                .collect(),
        )
    }

    /// One line for each link of a document that leads nowhere. `files` are all files of the repository.
    pub fn breaches(&self, name: &Path, text: &str, files: &[String]) -> Vec<String> {
        let mut breaches = Vec::new();
        for (number, line) in prose(text) {
            for target in targets(line) {
                if let Some(wrong) = self.wrong(name, target, files) {
                    breaches.push(format!("  {}:{number}: {wrong}", name.display()));
                }
            }
        }
        breaches
    }

    /// One line for each page below the folder of the table of contents `name` that it does not name once.
    pub fn left_out(&self, name: &Path, contents: &str) -> Vec<String> {
        let named: Vec<PathBuf> = prose(contents)
            .flat_map(|(_, line)| targets(line))
            .map(|target| resolved(name, target))
            .collect();
        let folder = name.parent().unwrap_or(Path::new(""));
        let pages = self.0.keys().filter(|page| page.starts_with(folder));
        let mut breaches: Vec<String> = pages
            .filter(|page| *page != name)
            .filter(|page| named.iter().filter(|other| other == page).count() != 1)
            .map(|page| format!("  {}: must name {} once", name.display(), page.display()))
            .collect();
        breaches.sort();
        breaches
    }

    fn wrong(&self, name: &Path, target: &str, files: &[String]) -> Option<String> {
        if target.contains("://") || target.starts_with("mailto:") {
            return None;
        }
        let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
        let linked = match path {
            "" => name.to_owned(),
            path => resolved(name, path),
        };
        let is_there = files
            .iter()
            .any(|file| Path::new(file).starts_with(&linked));
        if !is_there {
            return Some(format!("links to {path}, which is not in the repository"));
        }
        if name.starts_with(BOOK) && !linked.starts_with(BOOK) {
            return Some(format!(
                "links to {path}, which the book lacks: name it, without a link"
            ));
        }
        let headings = self.0.get(&linked)?;
        let is_known = anchor.is_empty() || headings.iter().any(|heading| heading == anchor);
        (!is_known).then(|| format!("links to {target}, but there is no such heading"))
    }
}

/// Lines with their numbers, without those between fences.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    let lines = text.lines().zip(1..);
    let lines = lines.filter_map(move |(line, number)| {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
            return None;
        }
        (!is_code).then_some((number, line))
    });
    lines.collect::<Vec<_>>().into_iter()
}

/// What stands in `](…)`, but not in code. Of a link whose text is code only the text goes.
fn targets(line: &str) -> Vec<&str> {
    let outside = line.split('`').step_by(2);
    let links = outside.flat_map(|part| part.split("](").skip(1));
    links
        .filter_map(|rest| Some(rest.split_once(')')?.0))
        .collect()
}

/// `path`, from the folder of the document `name`, as a path from the top.
pub fn resolved(name: &Path, path: &str) -> PathBuf {
    let joined = name.parent().unwrap_or(Path::new("")).join(path);
    joined.components().fold(PathBuf::new(), |mut whole, part| {
        match part {
            Component::ParentDir => _ = whole.pop(),
            Component::CurDir => {}
            other => whole.push(other),
        }
        whole
    })
}

/// Headings as GitHub and mdBook make anchors of them: small letters, digits, `-` and `_`; spaces become `-`; the second
/// of a name has `-1`.
fn anchors(text: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for (_, line) in prose(text) {
        let named = line.split("<a id=\"").skip(1);
        let named = named.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned()));
        anchors.extend(named);
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let kept = heading.trim().to_lowercase();
        let kept = kept
            .chars()
            .filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let is_same =
            |other: &&String| **other == anchor || other.starts_with(&format!("{anchor}-"));
        let before = anchors.iter().filter(is_same).count();
        let is_taken = anchors.contains(&anchor);
        anchors.push(match is_taken {
            true => format!("{anchor}-{before}"),
            false => anchor,
        });
    }
    anchors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaches(text: &str) -> Vec<String> {
        let name = Path::new("docs/how-to/a.md");
        let other = "# The `other` page\n## Errors, and more\n## Errors, and more\n<a id=\"own\"></a>\n```\n# no heading\n```\n";
        let documents = Documents::of([(name, text), (Path::new("docs/b.md"), other)]);
        let files = [
            "docs/how-to/a.md",
            "docs/b.md",
            "docs/images/x.png",
            "crates/x/src/lib.rs",
        ]
        .map(str::to_owned);
        documents.breaches(name, text, &files)
    }

    #[test]
    fn links_that_lead_somewhere_pass() {
        let text = "# A\n[b](../b.md), [`code`](../b.md#the-other-page), [e](../b.md#errors-and-more-1), [self](#a) [o](../b.md#own)\n\
                    [web](https://example.org/x#y) [picture](../images/x.png) [folder](../images)\n\
                    `[no](link.md)`\n```\n[no](link.md)\n```\n";
        assert_eq!(breaches(text), Vec::<String>::new());
    }

    #[test]
    fn a_page_that_the_table_of_contents_lacks_is_told() {
        let pages = ["docs/SUMMARY.md", "docs/a.md", "docs/b/c.md", "README.md"].map(Path::new);
        let documents = Documents::of(pages.map(|page| (page, "")));
        let left_out = |contents| documents.left_out(pages[0], contents);
        assert_eq!(left_out("[a](a.md)\n[c](b/c.md)\n"), Vec::<String>::new());
        let told = left_out("[a](a.md)\n[again](a.md)\n");
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[1].contains("docs/b/c.md"), "{told:?}");
    }

    #[test]
    fn links_that_lead_nowhere_are_told_with_their_place() {
        let text = "# A\n[b](b.md)\n[e](../b.md#nothing) [h](../b.md#no-heading) [s](#b)\n[l](../../crates/x/src/lib.rs)\n";
        let told = breaches(text);
        assert_eq!(told.len(), 5, "{told:?}");
        assert!(told[4].contains("the book lacks"), "{told:?}");
        assert!(told[0].starts_with("  docs/how-to/a.md:2: links to b.md"));
    }
}
