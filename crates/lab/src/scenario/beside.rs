// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files that a scenario names: policies and traces, relative to its own folder.
//!
//! The only part of a scenario's reading that touches the disk. Start with [`Beside`].

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The largest trace; mahimahi's own are smaller.
const MOST_TRACE_BYTES: u64 = 16 << 20;

/// Delivery times in milliseconds, or what is wrong with the file.
type Trace = Result<Rc<[u64]>, String>;

/// Where named files are looked for.
pub(super) enum Beside {
    /// Nowhere: policies keep the names they have, and traces are refused.
    Nowhere,
    /// In a folder.
    Folder(Folder),
}

/// A folder, with what has been read from it: a thousand cases name the same trace.
pub(super) struct Folder {
    path: PathBuf,
    traces: RefCell<HashMap<String, Trace>>,
}

impl Beside {
    /// The folder of a scenario file.
    pub(super) fn of(file: &Path) -> Beside {
        Beside::Folder(Folder {
            path: file.parent().unwrap_or(Path::new(".")).to_owned(),
            traces: RefCell::default(),
        })
    }

    /// The absolute path of a file that must be there.
    pub(super) fn existing(&self, name: &str) -> Result<PathBuf, String> {
        match self {
            Beside::Nowhere => Ok(PathBuf::from(name)),
            Beside::Folder(folder) => {
                let found = folder.path.join(name);
                found
                    .canonicalize()
                    .map_err(|error| format!("{}: {error}", found.display()))
            }
        }
    }

    /// The delivery times of a trace in mahimahi's format, in milliseconds.
    pub(super) fn trace(&self, name: &str) -> Trace {
        match self {
            Beside::Nowhere => Err("a trace is a file, and no files are read here".to_owned()),
            Beside::Folder(folder) => {
                let mut traces = folder.traces.borrow_mut();
                let read = || read_trace(&folder.path.join(name));
                traces.entry(name.to_owned()).or_insert_with(read).clone()
            }
        }
    }
}

fn read_trace(file: &Path) -> Trace {
    let failed = |error: std::io::Error| format!("{}: {error}", file.display());
    let length = std::fs::metadata(file).map_err(failed)?.len();
    if length > MOST_TRACE_BYTES {
        return Err(format!("{}: is larger than 16 MiB", file.display()));
    }
    let text = std::fs::read_to_string(file).map_err(failed)?;
    trace(&text).map_err(|wrong| format!("{}:{wrong}", file.display()))
}

/// One number a line, in milliseconds, not falling, the last at least 1.
fn trace(text: &str) -> Trace {
    const ALLOWED: &str = "a whole number of milliseconds, not less than the one before, at most \
                           86400000";
    let mut at_ms: Vec<u64> = vec![];
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        let least = at_ms.last().copied().unwrap_or(0);
        let number = line.parse().ok();
        match number.filter(|number| (least..=86_400_000).contains(number)) {
            Some(number) => at_ms.push(number),
            None => return Err(format!("{}: \"{line:.40}\" is not {ALLOWED}", index + 1)),
        }
    }
    match at_ms.last() {
        Some(1..) => Ok(at_ms.into()),
        _ => Err("1: the trace has no time after 0 ms, which would be its period".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_a_rising_list_of_milliseconds() {
        assert_eq!(*trace("0\n0\n3\n\n7\n").unwrap(), [0, 0, 3, 7]);
    }

    #[test]
    fn a_wrong_trace_is_told_with_its_line() {
        for (text, line) in [
            ("", "1"),
            ("0\n0", "1"),
            ("1\n2x", "2"),
            ("5\n4", "2"),
            ("-1", "1"),
        ] {
            let wrong = trace(text).unwrap_err();
            assert!(wrong.starts_with(&format!("{line}: ")), "{text:?}: {wrong}");
        }
    }
}
