// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an experiment has done so far, in its folder: a line for every run, on the disk before the
//! next one begins. So a `lab run` that was interrupted, however, goes on where it stopped.
//!
//! The first line says which experiment it is; another one is refused. Start with [`History::open`].

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use fatpath_scenario::{Case, Scenario};
use rustix::fs::{FlockOperation, flock};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::fingerprint::{build, fingerprint};
use super::is_enough;
use super::shard::Shard;
use crate::results::files::{self, WriteError};
use crate::results::{Row, Run};

const FILE: &str = "history.jsonl";

/// The latest run of each case, by its label, and repeat.
pub(super) type Runs = BTreeMap<(String, u32), Run>;

/// The runs so far of the experiment in a folder.
#[derive(Debug)]
pub(super) struct History {
    runs: Runs,
    path: PathBuf,
    /// Locked: one experiment at a time writes into a folder.
    file: File,
    length_bytes: u64,
}

/// Why a folder cannot be used for an experiment.
#[derive(Debug, Error)]
pub enum HistoryError {
    /// What is in it came from something else.
    #[error(
        "{folder} holds {runs} runs of another experiment ({why}); --fresh deletes them and starts \
         again, another --out DIR keeps them"
    )]
    Another {
        /// The folder.
        folder: String,
        /// How many there are.
        runs: usize,
        /// What differs.
        why: &'static str,
    },
    /// Its runs would be compared with those of another scenario.
    #[error(
        "the runs in {0} were made with another version of the scenario or its policies; make them again, or compare \
         with the files that they were made with"
    )]
    Changed(String),
    /// It cannot be merged with the others.
    #[error(
        "{folder} is not a part of this experiment: {why}; make it again with this build of fatpath, the same \
         files and the same --seed"
    )]
    NotAPart {
        /// The folder.
        folder: String,
        /// What differs.
        why: &'static str,
    },
    /// Two at a time.
    #[error("another lab run writes into {0}; wait until it ends, or use another --out DIR")]
    Locked(String),
    /// Something of that name is no history.
    #[error("{0} was not written by fatpath; use another --out DIR")]
    Foreign(String),
    /// The system refuses.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// The first line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Head {
    /// Another build may give other results.
    fatpath: String,
    scenario: String,
    #[serde(default)]
    maker: Maker,
    /// Of all that decides what a run gives.
    fingerprint: String,
}

/// Who makes an experiment's runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Maker {
    /// Programs on the real kernel.
    #[default]
    Lab,
    /// The simulator.
    Simulator {
        /// Other random numbers than the scenario's.
        seed: Option<u64>,
        /// Only this part of the runs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shard: Option<Shard>,
    },
}

impl Maker {
    fn other(self) -> &'static str {
        match self {
            Maker::Lab => "they were made by `fatpath lab run`",
            Maker::Simulator { .. } => {
                "they were made by `fatpath sim`, or with another --seed or --shard"
            }
        }
    }

    /// The maker of all parts, and the part that this one makes.
    fn split(self) -> (Maker, Option<Shard>) {
        match self {
            Maker::Simulator { seed, shard } => (Maker::Simulator { seed, shard: None }, shard),
            Maker::Lab => (Maker::Lab, None),
        }
    }
}

impl Head {
    /// Why runs under the other head are not of this experiment.
    fn difference(&self, other: &Head) -> Option<&'static str> {
        if self == other {
            return None;
        }
        Some(
            match (self.maker == other.maker, self.fatpath == other.fatpath) {
                (false, _) => other.maker.other(),
                (true, true) => "the scenario or a policy of it has changed since",
                (true, false) => "it was made by another build of fatpath",
            },
        )
    }
}

/// Any other line.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    label: String,
    repeat: u32,
    run: Run,
}

