// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parts of a sweep, each made by a command of its own, and what joins them: the same files as one command
//! writes, to the byte.
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees that only inside #[test]"
)]

mod bench;
mod sweep;

use std::fs;
use std::path::Path;
use std::process::Command;

use sweep::{Folder, SWEEP, assert_alike, said};

const PARTS: &str = "out/1 out/2 out/3";

/// The sweep in random order, its three parts made.
fn three_parts(test: &str) -> Folder {
    let scenario = SWEEP.replace("repeats = 2", "repeats = 3\norder = \"random\"\nseed = 3");
    let folder = Folder::new(test, &scenario);
    for index in 1..=3 {
        make(&folder, &format!("--shard {index}/3 --out out/{index}"));
    }
    folder
}

fn make(folder: &Folder, arguments: &str) -> String {
    let output = folder.output(&format!("sim x.toml --quiet {arguments}"));
    assert!(output.status.success(), "{arguments}: {}", said(&output));
    said(&output)
}

fn refused(folder: &Folder, arguments: &str) -> String {
    folder.refused(&format!("sim x.toml --quiet {arguments}"))
}

fn copy(folder: &Folder, from: &str, to: &str) {
    let mut copy = Command::new("cp");
    let copied = copy.args(["-r", from, to]).current_dir(&folder.0).status();
    assert!(copied.unwrap().success());
}

/// Takes the last run of a part away, as if its machine had gone in the middle of the line.
fn tear(folder: &Folder, part: &str) -> String {
    let history = folder.0.join(part).join("history.jsonl");
    let text = fs::read_to_string(&history).unwrap();
    let last = text.trim_end().rfind('\n').unwrap() + 1;
    fs::write(&history, &text[..last + 9]).unwrap();
    let last: serde_json::Value = serde_json::from_str(&text[last..]).unwrap();
    format!("{}.{}", last["label"].as_str().unwrap(), last["repeat"])
}

#[test]
fn merged_parts_are_what_one_command_writes() {
    let folder = three_parts("merge");
    // Its history is in the order of the runs only if one is made at a time.
    let one = make(&folder, "--jobs 1 --out one");
    copy(&folder, "out/2", "out/again");
    let merged = make(&folder, &format!("--out merged --merge {PARTS} out/again"));
    assert_eq!(merged.replace("merged/", "one/"), one);
    assert_alike(&folder.files("one"), &folder.files("merged"));
    // The merged folder is as any: nothing is left to make, and parts may be merged into it once more.
    let kept = folder.output("sim x.toml --out merged");
    assert!(
        said(&kept).contains("all 9 runs are already in merged"),
        "{}",
        said(&kept)
    );
    make(&folder, &format!("--out merged --merge {PARTS}"));
    assert_alike(&folder.files("one"), &folder.files("merged"));
}

#[test]
fn parts_beyond_the_runs_are_empty_and_a_case_that_draws_nothing_is_made_once() {
    let folder = Folder::new("empty", &SWEEP.replace("repeats = 2", "repeats = 3"));
    let chosen = "--vary loss=0% --repeats 2";
    let message = [1, 2, 3].map(|index| {
        let listed = folder.output(&format!("sim x.toml {chosen} --list --shard {index}/3"));
        let made = make(&folder, &format!("{chosen} --shard {index}/3"));
        let listed = String::from_utf8(listed.stdout).unwrap().lines().count();
        (
            listed,
            made.contains("is empty: there are fewer runs than parts"),
        )
    });
    assert_eq!(message.iter().map(|(listed, _)| listed).sum::<usize>(), 2);
    assert_eq!(message.iter().filter(|(_, is_empty)| *is_empty).count(), 1);
    make(&folder, &format!("{chosen} --jobs 1 --out one"));
    let parts = "out/x-sim-1-of-3 out/x-sim-2-of-3 out/x-sim-3-of-3";
    make(&folder, &format!("{chosen} --merge {parts}"));
    assert_alike(&folder.files("one"), &folder.files("out/x-sim"));
}

