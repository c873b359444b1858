// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files of the results, each written under another name and renamed: a full disk leaves the
//! earlier ones whole.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fatpath_plot::Format;
use thiserror::Error;

use super::Row;
use super::csv::{rows_csv, summary_csv};
use super::summary::Summary;

/// A file of the results that could not be written. What it held before is still there.
#[derive(Debug, Error)]
#[error("{file}: {error}{}", remedy(error))]
pub struct WriteError {
    /// The file or folder.
    pub file: String,
    /// The system's reason.
    pub error: io::Error,
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; the results so far are kept: free some disk space and start the same command again, which \
             continues where it stopped"
        }
        _ => "",
    }
}

impl WriteError {
    /// For `map_err`.
    pub fn at(file: &Path) -> impl FnOnce(io::Error) -> WriteError {
        let file = file.display().to_string();
        move |error| WriteError { file, error }
    }
}

/// The tables' files.
const TABLES: [&str; 4] = ["results.json", "results.csv", "summary.json", "summary.csv"];
/// The name of the plot of throughput over time, without its ending.
pub const THROUGHPUT: &str = "throughput";
/// The name of the plot of congestion windows over time, likewise.
pub const WINDOWS: &str = "cwnd";
/// The folder of what programs wrote.
pub const RUNS: &str = "runs";
/// The folder of the simulator's series.
pub const SERIES: &str = "series";
/// What the names of the plots of sweeps begin with.
pub const SWEEP: &str = "sweep-";

/// Whether a file of this name, in the folder of the results, is one of the tables and plots of all
/// runs.
pub fn is_of_results(name: &str) -> bool {
    let is_plot = |stem: &str| stem == THROUGHPUT || stem == WINDOWS || stem.starts_with(SWEEP);
    let stem = |ending: &Format| name.strip_suffix(ending.ending())?.strip_suffix('.');
    TABLES.contains(&name) || Format::ALL.iter().filter_map(stem).any(is_plot)
}

/// Writes `results.json`, `results.csv`, `summary.json` and `summary.csv`; returns the first.
///
/// # Errors
/// The first file that could not be written.
pub fn write_tables(
    out: &Path,
    rows: &[Row],
    summaries: &[Summary],
) -> Result<PathBuf, WriteError> {
    let json = |text: serde_json::Result<String>| text.expect("rows are plain values") + "\n";
    let [results, results_csv, summary, of_summary_csv] = TABLES.map(|name| out.join(name));
    write(&results, json(serde_json::to_string_pretty(rows)))?;
    write(&results_csv, rows_csv(rows))?;
    write(&summary, json(serde_json::to_string_pretty(summaries)))?;
    write(&of_summary_csv, summary_csv(summaries))?;
    Ok(results)
}

/// Replaces a file's content, or leaves it as it was.
///
/// # Errors
/// If it could not be written.
pub fn write(file: &Path, content: impl AsRef<[u8]>) -> Result<(), WriteError> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let new_file = file.with_file_name(format!(".{name}"));
    let written = File::create(&new_file).and_then(|mut new| {
        new.write_all(content.as_ref())?;
        // Some file systems find out only now that the disk is full.
        new.sync_data()?;
        fs::rename(&new_file, file)
    });
    written.map_err(|error| {
        // Half a file only takes room.
        let _ = fs::remove_file(&new_file);
        WriteError::at(file)(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_written_leaves_the_old_file_and_no_other_file() {
        let folder = std::env::temp_dir().join(format!("fatpath-files-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("results.json");
        write(&file, "old").unwrap();
        // A folder where the new file would be prepared.
        fs::create_dir(folder.join(".results.json")).unwrap();
        assert!(write(&file, "new").is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "old");
        fs::remove_dir(folder.join(".results.json")).unwrap();
        write(&file, "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }
}