impl History {
    /// Opens the history in a folder, or begins one; with `fresh`, what was there is removed.
    pub(super) fn open(
        folder: &Path,
        scenario: &Scenario,
        maker: Maker,
        fresh: bool,
    ) -> Result<History, HistoryError> {
        let path = folder.join(FILE);
        let at = path.clone();
        let failed = || WriteError::at(&at);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed())?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(HistoryError::Locked(folder.display().to_string()));
        }
        let mut bytes = vec![];
        file.read_to_end(&mut bytes).map_err(failed())?;
        let text = whole_lines(bytes).ok_or_else(|| foreign(&path))?;
        let mut history = History {
            runs: BTreeMap::new(),
            length_bytes: text.len() as u64,
            path,
            file,
        };
        let head = head(scenario, maker)?;
        match text.split_once('\n') {
            None => history.append(std::slice::from_ref(&head))?,
            Some((first, rest)) => {
                let found = parsed::<Head>(first, &history.path)?;
                if fresh {
                    history.begin_anew(folder).map_err(failed())?;
                    history.append(std::slice::from_ref(&head))?;
                } else {
                    history.take(folder, &head, &found, rest)?;
                }
            }
        }
        Ok(history)
    }

    /// Forgets everything, and removes what the runs have written, and the tables and pictures of them.
    fn begin_anew(&mut self, folder: &Path) -> io::Result<()> {
        self.length_bytes = 0;
        self.file.set_len(0)?;
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if files::is_of_results(&entry.file_name().to_string_lossy()) {
                fs::remove_file(entry.path())?;
            }
        }
        for part in [files::RUNS, files::SERIES] {
            match fs::remove_dir_all(folder.join(part)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Takes on the lines that are there.
    fn take(
        &mut self,
        folder: &Path,
        head: &Head,
        found: &Head,
        rest: &str,
    ) -> Result<(), HistoryError> {
        if let Some(why) = head.difference(found) {
            return Err(HistoryError::Another {
                folder: folder.display().to_string(),
                runs: rest.lines().count(),
                why,
            });
        }
        self.runs = latest(rest, &self.path)?;
        Ok(())
    }

    /// The runs in a folder that another command made, of whatever build, if they are of this scenario
    /// as `made` has it for who made them.
    pub(super) fn read(
        folder: &Path,
        scenario: &Scenario,
        made: impl FnOnce(Maker) -> Scenario,
    ) -> Result<Vec<(String, Run)>, HistoryError> {
        let path = folder.join(FILE);
        let (head, lines) = stored(&path)?;
        if head.scenario != scenario.name {
            let (folder, runs) = (folder.display().to_string(), lines.lines().count());
            let why = "of a scenario of another name";
            return Err(HistoryError::Another { folder, runs, why });
        }
        if head.fingerprint != fingerprint(&made(head.maker))? {
            return Err(HistoryError::Changed(folder.display().to_string()));
        }
        let runs = latest(&lines, &path)?.into_iter();
        Ok(runs.map(|((label, _), run)| (label, run)).collect())
    }

    /// The runs in the folder of one part of an experiment, and which part it is.
    pub(super) fn read_part(
        folder: &Path,
        scenario: &Scenario,
        maker: Maker,
    ) -> Result<(Shard, Runs), HistoryError> {
        let path = folder.join(FILE);
        let (found, lines) = stored(&path)?;
        let (of_all, shard) = found.maker.split();
        let not_a_part = |why| HistoryError::NotAPart {
            folder: folder.display().to_string(),
            why,
        };
        if found.scenario != scenario.name {
            return Err(not_a_part("it is of a scenario of another name"));
        }
        let found = Head {
            maker: of_all,
            ..found
        };
        if let Some(why) = head(scenario, maker)?.difference(&found) {
            return Err(not_a_part(why));
        }
        let shard = shard.ok_or_else(|| not_a_part("it was made without --shard"))?;
        Ok((shard, latest(&lines, &path)?))
    }

    /// Whether a run was made that need not be made again, with so many retries of one that is not to be
    /// trusted.
    pub(super) fn is_done(&self, case: &Case, repeat: u32, retries: u32) -> bool {
        let row = self.row(case, repeat);
        row.is_some_and(|row| is_enough(row, retries))
    }

    /// The row of the latest run.
    pub(super) fn row(&self, case: &Case, repeat: u32) -> Option<&Row> {
        let run = self.runs.get(&(case.label().to_owned(), repeat));
        run.map(|run| &run.row)
    }

    /// The number of the next run.
    pub(super) fn next_run(&self) -> u32 {
        let last = self.runs.values().map(|run| run.row.run).max();
        last.unwrap_or(0) + 1
    }

    /// The runs of these cases, in their order and by repeat.
    pub(super) fn runs_of(&self, cases: &[&Case]) -> Vec<Run> {
        let of = |case: &&Case| {
            let label = case.label().to_owned();
            self.runs.range((label.clone(), 0)..=(label, u32::MAX))
        };
        let runs = cases.iter().flat_map(of);
        runs.map(|(_, run)| run.clone()).collect()
    }

    /// All runs.
    pub(super) fn runs(&self) -> &Runs {
        &self.runs
    }

    /// Adds a run; it is on the disk when this returns.
    pub(super) fn add(&mut self, case: &Case, repeat: u32, run: Run) -> Result<(), WriteError> {
        self.add_all(vec![((case.label().to_owned(), repeat), run)])
    }

    /// Adds runs in this order; they are on the disk when this returns.
    pub(super) fn add_all(&mut self, runs: Vec<((String, u32), Run)>) -> Result<(), WriteError> {
        let entries = runs
            .into_iter()
            .map(|((label, repeat), run)| Entry { label, repeat, run });
        let entries: Vec<Entry> = entries.collect();
        self.append(&entries)?;
        let runs = entries
            .into_iter()
            .map(|Entry { label, repeat, run }| ((label, repeat), run));
        self.runs.extend(runs);
        Ok(())
    }

    /// All of the lines or nothing of them.
    fn append(&mut self, lines: &[impl Serialize]) -> Result<(), WriteError> {
        let mut bytes = vec![];
        for line in lines {
            serde_json::to_writer(&mut bytes, line).expect("plain values are JSON");
            bytes.push(b'\n');
        }
        let written = self
            .file
            .set_len(self.length_bytes)
            .and_then(|()| self.file.seek(SeekFrom::End(0)))
            .and_then(|_| self.file.write_all(&bytes))
            .and_then(|()| self.file.sync_data());
        if written.is_err() {
            // What is left of the lines is cut off at the latest when the file is read again.
            let _ = self.file.set_len(self.length_bytes);
        } else {
            self.length_bytes += bytes.len() as u64;
        }
        written.map_err(WriteError::at(&self.path))
    }
}

/// The first line of a history, and the lines of its runs.
fn stored(path: &Path) -> Result<(Head, String), HistoryError> {
    let bytes = fs::read(path).map_err(WriteError::at(path))?;
    let text = whole_lines(bytes).ok_or_else(|| foreign(path))?;
    let (first, rest) = text.split_once('\n').ok_or_else(|| foreign(path))?;
    Ok((parsed(first, path)?, rest.to_owned()))
}

/// A last line without its end was being written when the machine or fatpath went; it may have been cut
/// within a character.
fn whole_lines(mut bytes: Vec<u8>) -> Option<String> {
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    bytes.truncate(end.map_or(0, |end| end + 1));
    String::from_utf8(bytes).ok()
}

fn latest(lines: &str, path: &Path) -> Result<Runs, HistoryError> {
    let entries = lines.lines().map(|line| parsed::<Entry>(line, path));
    entries
        .map(|entry| entry.map(|Entry { label, repeat, run }| ((label, repeat), run)))
        .collect()
}

fn parsed<T: DeserializeOwned>(line: &str, path: &Path) -> Result<T, HistoryError> {
    serde_json::from_str(line).map_err(|_| foreign(path))
}

fn foreign(path: &Path) -> HistoryError {
    HistoryError::Foreign(path.display().to_string())
}

fn head(scenario: &Scenario, maker: Maker) -> Result<Head, WriteError> {
    Ok(Head {
        fatpath: build().to_owned(),
        scenario: scenario.name.clone(),
        maker,
        fingerprint: fingerprint(scenario)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::examples::{failed, run};

    struct Folder(PathBuf);

    impl Folder {
        fn new(test: &str) -> Folder {
            let name = format!("fatpath-history-{test}-{}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            fs::create_dir_all(&folder).unwrap();
            Folder(folder)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn scenario(text: &str) -> Scenario {
        let text = format!("name = \"x\"\n[hosts.a]\n[hosts.b]\n{text}");
        Scenario::parse("x.toml", &text).unwrap()
    }

    #[test]
    fn finished_runs_are_known_again_and_a_torn_line_is_not() {
        let folder = Folder::new("torn");
        let scenario = scenario("");
        let case = &scenario.cases[0];
        let mut history = History::open(&folder.0, &scenario, Maker::Lab, false).unwrap();
        history
            .add(case, 1, run("default", "default", 1e6))
            .unwrap();
        history
            .add(case, 2, failed("default", "default", "l’erreur"))
            .unwrap();
        drop(history);
        let path = folder.0.join("history.jsonl");
        let whole = fs::read(&path).unwrap();
        for torn in 0..whole.len() {
            fs::write(&path, &whole[..torn]).unwrap();
            let history = History::open(&folder.0, &scenario, Maker::Lab, false).unwrap();
            assert!(!history.is_done(case, 2, 0), "one that failed is not done");
            let lines = whole[..torn].iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(history.is_done(case, 1, 0), lines >= 2, "{torn}");
        }
        fs::write(&path, &whole).unwrap();
        let mut history = History::open(&folder.0, &scenario, Maker::Lab, false).unwrap();
        assert_eq!(history.runs_of(&[case]).len(), 2);
        history
            .add(case, 2, run("default", "default", 2e6))
            .unwrap();
        assert_eq!(history.runs_of(&[case])[1].row.goodput_mbps, Some(2.0));
        drop(history);
        assert!(
            History::open(&folder.0, &scenario, Maker::Lab, false)
                .unwrap()
                .is_done(case, 2, 0)
        );
    }

    #[test]
    fn a_run_that_is_not_to_be_trusted_is_done_when_it_was_made_again_so_often() {
        let folder = Folder::new("retries");
        let scenario = scenario("");
        let case = &scenario.cases[0];
        let mut history = History::open(&folder.0, &scenario, Maker::Lab, false).unwrap();
        let mut late = run("default", "default", 1e6);
        late.row.trusted = Some(false);
        history.add(case, 1, late.clone()).unwrap();
        let done = |history: &History| [0, 1, 2].map(|most| history.is_done(case, 1, most));
        assert_eq!(done(&history), [true, false, false]);
        late.row.attempts = Some(2);
        history.add(case, 1, late.clone()).unwrap();
        assert_eq!(done(&history), [true, true, false]);
        late.row.trusted = Some(true);
        history.add(case, 1, late).unwrap();
        assert_eq!(done(&history), [true; 3]);
    }

    #[test]
    fn another_experiment_is_refused_unless_fresh() {
        let folder = Folder::new("other");
        let (one, two) = (scenario("# a"), scenario("[[path]]\nname = \"new\""));
        let mut history = History::open(&folder.0, &one, Maker::Lab, false).unwrap();
        let case = &one.cases[0];
        history
            .add(case, 1, run("default", "default", 1e6))
            .unwrap();
        let locked = History::open(&folder.0, &one, Maker::Lab, false);
        assert!(matches!(locked, Err(HistoryError::Locked(_))));
        drop(history);
        assert!(History::open(&folder.0, &scenario("# b"), Maker::Lab, false).is_ok());
        let refused = History::open(&folder.0, &two, Maker::Lab, false)
            .unwrap_err()
            .to_string();
        assert!(
            refused.contains("holds 1 runs") && refused.contains("--fresh"),
            "{refused}"
        );
        let [sweep, own] = ["sweep-loss.png", "notes.png"].map(|name| folder.0.join(name));
        fs::write(&sweep, "old").unwrap();
        fs::write(&own, "mine").unwrap();
        let history = History::open(&folder.0, &two, Maker::Lab, true).unwrap();
        assert!(!history.is_done(case, 1, 0));
        assert!(!sweep.exists() && own.exists());
    }

    #[test]
    fn what_fatpath_did_not_write_is_left_alone() {
        let folder = Folder::new("foreign");
        fs::write(folder.0.join("history.jsonl"), "my own notes\n").unwrap();
        for fresh in [false, true] {
            let refused = History::open(&folder.0, &scenario(""), Maker::Lab, fresh);
            assert!(matches!(refused, Err(HistoryError::Foreign(_))));
        }
        let text = fs::read_to_string(folder.0.join("history.jsonl")).unwrap();
        assert_eq!(text, "my own notes\n");
    }
}