#[test]
fn missing_runs_are_named_and_a_part_goes_on_where_it_stopped() {
    let folder = three_parts("missing");
    let torn = tear(&folder, "out/2");
    let message = refused(&folder, "--out merged --merge out/1 out/2");
    assert!(
        message.contains("part 3/3 was not given: 3 runs (default."),
        "{message}"
    );
    let incomplete = format!("part 2/3 in out/2 is not complete: 1 run ({torn})");
    assert!(message.contains(&incomplete), "{message}");
    assert!(message.contains("--shard K/N"), "{message}");
    assert!(!folder.0.join("merged").exists());
    // On another machine: the program was copied there, and the date is not the same.
    fs::copy(bench::program(), folder.0.join("copied")).unwrap();
    let again = Command::new("./copied")
        .args("sim x.toml --shard 2/3 --out out/2".split(' '))
        .current_dir(&folder.0)
        .output()
        .unwrap();
    let kept = "2 runs are already in out/2, 1 are missing";
    assert!(said(&again).contains(kept), "{}", said(&again));
    make(&folder, "--jobs 1 --out one");
    make(&folder, &format!("--out merged --merge {PARTS}"));
    assert_alike(&folder.files("one"), &folder.files("merged"));
}

#[test]
fn what_is_no_part_of_the_experiment_is_refused() {
    let folder = three_parts("other");
    let merge = |arguments: &str| refused(&folder, &format!("--out merged --merge {arguments}"));
    make(&folder, "--shard 1/2 --out of-two");
    let message = merge("out/1 of-two");
    assert!(
        message.contains("out/1 is part 1/3 and of-two is part 1/2"),
        "{message}"
    );
    make(&folder, "--shard 3/3 --seed 7 --out seeded");
    let message = merge("out/1 out/2 seeded");
    assert!(
        message.contains("seeded is not a part") && message.contains("--seed"),
        "{message}"
    );
    make(&folder, "--out whole");
    assert!(merge("out/1 whole").contains("made without --shard"));
    assert!(merge("out/1 nowhere").contains("nowhere/history.jsonl: No such file"));
    let message = merge(&format!("{PARTS} --repeats 2"));
    assert!(
        message.contains("not ask for (default.default.loss=0%.3"),
        "{message}"
    );
    let message = refused(&folder, &format!("--out out/1 --fresh --merge {PARTS}"));
    assert!(
        message.contains("--out out/1 is one of the parts"),
        "{message}"
    );
    let message = refused(&folder, "--shard 1/2 --out out/1");
    assert!(message.contains("another --seed or --shard"), "{message}");
    copy(&folder, "out/3", "changed");
    let history = folder.0.join("changed/history.jsonl");
    let text = fs::read_to_string(&history).unwrap();
    fs::write(
        &history,
        text.replace("\"goodput_mbps\":", "\"goodput_mbps\":1"),
    )
    .unwrap();
    assert!(merge("out/1 out/2 out/3 changed").contains("have different results of run"));
    let text = text.replacen("\"fatpath\":\"", "\"fatpath\":\"0.0.1 ", 1);
    fs::write(&history, text).unwrap();
    assert!(merge("out/1 out/2 changed").contains("made by another build of fatpath"));
    let edited = SWEEP.replace("rate = \"5mbit\"", "rate = \"6mbit\"");
    fs::write(folder.0.join("x.toml"), edited).unwrap();
    assert!(merge(PARTS).contains("the scenario or a policy of it has changed"));
    assert!(!folder.0.join("merged").exists());
}

#[test]
fn runs_that_the_parts_do_not_have_are_not_lost() {
    let folder = three_parts("kept");
    make(&folder, "--repeats 4 --out merged");
    let history = || fs::read(folder.0.join("merged/history.jsonl")).unwrap();
    let before = history();
    let message = refused(&folder, &format!("--out merged --merge {PARTS}"));
    assert!(message.contains("--fresh deletes them"), "{message}");
    assert_eq!(history(), before);
    make(&folder, &format!("--out merged --fresh --merge {PARTS}"));
    assert!(history() != before);
    assert!(!Path::new("merged/series/default.default.loss=1%.4.csv").exists());
}

#[test]
fn parts_count_from_one_and_end_at_their_number() {
    let folder = Folder::new("number", SWEEP);
    let message = ["0/4", "5/4", "4"].map(|shard| {
        let output = folder.output(&format!("sim x.toml --shard {shard}"));
        assert_eq!(output.status.code(), Some(2));
        let message = String::from_utf8(output.stderr).unwrap();
        message.lines().next().unwrap().to_owned()
    });
    insta::assert_snapshot!(message.join("\n"), @r"
    error: invalid value '0/4' for '--shard <K/N>': parts count from 1; of a job array that begins at 0, give its index plus 1
    error: invalid value '5/4' for '--shard <K/N>': part 5 of 4 does not exist; give 1 to 4
    error: invalid value '4' for '--shard <K/N>': give K/N, such as 1/4: the first of four parts
    ");
}
