// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--exclude` and `--include`: which paths are left out.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What is left out, and what is not though it is among that.
#[derive(Clone, Debug)]
pub struct Patterns {
    exclude: GlobSet,
    include: GlobSet,
}

/// A text is no pattern.
#[derive(Debug, thiserror::Error)]
#[error("{text} is no pattern")]
pub struct BadPattern {
    text: String,
    #[source]
    why: globset::Error,
}

impl Patterns {
    /// A pattern fits the end of a path, from a name on; with `/` at its front, all of the path.
    ///
    /// # Errors
    /// One is none.
    pub fn new(exclude: &[String], include: &[String]) -> Result<Patterns, BadPattern> {
        let (exclude, include) = (set(exclude)?, set(include)?);
        Ok(Patterns { exclude, include })
    }

    /// This path is left out, and with it what is below.
    pub fn leave_out(&self, path: &[u8]) -> bool {
        let path = Path::new(OsStr::from_bytes(path));
        self.exclude.is_match(path) && !self.include.is_match(path)
    }
}

fn set(texts: &[String]) -> Result<GlobSet, BadPattern> {
    let bad = |text: &str| {
        let text = text.to_owned();
        |why| BadPattern { text, why }
    };
    let mut set = GlobSetBuilder::new();
    for text in texts {
        let pattern = match text.strip_prefix('/') {
            Some(whole) => whole.to_owned(),
            None => format!("**/{text}"),
        };
        let glob = GlobBuilder::new(pattern.trim_end_matches('/'))
            .literal_separator(true)
            .build();
        set.add(glob.map_err(bad(text))?);
    }
    set.build().map_err(bad(&texts.join(", ")))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests {
    use super::*;

    #[test]
    fn what_is_excluded_is_left_out_unless_it_is_included() {
        let texts = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| (*text).to_owned())
                .collect::<Vec<_>>()
        };
        let exclude = texts(&["*.o", "tmp/", "/top/z"]);
        let patterns = Patterns::new(&exclude, &texts(&["a/keep.o"])).unwrap();
        for path in ["x.o", "top/a/x.o", "top/tmp", "top/z"] {
            assert!(patterns.leave_out(path.as_bytes()), "{path}");
        }
        for path in ["top/a/keep.o", "top/z/y", "other/top/z", "top/o"] {
            assert!(!patterns.leave_out(path.as_bytes()), "{path}");
        }
        let why = Patterns::new(&texts(&["[a"]), &[]).unwrap_err().to_string();
        assert_eq!(why, "[a is no pattern");
    }
}
