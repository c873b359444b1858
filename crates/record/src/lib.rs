// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables on disk, as Parquet: samples of flows, which the tracer daemon of the WAD wrote, and the connections of a
//! capture, for today's readers.
//!
//! A [`Recorder`] takes samples and keeps a folder of finished files within bounds; a crash of the host or
//! of the program costs what was taken since the last row group. [`read`] gives a file's flows back as
//! series of points. The crate asks nobody for samples, knows no clock, and draws nothing. Start at
//! [`Recorder`], at [`CapturedFile`] for connections, or at [`EventFile`] for archived events; [`Table::COLUMNS`] is what a row has.

mod captured;
mod captured_file;
mod column;
mod columns;
mod encode;
mod events;
mod part;
mod read;
mod recorder;

pub use captured::CapturedRow;
pub use captured_file::CapturedFile;
pub use column::{Column, Table};
pub use events::EventFile;
pub use part::{Recovered, recover};
pub use read::{Traced, read};
pub use recorder::{Bounds, Recorded, Recorder, dated};

use fatpath_api::Sample;

/// A sample, and when it was made.
#[derive(Clone, Debug)]
pub struct Row {
    /// Microseconds since 1970, by the clock of the host.
    pub time_us: i64,
    /// What the kernel said.
    pub sample: Sample,
}

/// Why there is no trace.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Of a file or the folder.
    #[error("{0}")]
    File(String, #[source] std::io::Error),
    /// The file is no trace, or a damaged one.
    #[error("{0}")]
    Parquet(String, #[source] parquet::errors::ParquetError),
    /// A Parquet file of somebody else.
    #[error("{0}: not a trace of fatpath: it has no column {1}")]
    NoColumn(String, &'static str),
}

impl RecordError {
    /// The whole of it in one line.
    fn with_source(&self) -> String {
        match std::error::Error::source(self) {
            Some(source) => format!("{self}: {source}"),
            None => self.to_string(),
        }
    }
}
