// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a lab has changed on this machine, written down before each change, so that whoever comes
//! after a crash can put it back.
//!
//! The decisions are pure: what to note ([`claim`]), what to undo and in which order ([`to_undo`]),
//! whether a setting is still ours ([`restored`]). [`Journal`] only appends lines to a file. It
//! undoes nothing itself; that is [`crate::undo`].

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// One change of the machine that outlives the process that made it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "kebab-case")]
pub enum Change {
    /// A sysctl that is one for the whole machine.
    Sysctl {
        /// Such as `net.core.rmem_max`.
        name: String,
        /// Before any lab touched it.
        old: String,
        /// What the labs set.
        ours: String,
    },
    /// A network namespace, by its name under /run/netns.
    Namespace {
        /// The name.
        name: String,
    },
    /// A cgroup-2 folder in which the lab's programs run.
    Cgroup {
        /// The folder.
        path: PathBuf,
    },
    /// What `fatpath daemon` loads and pins.
    Daemon {
        /// The program whose `unload` removes it; any other fatpath's if it is gone.
        program: PathBuf,
        /// The daemon's `--run-dir`.
        run_dir: PathBuf,
        /// The daemon's `--pin-dir`.
        pin_dir: PathBuf,
    },
    /// A process that was started outside the cgroup.
    Process {
        /// Its id.
        pid: u32,
        /// When it began, in clock ticks since boot (field 22 of /proc/PID/stat): a later process
        /// with the same id is another one.
        start_ticks: u64,
    },
}

/// A machine-wide setting that another lab holds and that has another value than the labs set.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{name} is {current}, but a lab that is up set it to {ours}: it is one for the whole machine, and \
     something (that lab's daemon?) changed it. Take that lab down first: fatpath lab list"
)]
pub struct Contested {
    name: String,
    current: String,
    ours: String,
}

/// What to note before setting a machine-wide sysctl to `wanted`; `None` if there is nothing to do.
/// `others` are the changes of all other labs: while one of them holds the setting, the value to put
/// back is the one that it remembers.
///
/// # Errors
/// [`Contested`] if another lab holds it and it has not the wanted value.
pub fn claim(
    name: &str,
    current: &str,
    wanted: &str,
    others: &[Change],
) -> Result<Option<Change>, Contested> {
    let change = |old: &str| Change::Sysctl {
        name: name.to_owned(),
        old: old.to_owned(),
        ours: wanted.to_owned(),
    };
    let held = others.iter().find_map(|other| match other {
        Change::Sysctl {
            name: held, old, ..
        } if held == name => Some(old),
        _ => None,
    });
    match held {
        None if current == wanted => Ok(None),
        None => Ok(Some(change(current))),
        Some(old) if current == wanted => Ok(Some(change(old))),
        Some(_) => Err(Contested {
            name: name.to_owned(),
            current: current.to_owned(),
            ours: wanted.to_owned(),
        }),
    }
}

/// The changes to undo, last first, without the settings that another lab still holds.
pub fn to_undo<'c>(changes: &'c [Change], others: &[Change]) -> Vec<&'c Change> {
    changes
        .iter()
        .rev()
        .filter(|change| !held_by(change, others))
        .collect()
}

fn held_by(change: &Change, others: &[Change]) -> bool {
    let Change::Sysctl { name, .. } = change else {
        return false;
    };
    others
        .iter()
        .any(|other| matches!(other, Change::Sysctl { name: held, .. } if held == name))
}

/// The value to put back: none if somebody has changed the setting since.
pub fn restored<'v>(current: &str, old: &'v str, ours: &str) -> Option<&'v str> {
    (current == ours).then_some(old)
}

/// The file in which a lab notes its changes, a JSON line each.
#[derive(Debug)]
pub struct Journal {
    file: File,
}

impl Journal {
    /// Appends to `file`, which must be opened for appending.
    pub fn new(file: File) -> Journal {
        Journal { file }
    }

    /// Notes a change that is about to be made. It is on its way to the disk when this returns; a
    /// crash of the process cannot lose it (one of the machine takes the change with it).
    ///
    /// # Errors
    /// If the line cannot be written; the change must not be made then.
    pub fn note(&mut self, change: &Change) -> io::Result<()> {
        let mut line = serde_json::to_string(change)?;
        line.push('\n');
        self.file.write_all(line.as_bytes())
    }
}

