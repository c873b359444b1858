// SPDX-License-Identifier: MIT OR Apache-2.0
//! Joins the parts of an experiment that several commands have made: the folder is then that of one command.
//!
//! It makes no runs. What it writes is the same to the byte as what one command writes that makes all runs in
//! their order. Start with [`merge`].

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use fatpath_scenario::{Case, Scenario};
use thiserror::Error;

use super::folder::Folder;
use super::history::{History, Maker, Runs};
use super::order::{Planned, name_of_run};
use super::shard::{Shard, deal};
use super::{Options, Outcome, ScenarioError};
use crate::results::Run;
use crate::results::files::{self, WriteError};

/// So many names of runs in a message; a sweep may have a million.
const MOST_NAMES: usize = 10;

/// Why parts cannot be joined.
#[derive(Debug, Error)]
pub enum MergeError {
    /// One is of four, another of eight.
    #[error(
        "{} is part {} and {} is part {}: merge parts of the same N", one.0.display(), one.1, other.0.display(), other.1
    )]
    Counts {
        /// The first folder and part.
        one: (PathBuf, Shard),
        /// Another.
        other: (PathBuf, Shard),
    },
    /// Two folders have the run, and not the same.
    #[error(
        "{} and {} have different results of run {run}: one of them was not made by this experiment; make it again \
         with --fresh", one.display(), other.display()
    )]
    Differ {
        /// The name of the run.
        run: String,
        /// The first folder.
        one: PathBuf,
        /// The other.
        other: PathBuf,
    },
    /// They would be lost.
    #[error(
        "the parts have runs that this command does not ask for ({0}); give --merge the same --path, --variant, \
         --vary and --repeats as --shard"
    )]
    NotAskedFor(String),
    /// Some runs were not made, or their folder was not given.
    #[error(
        "runs are missing:\n{0}make them with `fatpath sim FILE --shard K/N --out DIR` and the same options as the other \
         parts (in its earlier folder a part continues where it stopped), then merge again"
    )]
    Missing(String),
    /// It would be overwritten while it is read.
    #[error("--out {} is one of the parts; give another folder", .0.display())]
    OutIsPart(PathBuf),
    /// They would be lost.
    #[error(
        "{} has runs that the parts do not have; --fresh deletes them, another --out DIR keeps them", .0.display()
    )]
    OutHasOthers(PathBuf),
}

/// A part: what is in its folder.
struct Part<'d> {
    folder: &'d Path,
    shard: Shard,
    runs: Runs,
}

/// A run, and the folder that has it.
struct Found<'d> {
    folder: &'d Path,
    run: Run,
}

/// By the label of its case and the repeat.
type AllFound<'d> = BTreeMap<(String, u32), Found<'d>>;

/// A run of the merged experiment.
struct Joined<'d> {
    name: String,
    key: (String, u32),
    found: Found<'d>,
}

/// Joins the parts in these folders. `planned` are the runs of these cases that one command would make, in
/// their order.
///
/// # Errors
/// See [`MergeError`]; then nothing was written.
pub(crate) fn merge(
    scenario: &Scenario,
    options: &Options,
    maker: Maker,
    (cases, planned): (&[&Case], &[Planned]),
    folders: &[PathBuf],
) -> Result<Outcome, ScenarioError> {
    check_out(&options.out, folders)?;
    let read = |folder| read(folder, scenario, maker);
    let parts = folders.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    check_counts(&parts)?;
    let given: Vec<(Shard, &Path)> = parts.iter().map(|part| (part.shard, part.folder)).collect();
    let joined = in_order(planned, found(parts)?, &given)?;
    if !options.fresh {
        check_kept(&Folder::open(scenario, options, maker)?, &joined)?;
    }
    let fresh = Options {
        fresh: true,
        ..options.clone()
    };
    let mut folder = Folder::open(scenario, &fresh, maker)?;
    folder.part(files::SERIES)?;
    copy_series(&options.out, &joined)?;
    let runs = joined.into_iter().map(|one| (one.key, one.found.run));
    folder.history.add_all(runs.collect())?;
    folder.finish(cases, 0)
}

fn read<'d>(
    folder: &'d PathBuf,
    scenario: &Scenario,
    maker: Maker,
) -> Result<Part<'d>, ScenarioError> {
    let (shard, runs) = History::read_part(folder, scenario, maker)?;
    Ok(Part {
        folder,
        shard,
        runs,
    })
}

fn check_out(out: &Path, folders: &[PathBuf]) -> Result<(), MergeError> {
    let Ok(path) = out.canonicalize() else {
        return Ok(());
    };
    let is_out = |folder: &PathBuf| folder.canonicalize().is_ok_and(|part| part == path);
    match folders.iter().any(is_out) {
        true => Err(MergeError::OutIsPart(out.to_owned())),
        false => Ok(()),
    }
}

