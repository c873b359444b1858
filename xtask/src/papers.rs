// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the commands of docs/papers.md, one after another, and writes what became of each beside what the document says.
//!
//! It lasts for hours. A command that has ended is not run again, so whoever interrupts it goes on where it was.

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

const DOCUMENT: &str = "docs/papers.md";
const RESULTS: &str = "out/papers";

/// What runs by itself; other words of a row are for people.
const RUNS: [&str; 7] = [
    "fatpath sim ",
    "fatpath lab run ",
    "fatpath lab compare ",
    "fatpath model ",
    "make bench NAME=",
    "make demo",
    "cargo test ",
];

/// A row of a table.
#[derive(Debug, PartialEq)]
struct Claim {
    paper: String,
    claim: String,
    commands: Vec<String>,
    /// What the document says came out.
    result: String,
}

/// Runs what has not been run, or only what contains `words`; `--fresh` runs all again, `--list` none.
pub fn papers(root: &Path, words: &[String]) -> Result<()> {
    let text = fs::read_to_string(root.join(DOCUMENT)).context(DOCUMENT)?;
    let claims = claims(&text);
    let (options, wanted): (Vec<&String>, Vec<&String>) =
        words.iter().partition(|word| word.starts_with("--"));
    let has = |name: &str| options.iter().any(|option| *option == name);
    let is_wanted = |command: &str| wanted.iter().all(|word| command.contains(*word));
    let all = claims.iter().flat_map(|claim| &claim.commands);
    let commands: BTreeSet<&String> = all.filter(|command| is_wanted(command)).collect();
    if has("--list") {
        commands.iter().for_each(|command| println!("{command}"));
        return Ok(());
    }
    let folder = root.join(RESULTS);
    fs::create_dir_all(&folder)?;
    let state = folder.join("done.json");
    let mut done = match has("--fresh") {
        true => Map::new(),
        false => read(&state)?,
    };
    let left: Vec<&&String> = commands
        .iter()
        .filter(|command| !done.contains_key(**command))
        .collect();
    for (index, command) in left.iter().enumerate() {
        println!("{} of {}: {command}", index + 1, left.len());
        let ran = run(root, &folder, command, done.len() + 1)?;
        done.insert((**command).clone(), ran);
        fs::write(&state, serde_json::to_string_pretty(&done)?)?;
        fs::write(folder.join("papers.md"), table(&claims, &done))?;
    }
    fs::write(folder.join("papers.md"), table(&claims, &done))?;
    println!("{RESULTS}/papers.md");
    Ok(())
}

fn read(state: &Path) -> Result<Map<String, Value>> {
    match fs::read_to_string(state) {
        Ok(text) => serde_json::from_str(&text).with_context(|| state.display().to_string()),
        Err(_) => Ok(Map::new()),
    }
}

fn run(root: &Path, folder: &Path, command: &str, number: usize) -> Result<Value> {
    let name = format!("{number}.log");
    let log = File::create(folder.join(&name))?;
    let path = std::env::var("PATH").unwrap_or_default();
    let own = root.join("target/release");
    let begun = Instant::now();
    let status = Command::new("sh")
        .args(["-c", command])
        .current_dir(root)
        .env("PATH", format!("{}:{path}", own.display()))
        .stdout(log.try_clone()?)
        .stderr(log)
        .status()?;
    Ok(json!({
        "log": name,
        "seconds": begun.elapsed().as_secs(),
        "succeeded": status.success(),
    }))
}

fn table(claims: &[Claim], done: &Map<String, Value>) -> String {
    let mut text =
        "| paper | claim | ran | result in docs/papers.md |\n|---|---|---|---|\n".to_owned();
    for claim in claims {
        let ran = |command: &String| match done.get(command) {
            None => format!("`{command}`: not yet"),
            Some(ran) => format!(
                "`{command}`: {} in {} s, {}",
                if ran["succeeded"] == true {
                    "ended well"
                } else {
                    "failed"
                },
                ran["seconds"],
                ran["log"].as_str().unwrap_or_default()
            ),
        };
        let ran: Vec<String> = claim.commands.iter().map(ran).collect();
        let ran = match ran.is_empty() {
            true => "no command runs by itself".to_owned(),
            false => ran.join("; "),
        };
        let (paper, said, result) = (&claim.paper, &claim.claim, &claim.result);
        text += &format!("| {paper} | {said} | {ran} | {result} |\n");
    }
    text
}

