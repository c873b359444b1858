// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that a document or a comment cites by path, such as `bpf/include/abi.h`, are in the repository.

use std::path::Path;

/// A path with such an extension always means a file of this repository.
const OURS: [&str; 8] = ["rs", "md", "toml", "py", "sh", "ts", "tsx", "sbatch"];

/// The kernel's sources and our results have these too: the path means a file of this repository if its first folder is
/// one of ours.
const SHARED: [&str; 4] = ["c", "h", "json", "css"];

/// Folders of the kernel's sources whose first part is also a folder of ours.
const KERNEL: [&str; 3] = ["include/linux/", "include/net/", "include/uapi/"];

/// The file that the reader of docs/new-law.md writes.
const WRITTEN_BY_READER: &str = "bpf/cc/sqrt.h";

/// One line for each citation of a file that is not there. `files` are all files of the repository.
pub fn breaches(name: &Path, text: &str, files: &[String]) -> Vec<String> {
    let lines = text.lines().enumerate();
    lines
        .flat_map(|(index, line)| {
            cited(name, line)
                .filter(|path| is_missing(path, files))
                .map(move |path| {
                    let place = format!("{}:{}", name.display(), index + 1);
                    format!("  {place}: cites {path}, which is not in the repository")
                })
        })
        .collect()
}

fn cited<'a>(name: &Path, line: &'a str) -> impl Iterator<Item = &'a str> {
    prose(name, line)
        .split(|c: char| !(c.is_alphanumeric() || "._-/{}<>$*~".contains(c)))
        .map(|word| word.trim_start_matches("../").trim_end_matches('.'))
        .filter(|word| word.contains('/') && !word.starts_with('/'))
        .filter(|word| !word.contains(|c| "{}<>$*~".contains(c)) && !is_placeholder(word))
}

/// The part of a line that people read: all of it in a document, the comment in a source file.
fn prose<'a>(name: &Path, line: &'a str) -> &'a str {
    let starts: &[&str] = match extension(name) {
        "md" => return line,
        "py" | "sh" | "toml" => &["#"],
        _ => &["//", "/*", "* "],
    };
    let start = starts
        .iter()
        .filter_map(|mark| {
            line.match_indices(mark)
                .find(|(at, _)| is_comment_start(line, *at))
        })
        .map(|(at, _)| at)
        .min();
    start.map_or("", |at| &line[at..])
}

fn is_comment_start(line: &str, at: usize) -> bool {
    let before = &line[..at];
    let in_string = before.matches('"').count() % 2 == 1;
    !in_string && before.chars().next_back().is_none_or(char::is_whitespace)
}

/// `experiments/paths/NAME.toml` stands for any file of that form.
fn is_placeholder(path: &str) -> bool {
    let stem = Path::new(path).file_stem().and_then(|s| s.to_str());
    stem == Some("NAME")
}

fn is_missing(path: &str, files: &[String]) -> bool {
    let is_ours = OURS.contains(&extension(Path::new(path)))
        || SHARED.contains(&extension(Path::new(path))) && begins_as_ours(path, files);
    let exists = || files.iter().any(|file| ends_with_path(file, path));
    is_ours && path != WRITTEN_BY_READER && !exists()
}

fn begins_as_ours(path: &str, files: &[String]) -> bool {
    let first = path.split_inclusive('/').next().unwrap_or_default();
    !KERNEL.iter().any(|folder| path.starts_with(folder))
        && files.iter().any(|file| file.starts_with(first))
}

fn ends_with_path(file: &str, path: &str) -> bool {
    file.strip_suffix(path)
        .is_some_and(|folder| folder.is_empty() || folder.ends_with('/'))
}

fn extension(path: &Path) -> &str {
    path.extension()
        .and_then(|extension| extension.to_str())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaches_of(name: &str, text: &str) -> Vec<String> {
        let files = [
            "bpf/include/abi.h",
            "include/fatpath/rude.h",
            "docs/why.md",
            "crates/link/src/lib.rs",
        ];
        breaches(Path::new(name), text, &files.map(str::to_owned))
    }

    #[test]
    fn a_cited_file_that_is_not_there_is_a_breach() {
        for (name, text) in [
            ("docs/policy.md", "The types are in\n`bpf/include/gone.h`."),
            (
                "crates/a/src/lib.rs",
                "//! Types\nfn f() {} // of crates/gone/src/lib.rs:7",
            ),
            ("bpf/tune.bpf.c", "/*\n * As docs/gone.md says. */"),
            ("experiments/a.toml", "a = 1\nb = 2 # docs/gone.md"),
        ] {
            let breaches = breaches_of(name, text);
            assert_eq!(breaches.len(), 1, "{name}: {breaches:?}");
            assert!(
                breaches[0].starts_with(&format!("  {name}:2: cites ")),
                "{breaches:?}"
            );
            assert!(breaches[0].contains("gone"), "{breaches:?}");
        }
    }

    #[test]
    fn files_that_exist_and_files_of_others_are_none() {
        for (name, text) in [
            (
                "docs/a.md",
                "`bpf/include/abi.h`, ../docs/why.md. (`fatpath/rude.h`), src/lib.rs:12",
            ),
            (
                "docs/a.md",
                "https://example.org/docs/gone.md /etc/fatpath/gone.toml ~/gone/x.toml",
            ),
            (
                "docs/a.md",
                "net/ipv4/tcp_input.c, include/net/tcp.h, out/bench/results.json",
            ),
            (
                "docs/a.md",
                "`experiments/paths/NAME.toml` and crates/*/src/lib.rs, bpf/cc/{a,b}.h",
            ),
            (
                "crates/a/src/lib.rs",
                "let path = \"docs/gone.md\"; // no file",
            ),
        ] {
            assert_eq!(breaches_of(name, text), Vec::<String>::new(), "{text}");
        }
    }
}