fn check_counts(parts: &[Part]) -> Result<(), MergeError> {
    let named = |part: &Part| (part.folder.to_owned(), part.shard);
    let Some((first, others)) = parts.split_first() else {
        return Ok(());
    };
    let differs = |part: &&Part| part.shard.count != first.shard.count;
    match others.iter().find(differs) {
        Some(other) => Err(MergeError::Counts {
            one: named(first),
            other: named(other),
        }),
        None => Ok(()),
    }
}

/// All runs of all parts. Of a run that several have, results and series must be equal.
fn found(parts: Vec<Part>) -> Result<AllFound, MergeError> {
    let mut all = AllFound::new();
    for Part { folder, runs, .. } in parts {
        for (key, run) in runs {
            match all.entry(key) {
                Entry::Vacant(entry) => {
                    entry.insert(Found { folder, run });
                }
                Entry::Occupied(entry) => check_equal(entry.key(), entry.get(), folder, &run)?,
            }
        }
    }
    Ok(all)
}

fn check_equal(
    key: &(String, u32),
    one: &Found,
    folder: &Path,
    run: &Run,
) -> Result<(), MergeError> {
    let (label, repeat) = key;
    let name = name_of_run(label, *repeat);
    let content = |folder| fs::read(series(folder, &name)).ok();
    match one.run == *run && content(one.folder) == content(folder) {
        true => Ok(()),
        false => Err(MergeError::Differ {
            run: name,
            one: one.folder.to_owned(),
            other: folder.to_owned(),
        }),
    }
}

fn in_order<'d>(
    planned: &[Planned],
    mut found: AllFound<'d>,
    given: &[(Shard, &Path)],
) -> Result<Vec<Joined<'d>>, MergeError> {
    let (mut joined, mut missing) = (vec![], vec![]);
    for (place, run) in planned.iter().enumerate() {
        let key = (run.case.label().to_owned(), run.repeat().unwrap_or(0));
        let name = run.name();
        match found.remove(&key) {
            Some(found) => joined.push(Joined { name, key, found }),
            None => missing.push(place),
        }
    }
    if !missing.is_empty() {
        let lines = missing_lines(planned, &missing, given);
        return Err(MergeError::Missing(lines));
    }
    match found.is_empty() {
        true => Ok(joined),
        false => {
            let names = found
                .keys()
                .map(|(label, repeat)| name_of_run(label, *repeat));
            Err(MergeError::NotAskedFor(some_of(&names.collect::<Vec<_>>())))
        }
    }
}

/// A line for each part with missing runs; `missing` are their places.
fn missing_lines(planned: &[Planned], missing: &[usize], given: &[(Shard, &Path)]) -> String {
    let count = given.first().map_or(1, |(shard, _)| shard.count);
    let parts = deal(planned, count);
    let mut names: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for &place in missing {
        let of_part = names.entry(parts[place]).or_default();
        of_part.push(planned[place].name());
    }
    let line = |(index, names): (u32, Vec<String>)| {
        let shard = Shard { index, count };
        let folders = given.iter().filter(|(other, _)| *other == shard);
        let folders: Vec<String> = folders.map(|(_, dir)| dir.display().to_string()).collect();
        let state = match folders.is_empty() {
            true => "was not given".to_owned(),
            false => format!("in {} is not complete", folders.join(" and ")),
        };
        let runs = if names.len() == 1 { "run" } else { "runs" };
        let (missing, some) = (names.len(), some_of(&names));
        format!("  part {shard} {state}: {missing} {runs} ({some})\n")
    };
    names.into_iter().map(line).collect()
}

fn some_of(names: &[String]) -> String {
    let some = names[..names.len().min(MOST_NAMES)].join(", ");
    match names.len().saturating_sub(MOST_NAMES) {
        0 => some,
        more => format!("{some}, and {more} more"),
    }
}

/// What an earlier command made in the folder of the merged runs may be made anew, not lost.
fn check_kept(folder: &Folder, joined: &[Joined]) -> Result<(), MergeError> {
    let joined: HashMap<_, _> = joined
        .iter()
        .map(|one| (&one.key, &one.found.run))
        .collect();
    let mut kept = folder.history.runs().iter();
    match kept.all(|(key, run)| joined.get(key) == Some(&run)) {
        true => Ok(()),
        false => Err(MergeError::OutHasOthers(folder.out.to_owned())),
    }
}

fn copy_series(out: &Path, joined: &[Joined]) -> Result<(), WriteError> {
    for Joined { name, found, .. } in joined {
        if found.run.series.is_some() {
            let from = series(found.folder, name);
            let content = fs::read(&from).map_err(WriteError::at(&from))?;
            files::write(&series(out, name), content)?;
        }
    }
    Ok(())
}

fn series(folder: &Path, name: &str) -> PathBuf {
    folder.join(files::SERIES).join(format!("{name}.csv"))
}
