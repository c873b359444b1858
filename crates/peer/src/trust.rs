// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file of trusted keys: one a line, the key and then a name; lines that begin with `#`, and empty ones, say nothing.

use crate::PublicKey;
use crate::files::{FileError, append, read_trusted};
use std::path::{Path, PathBuf};

/// What a file trusts.
#[derive(Debug, Default)]
pub struct Trusted {
    lines: Vec<(PublicKey, String)>,
}

/// A line that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BadLine {
    /// The file's.
    #[error(transparent)]
    File(#[from] FileError),
    /// A line is no key and name.
    #[error("{path}:{line}: give a key and a name, such as ed25519:AAAA… dtn1", path = .path.display())]
    Line {
        /// Of which file.
        path: PathBuf,
        /// Which, from 1.
        line: usize,
    },
    /// A name has what a line cannot hold.
    #[error("a name is one word without control characters, and does not begin with #")]
    Name,
}

impl Trusted {
    /// Reads a file; one that is not there trusts nobody.
    ///
    /// # Errors
    /// It cannot be read, others may write it, or a line is wrong: then nobody is trusted.
    pub fn read(path: &Path) -> Result<Trusted, BadLine> {
        let text = read_trusted(path)?.unwrap_or_default();
        let lines = text.lines().enumerate();
        let lines = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
        let lines = lines.map(|(number, line)| {
            parse(line).ok_or_else(|| BadLine::Line {
                path: path.to_owned(),
                line: number + 1,
            })
        });
        Ok(Trusted {
            lines: lines.collect::<Result<_, _>>()?,
        })
    }

    /// The name that the file has for a key.
    pub fn name_of(&self, key: &PublicKey) -> Option<&str> {
        let mut lines = self.lines.iter();
        let line = lines.find(|(trusted, _)| trusted == key)?;
        Some(&line.1)
    }

    /// The keys that it has for a name: more than one while a host changes its key.
    pub fn keys_of(&self, name: &str) -> Vec<PublicKey> {
        let lines = self.lines.iter().filter(|(_, named)| named == name);
        lines.map(|(key, _)| *key).collect()
    }

    /// Keys with their names.
    pub fn lines(&self) -> &[(PublicKey, String)] {
        &self.lines
    }
}

fn parse(line: &str) -> Option<(PublicKey, String)> {
    let mut words = line.split_whitespace();
    let (key, name) = (words.next()?, words.next()?);
    words.next().is_none().then_some(())?;
    Some((key.parse().ok()?, name.to_owned()))
}

/// Trusts a key under a name. Says whether that is new.
///
/// # Errors
/// The file cannot be read or written, or the name is none.
pub fn add(path: &Path, key: &PublicKey, name: &str) -> Result<bool, BadLine> {
    let is_word =
        !name.is_empty() && !name.contains(|char: char| char.is_whitespace() || char.is_control());
    if !is_word || name.starts_with('#') {
        return Err(BadLine::Name);
    }
    if Trusted::read(path)?.keys_of(name).contains(key) {
        return Ok(false);
    }
    append(path, &format!("{key} {name}"))?;
    Ok(true)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests {
    use super::*;
    use crate::Key;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    fn key(folder: &Path, name: &str) -> PublicKey {
        Key::make(&folder.join(name)).unwrap().public()
    }

    #[test]
    fn keys_are_trusted_under_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (key(folder.path(), "1"), key(folder.path(), "2"));
        let path = folder.path().join("trusted");
        assert!(Trusted::read(&path).unwrap().lines().is_empty());
        assert!(add(&path, &first, "dtn1").unwrap());
        assert!(!add(&path, &first, "dtn1").unwrap());
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("# ours\n\n{text}")).unwrap();
        assert!(add(&path, &second, "dtn1").unwrap());
        let trusted = Trusted::read(&path).unwrap();
        assert_eq!(trusted.keys_of("dtn1"), [first, second]);
        assert_eq!(trusted.name_of(&second), Some("dtn1"));
        assert!(trusted.keys_of("dtn2").is_empty());
        for wrong in ["", "a b", "#a", "a\n", "a\x1b"] {
            assert!(add(&path, &second, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_key_is_added_after_a_line_without_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (key(folder.path(), "1"), key(folder.path(), "2"));
        let path = folder.path().join("trusted");
        fs::write(&path, format!("{first} dtn1")).unwrap();
        assert!(add(&path, &second, "dtn2").unwrap());
        let trusted = Trusted::read(&path).unwrap();
        assert_eq!(trusted.keys_of("dtn1"), [first]);
        assert_eq!(trusted.keys_of("dtn2"), [second]);
    }

    #[test]
    fn a_file_that_is_wrong_trusts_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trusted");
        add(&path, &key(folder.path(), "1"), "dtn1").unwrap();
        let good = fs::read_to_string(&path).unwrap();
        for (line, text) in [
            (2, format!("{good}x dtn2\n")),
            (1, good.replace(" dtn1", "")),
        ] {
            fs::write(&path, text).unwrap();
            let error = Trusted::read(&path).unwrap_err().to_string();
            assert!(error.contains(&format!("trusted:{line}:")), "{error}");
        }
        fs::write(&path, good).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o664)).unwrap();
        let error = Trusted::read(&path).unwrap_err().to_string();
        assert!(error.contains("may be written by other users"), "{error}");
    }
}
