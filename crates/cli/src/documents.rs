// SPDX-License-Identifier: MIT OR Apache-2.0
//! The commands of the documentation and of the examples in `--help`: each is one that this program takes. And the
//! documentation's policies and tests, the blocks named `toml`: each is read without an error.
//!
//! In the pages these are the blocks without a name, those named `sh` (which a test types, tests/tutorial.rs) or
//! `sh no-test`, and what the text has in backticks. A block named `text` is output, or a synopsis.

use crate::arguments::Arguments;
use clap::error::ErrorKind;
use clap::{Command, CommandFactory};
use fatpath_policy::Problem;
use std::path::{Path, PathBuf};

/// With the place where it stands.
struct Found {
    place: String,
    line: String,
    is_whole: bool,
}

impl Found {
    /// What is wrong with it; nothing, too, if it is no command of fatpath's.
    fn wrong(&self) -> Option<String> {
        let is_ours = |words: &&Vec<String>| words.first().is_some_and(|word| word == "fatpath");
        let commands = commands(&self.line);
        let errors = commands
            .iter()
            .filter(is_ours)
            .filter_map(|it| self.error(it));
        let errors: Vec<String> = errors.collect();
        let Found { place, line, .. } = self;
        (!errors.is_empty()).then(|| format!("{place}: {line}: {}", errors.join("; ")))
    }

    /// Why clap refuses these words. Of a command that is only named, its arguments may be missing.
    fn error(&self, words: &[String]) -> Option<String> {
        let error = Arguments::command().try_get_matches_from(words).err()?;
        let is_unknown = matches!(
            error.kind(),
            ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand
        );
        let is_wrong = error.use_stderr() && (self.is_whole || is_unknown);
        is_wrong.then(|| {
            error
                .to_string()
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned()
        })
    }
}

/// Lines of shell, those that a backslash continues as one, each with the number of the last.
fn whole_lines<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> Vec<(usize, String)> {
    let mut whole = Vec::new();
    let mut begun = String::new();
    for (number, line) in lines {
        begun += line.trim();
        match begun.strip_suffix('\\') {
            Some(first) => begun = first.to_owned(),
            None => whole.push((number, std::mem::take(&mut begun))),
        }
    }
    whole
}

/// The simple commands of a line of shell, each as its words without redirections; also those that others run, behind
/// `sudo` and `--`.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    for word in words(line) {
        match (word.as_str(), commands.last_mut()) {
            ("|" | "&" | ";" | "(" | ")", _) => commands.push(Vec::new()),
            ("sudo" | "do" | "then", Some(command)) if command.is_empty() => {}
            (_, Some(command)) => command.push(word),
            (_, None) => {}
        }
    }
    let run_by_others = commands
        .iter()
        .flat_map(|words| words.splitn(2, |word| word == "--").skip(1));
    let run_by_others: Vec<_> = run_by_others.map(<[String]>::to_vec).collect();
    commands.extend(run_by_others);
    commands
}

/// Words and operators, up to a comment. Of quotes only the ends go.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in line.chars() {
        let Some(word) = words.last_mut() else { break };
        match (c, quote) {
            (c, Some(end)) if c == end => quote = None,
            ('\'' | '"', None) => quote = Some(c),
            ('#', None) if word.is_empty() => break,
            ('|' | '&' | ';' | '(' | ')', None) => words.extend([c.to_string(), String::new()]),
            (' ', None) => words.push(String::new()),
            _ => word.push(c),
        }
    }
    let mut is_target = false;
    words.retain(|word| {
        let is_redirection = word.trim_start_matches(['1', '2']).starts_with(['>', '<']);
        let is_kept = !is_target && !is_redirection && !word.is_empty();
        is_target = is_redirection && word.ends_with(['>', '<']);
        is_kept
    });
    words
}

/// The commands of a page: lines of its blocks, and what the text names.
fn of_page(name: &str, text: &str) -> Vec<Found> {
    let mut block: Option<&str> = None;
    let mut shell = Vec::new();
    let mut spans = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(info) = line.trim_start().strip_prefix("```") {
            block = block.is_none().then_some(info);
        } else if matches!(block, Some("" | "sh" | "sh no-test")) {
            shell.push((number, line));
        } else if block.is_none() {
            let quoted = line.split('`').skip(1).step_by(2);
            let named = quoted.filter(|span| span.starts_with("fatpath ") && !is_abridged(span));
            spans.extend(named.map(|span| (number, span.to_owned())));
        }
    }
    let found = |(number, line), is_whole| Found {
        place: format!("{name}:{number}"),
        line,
        is_whole,
    };
    let lines = whole_lines(shell.into_iter());
    let lines = lines.into_iter().map(|line| found(line, true));
    lines
        .chain(spans.into_iter().map(|span| found(span, false)))
        .collect()
}