/// The changes in a journal's text. A last line without its end was never acted on, so it is left
/// out; so is a line that is no change.
pub fn read(text: &str) -> Vec<Change> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const NAMES: [&str; 2] = ["net.core.rmem_max", "net.core.wmem_max"];

    fn change() -> impl Strategy<Value = Change> {
        prop_oneof![
            (0..2usize, "[0-9]{1,6}", "[0-9]{1,6}").prop_map(|(n, old, ours)| Change::Sysctl {
                name: NAMES[n].into(),
                old,
                ours
            }),
            "[a-z]{1,5}".prop_map(|name| Change::Namespace { name }),
            "/[a-z]{1,5}".prop_map(|path| Change::Cgroup { path: path.into() }),
            (any::<u32>(), any::<u64>())
                .prop_map(|(pid, start_ticks)| Change::Process { pid, start_ticks }),
        ]
    }

    /// Two labs come and go in any order while an outsider may set the sysctl.
    #[derive(Clone, Debug)]
    enum Step {
        Up(usize),
        Down(usize),
        Outsider(String),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0..2usize).prop_map(Step::Up),
            4 => (0..2usize).prop_map(Step::Down),
            1 => "[1-9]".prop_map(Step::Outsider),
        ]
    }

    fn down(lab: usize, journals: &mut BTreeMap<usize, Vec<Change>>, value: &mut String) {
        let Some(changes) = journals.remove(&lab) else {
            return;
        };
        let others: Vec<Change> = journals.values().flatten().cloned().collect();
        for undo in to_undo(&changes, &others) {
            if let Change::Sysctl { old, ours, .. } = undo {
                *value = restored(value, old, ours).unwrap_or(value).to_owned();
            }
        }
    }

    proptest! {
        #[test]
        fn undoing_is_the_reverse_of_doing(changes in prop::collection::vec(change(), 0..20)) {
            let mut undone = to_undo(&changes, &[]);
            undone.reverse();
            prop_assert_eq!(undone, changes.iter().collect::<Vec<_>>());
        }

        #[test]
        fn what_was_noted_is_read_back_up_to_a_torn_line(
            changes in prop::collection::vec(change(), 0..20), torn in 0usize..200
        ) {
            let lines: Vec<String> =
                changes.iter().map(|c| serde_json::to_string(c).unwrap() + "\n").collect();
            let text = lines.concat();
            prop_assert_eq!(&read(&text), &changes);
            let cut = text.len().saturating_sub(torn);
            let kept = read(&text[..cut]);
            prop_assert_eq!(&kept[..], &changes[..kept.len()]);
        }

        #[test]
        fn after_all_labs_the_setting_is_as_it_was_or_as_an_outsider_set_it(
            steps in prop::collection::vec(step(), 0..30)
        ) {
            let mut value = "10".to_owned();
            let mut expected = value.clone();
            let mut journals: BTreeMap<usize, Vec<Change>> = BTreeMap::new();
            for step in steps {
                match step {
                    Step::Up(lab) if !journals.contains_key(&lab) => {
                        let others: Vec<Change> = journals.values().flatten().cloned().collect();
                        if let Ok(change) = claim(NAMES[0], &value, "20", &others) {
                            if change.is_some() { value = "20".to_owned(); }
                            journals.insert(lab, change.into_iter().collect());
                        }
                    }
                    Step::Up(_) => {}
                    Step::Down(lab) => down(lab, &mut journals, &mut value),
                    Step::Outsider(set) => { value = set.clone(); expected = set; }
                }
            }
            down(0, &mut journals, &mut value);
            down(1, &mut journals, &mut value);
            prop_assert_eq!(value, expected);
        }
    }

    #[test]
    fn a_setting_held_by_another_lab_with_another_value_is_refused() {
        let other = Change::Sysctl {
            name: NAMES[0].into(),
            old: "10".into(),
            ours: "20".into(),
        };
        assert!(claim(NAMES[0], "99", "20", &[other]).is_err());
    }
}
