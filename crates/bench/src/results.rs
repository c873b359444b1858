// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file of results: an array, one row a figure. A figure that is measured again
//! replaces its own row and no other.

use crate::figure::Better;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// One figure as measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The figure's name.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// Unit of value and samples.
    pub unit: String,
    /// Which way is good.
    pub better: Better,
    /// What the value was made of.
    pub samples: Vec<f64>,
}

/// The rows of one file.
pub struct Results {
    path: PathBuf,
    rows: Vec<Row>,
}

impl Results {
    /// Reads the rows that are there; a file that is not there has none.
    pub fn open(path: &Path) -> Result<Results> {
        let rows = match std::fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).with_context(|| {
                format!(
                    "{} holds no results: move it away or give --out",
                    path.display()
                )
            })?,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error).context(path.display().to_string()),
        };
        Ok(Results {
            path: path.to_owned(),
            rows,
        })
    }

    /// Puts a row in the place of the figure's old one, or last, and writes the file.
    pub fn replace(&mut self, row: Row) -> Result<()> {
        match self.rows.iter_mut().find(|old| old.name == row.name) {
            Some(old) => *old = row,
            None => self.rows.push(row),
        }
        self.write()
            .with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Beside, then over: a reader never sees half a file.
    fn write(&self) -> std::io::Result<()> {
        if let Some(directory) = self.path.parent() {
            std::fs::create_dir_all(directory)?;
        }
        let new = self.path.with_extension("json.new");
        let mut text = serde_json::to_vec_pretty(&self.rows)?;
        text.push(b'\n');
        std::fs::write(&new, text)?;
        std::fs::rename(&new, &self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, value: f64) -> Row {
        Row {
            name: name.into(),
            value,
            unit: "ratio".into(),
            better: Better::Higher,
            samples: vec![value],
        }
    }

    #[test]
    fn a_figure_replaces_its_own_row_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out/results.json");
        let mut results = Results::open(&path).unwrap();
        for (name, value) in [("a", 1.0), ("b", 2.0)] {
            results.replace(row(name, value)).unwrap();
        }
        Results::open(&path)
            .unwrap()
            .replace(row("a", 3.0))
            .unwrap();
        let rows = Results::open(&path).unwrap().rows;
        assert_eq!(rows, [row("a", 3.0), row("b", 2.0)]);
    }

    #[test]
    fn a_row_has_exactly_the_promised_keys() {
        let json = serde_json::to_value(row("a", 1.0)).unwrap();
        let expected = serde_json::json!({
            "name": "a", "value": 1.0, "unit": "ratio", "better": "higher", "samples": [1.0]
        });
        assert_eq!(json, expected);
    }

    #[test]
    fn a_file_that_holds_something_else_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("results.json");
        std::fs::write(&path, "{}").unwrap();
        assert!(Results::open(&path).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{}");
    }
}
