// SPDX-License-Identifier: MIT OR Apache-2.0
//! The last lines of a program's output, for messages.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Enough to see what went wrong, short enough to read.
const LINES: usize = 8;
const MOST_BYTES: i64 = 4096;

/// The last lines of a file, indented; empty if there are none or it cannot be read.
pub fn of_file(file: &Path) -> String {
    File::open(file).map_or(String::new(), |mut file| of(&mut file))
}

/// The same of an open file.
pub fn of(file: &mut File) -> String {
    let mut read = || {
        let length = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::End(-MOST_BYTES.min(length as i64)))?;
        let mut bytes = vec![];
        file.read_to_end(&mut bytes)?;
        Ok::<_, std::io::Error>(bytes)
    };
    read().map_or(String::new(), |bytes| {
        of_text(&String::from_utf8_lossy(&bytes))
    })
}

fn of_text(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let last = &lines[lines.len().saturating_sub(LINES)..];
    last.iter()
        .map(|line| format!("    {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_lines_are_kept() {
        let text: String = (0..20).map(|n| format!("line {n}\n\n")).collect();
        let tail = of_text(&text);
        assert_eq!(tail.lines().count(), LINES);
        assert!(tail.ends_with("    line 19"));
        assert_eq!(of_text(""), "");
    }
}