/// The rows of all tables with a command, by paper.
fn claims(text: &str) -> Vec<Claim> {
    let (mut paper, mut folder, mut found) = (String::new(), None, Vec::new());
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            paper = title.to_owned();
            folder = None;
        }
        if line.contains("only a file name stands for") {
            let spans = spans(line);
            let stands = spans.first().and_then(|span| span.strip_suffix("FILE"));
            folder = stands.map(str::to_owned);
        }
        let [claim, command, result, ..] = &cells(line)[..] else {
            continue;
        };
        if claim == "claim" || claim.starts_with("---") {
            continue;
        }
        let spans = spans(command);
        let commands = spans
            .iter()
            .filter_map(|span| whole(span, folder.as_deref()));
        found.push(Claim {
            paper: paper.clone(),
            claim: claim.clone(),
            commands: commands.collect(),
            result: result.clone(),
        });
    }
    found
}

/// As it is typed.
fn whole(span: &str, folder: Option<&str>) -> Option<String> {
    let first = span.split(' ').next().unwrap_or_default();
    if let (Some(folder), true) = (folder, first.ends_with(".toml") && !first.contains('/')) {
        return Some(format!("{folder}{span}"));
    }
    // In capitals stands what a reader puts there.
    let is_open = span.split(' ').any(|word| word == "FILE" || word == "DIR");
    let runs = RUNS.iter().any(|run| span.starts_with(run));
    (runs && !is_open).then(|| span.to_owned())
}

/// What stands between backquotes.
fn spans(text: &str) -> Vec<String> {
    let parts = text.split('`').skip(1).step_by(2);
    parts.map(str::to_owned).collect()
}

/// Of a row, without what stands outside; a bar between backquotes is text.
fn cells(line: &str) -> Vec<String> {
    if !line.starts_with('|') {
        return Vec::new();
    }
    let (mut cells, mut is_code) = (vec![String::new()], false);
    for c in line.trim().trim_matches('|').chars() {
        is_code ^= c == '`';
        match (c, is_code) {
            ('|', false) => cells.push(String::new()),
            (c, _) => cells
                .iter_mut()
                .last()
                .into_iter()
                .for_each(|cell| cell.push(c)),
        }
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_what_runs_by_itself() {
        let text = "## A paper\n\
            A command that is only a file name stands for `fatpath sim experiments/rude/FILE`, run\n\
            | claim | command | our result | agreement |\n|---|---|---|---|\n\
            | a | `loss.toml --path x`, or `y`; `a | b` | 1 | agrees |\n\
            | b | `make bench NAME=law.aimd_window_error` | 2 | agrees |\n\
            | c | `fatpath import-wad FILE` | 3 | agrees |\n\
            ## Another\n| d | `loss.toml` | 4 | agrees |\n";
        let found = claims(text);
        let commands: Vec<&[String]> = found.iter().map(|claim| &claim.commands[..]).collect();
        assert_eq!(
            commands[0],
            ["fatpath sim experiments/rude/loss.toml --path x"]
        );
        assert_eq!(commands[1], ["make bench NAME=law.aimd_window_error"]);
        assert!(commands[2].is_empty() && commands[3].is_empty());
        assert_eq!(
            (&found[0].paper[..], &found[0].result[..]),
            ("A paper", "1")
        );
        assert_eq!(found[3].paper, "Another");
    }

    #[test]
    fn the_document_has_commands_and_their_files_are_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let claims = claims(&fs::read_to_string(root.join(DOCUMENT)).unwrap());
        let commands: Vec<&String> = claims.iter().flat_map(|claim| &claim.commands).collect();
        assert!(commands.len() > 40, "{}", commands.len());
        for command in commands {
            let files = command.split(' ').filter(|word| word.ends_with(".toml"));
            for file in files {
                assert!(root.join(file).exists(), "{command}: no {file}");
            }
        }
    }

    #[test]
    fn what_has_run_is_in_the_table_with_its_log() {
        let claim = Claim {
            paper: "A paper".to_owned(),
            claim: "a claim".to_owned(),
            commands: vec!["sh -c true".to_owned(), "other".to_owned()],
            result: "1".to_owned(),
        };
        let folder = tempfile::tempdir().unwrap();
        let ran = run(folder.path(), folder.path(), "echo said; false", 7).unwrap();
        let said = fs::read_to_string(folder.path().join("7.log")).unwrap();
        assert_eq!(
            (said.as_str(), &ran["succeeded"]),
            ("said\n", &json!(false))
        );
        let done = Map::from_iter([("sh -c true".to_owned(), ran)]);
        let table = table(&[claim], &done);
        assert!(
            table.contains("`sh -c true`: failed in 0 s, 7.log; `other`: not yet"),
            "{table}"
        );
    }
}
