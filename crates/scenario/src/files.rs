// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files that a scenario names: policies and traces.
//!
//! Pure: whoever loads a scenario reads its files, by [`Files`]. Start with [`NamedFiles`].

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;

/// The largest trace; mahimahi's own are smaller.
const MOST_TRACE_BYTES: u64 = 16 << 20;

/// Delivery times in milliseconds, or what is wrong with the file.
type Trace = Result<Rc<[u64]>, String>;

/// Where a scenario's files are looked for.
pub trait Files {
    /// The absolute path of a file that must exist.
    ///
    /// # Errors
    /// Its path, and why it cannot be used.
    fn existing(&self, name: &str) -> Result<PathBuf, String>;

    /// The text of a file of at most so many bytes.
    ///
    /// # Errors
    /// Its path, and why it cannot be read.
    fn text(&self, name: &str, most_bytes: u64) -> Result<NamedText, String>;
}

/// The text of a file, and its path for messages.
#[derive(Clone, Debug)]
pub struct NamedText {
    /// For messages.
    pub path: String,
    /// All of it.
    pub text: String,
}

/// No files: policies keep the names they have, and traces are refused.
#[derive(Clone, Copy, Debug)]
pub struct NoFiles;

impl Files for NoFiles {
    fn existing(&self, name: &str) -> Result<PathBuf, String> {
        Ok(PathBuf::from(name))
    }

    fn text(&self, _: &str, _: u64) -> Result<NamedText, String> {
        Err("a trace is a file, and no files are read here".to_owned())
    }
}

/// Files, with what has been read of them: a thousand cases name the same trace.
pub(super) struct NamedFiles<'f> {
    files: &'f dyn Files,
    traces: RefCell<HashMap<String, Trace>>,
}

impl<'f> NamedFiles<'f> {
    pub(super) fn of(files: &'f dyn Files) -> NamedFiles<'f> {
        NamedFiles {
            files,
            traces: RefCell::default(),
        }
    }

    /// The absolute path of a file that must exist.
    pub(super) fn existing(&self, name: &str) -> Result<PathBuf, String> {
        self.files.existing(name)
    }

    /// The delivery times of a trace in mahimahi's format, in milliseconds.
    pub(super) fn trace(&self, name: &str) -> Trace {
        let mut traces = self.traces.borrow_mut();
        let read = || {
            let NamedText { path, text } = self.files.text(name, MOST_TRACE_BYTES)?;
            trace(&text).map_err(|wrong| format!("{path}:{wrong}"))
        };
        traces.entry(name.to_owned()).or_insert_with(read).clone()
    }
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