/// A form of commands, not one of them.
fn is_abridged(span: &str) -> bool {
    span.contains(['[', '…', '|']) || span.contains("...") || span.contains(" COMMAND")
}

/// The examples of a command and of those below it.
fn of_help(command: &Command) -> Vec<Found> {
    let help = command.get_after_help().map(ToString::to_string);
    let help = help.unwrap_or_default();
    let examples = help.lines().filter(|line| line.starts_with("  "));
    let examples = whole_lines(examples.map(|line| (0, line)));
    let examples = examples
        .into_iter()
        .filter(|(_, line)| line.contains("fatpath "));
    let mut found: Vec<Found> = examples
        .map(|(_, line)| Found {
            place: format!("{} --help", command.get_name()),
            line,
            is_whole: true,
        })
        .collect();
    found.extend(command.get_subcommands().flat_map(of_help));
    found
}

/// Texts of the blocks named `toml`, with the lines at which they begin.
fn files_of(text: &str) -> Vec<(usize, String)> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let begins = (0..lines.len()).filter(|at| lines[*at] == "```toml");
    let files = begins.map(|at| {
        let block = lines[at + 1..].iter().take_while(|line| **line != "```");
        (at + 1, block.copied().collect::<Vec<_>>().join("\n"))
    });
    files.collect()
}

/// What is wrong with a policy, or with a list of tests.
fn problems_of(file: &str) -> Vec<Problem> {
    let of_measure = ["[[test]]", "[[mesh]]", "[[peer]]"];
    match of_measure.iter().any(|table| file.contains(table)) {
        true => fatpath_measure::parse(file).err().unwrap_or_default(),
        false => fatpath_policy::parse(file, None).err().unwrap_or_default(),
    }
}

fn wrong(found: &[Found]) -> Vec<String> {
    found.iter().filter_map(Found::wrong).collect()
}

fn pages(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => pages(&path),
            false => vec![path],
        })
        .filter(|path| path.extension().is_some_and(|it| it == "md"))
        .collect()
}

/// Names and texts of docs/ and of the README.
fn documents() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = pages(&root.join("docs"));
    pages.push(root.join("README.md"));
    let read = |page: PathBuf| {
        let name = page.strip_prefix(&root).unwrap().display().to_string();
        (name, std::fs::read_to_string(page).unwrap())
    };
    pages.into_iter().map(read).collect()
}

#[test]
fn every_policy_of_the_pages_is_read() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (name, text) in documents() {
        for (line, file) in files_of(&text) {
            count += 1;
            let problems = problems_of(&file);
            wrong.extend(problems.iter().map(|it| format!("{name}:{line}: {it:?}")));
        }
    }
    assert!(count > 15, "{count}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_command_of_the_pages_is_one_that_is_taken() {
    let documents = documents();
    let found = documents
        .iter()
        .flat_map(|(name, text)| of_page(name, text));
    let found: Vec<Found> = found.collect();
    assert!(found.len() > 300, "{}", found.len());
    let wrong = wrong(&found);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_example_of_the_help_is_one_that_is_taken() {
    let found = of_help(&Arguments::command());
    assert!(found.len() > 60, "{}", found.len());
    let wrong = wrong(&found);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_no_command_is_told_with_its_place() {
    let page = "`fatpath flws`\n```\nsudo fatpath flows --nonsense >x # fatpath y\nls | fatpath why 'a b' || fatpath stat\n```\n\
                ```text\nfatpath flows [--json]\n```\n`fatpath flows|why`, `fatpath trace plot`\n";
    let wrong = wrong(&of_page("a.md", page));
    let places: Vec<&str> = wrong.iter().map(|it| &it[..7]).collect();
    assert_eq!(places, ["a.md:3:", "a.md:4:", "a.md:1:"], "{wrong:?}");
}
