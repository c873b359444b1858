// SPDX-License-Identifier: MIT OR Apache-2.0
//! Observations: what the emulator has recorded of each link in each millisecond, as figures, CSV
//! and plots.
//!
//! It reads files and writes some; the format is `fatpath-observation`'s. A file that was cut short
//! by a crash is read up to there. Start with [`figures`] (for a run) and [`command`] (for people).

pub mod command;
mod csv;

use std::cell::Cell;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::time::Duration;

use fatpath_link::Count;
use fatpath_observation::{
    DirectionFigures, DirectionName, Header, ReadError, Record, Records, Selection, Totals, read,
};

use fatpath_scenario::limit::Limit;

/// A stretch of time, nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its begin.
    pub from_unix_ns: u64,
    /// Its end.
    pub until_unix_ns: u64,
}

impl Window {
    /// From its begin to its end.
    pub fn duration(&self) -> Duration {
        Duration::from_nanos(self.until_unix_ns.saturating_sub(self.from_unix_ns))
    }
}

/// The figures of each direction during a window, and whether the file was whole. `limit` knows by its
/// name what limits a direction.
///
/// # Errors
/// If the file cannot be read.
pub fn figures(
    file: &Path,
    window: Window,
    limit: impl Fn(&DirectionName) -> Limit,
) -> Result<(Vec<DirectionFigures>, bool), ReadError> {
    let observation = Observation::open(file)?;
    let begun = observation.header.begun_unix_ns;
    let selection = Selection {
        from_ns: Some(window.from_unix_ns.saturating_sub(begun)),
        until_ns: Some(window.until_unix_ns.saturating_sub(begun)),
        ..Selection::default()
    };
    let (from_ns, until_ns) = selection.span_ns(&observation.header, (0, 0));
    let duration_s = until_ns.saturating_sub(from_ns).max(1) as f64 / 1e9;
    let (totals, is_whole) = observation.totals(&selection)?;
    let utilisation = |name: &DirectionName, left: Count| limit(name).utilisation(left, duration_s);
    Ok((totals.figures(duration_s, utilisation), is_whole))
}

/// A file that is being read.
struct Observation {
    header: Header,
    records: Records<BufReader<File>>,
}

impl Observation {
    fn open(file: &Path) -> Result<Observation, ReadError> {
        let (header, records) = read(BufReader::new(File::open(file)?))?;
        Ok(Observation { header, records })
    }

    /// The sums of what is selected; false if the file was cut short.
    fn totals(self, selection: &Selection) -> Result<(Totals, bool), ReadError> {
        let mut totals = Totals::new(&self.header);
        let is_cut = Cell::new(false);
        for record in up_to_cut(self.records, &is_cut) {
            let record = record?;
            totals.add(&record, selection.takes(&self.header, &record));
        }
        Ok((totals, !is_cut.get()))
    }
}

/// The records up to where a file was cut short, which is noted instead of being an error.
fn up_to_cut(
    records: impl Iterator<Item = Result<Record, ReadError>>,
    is_cut: &Cell<bool>,
) -> impl Iterator<Item = Result<Record, ReadError>> {
    records.take_while(|record| {
        is_cut.set(matches!(record, Err(ReadError::Cut)));
        !is_cut.get()
    })
}
