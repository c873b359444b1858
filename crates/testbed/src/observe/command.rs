// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath lab observe`: an observation as a summary, CSV or a plot.
//!
//! Without an output of its own it prints the summary. Start with [`Observe::run`].

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use fatpath_experiment::print::{print_json, print_lines};
use fatpath_experiment::results::files;
use fatpath_observation::{
    Bin, DirectionFigures, DirectionName, Header, ReadError, Selection, Totals, bins,
    intervals_per_bin,
};
use fatpath_plot::{self as plot, Format, Observed, ObservedDirection};
use serde::Serialize;

use super::csv::Lines;
use super::{Observation, up_to_cut};

/// So many bins of a direction are drawn; more points are narrower than a pixel, and fill the memory.
const MOST_BINS_DRAWN: u64 = 200_000;

/// Arguments of `lab observe`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Observe {
    /// Observation, such as out/NAME/runs/LABEL.1.observation
    file: PathBuf,
    /// Write a line for each direction and interval; - is standard output
    #[arg(long, value_name = "OUT")]
    csv: Option<PathBuf>,
    /// Draw bandwidth and queue over time; the name ends in .png or .svg
    #[arg(long, value_name = "OUT")]
    plot: Option<PathBuf>,
    /// Length of an interval: 1ms or a multiple of it
    #[arg(long, value_name = "TIME", value_parser = interval_ns)]
    interval: Option<u64>,
    /// Only this link
    #[arg(long, value_name = "NAME")]
    link: Option<String>,
    /// Begin, in seconds since the lab came up
    #[arg(long, value_name = "S", value_parser = seconds)]
    from: Option<u64>,
    /// End, in seconds since the lab came up
    #[arg(long, value_name = "S", value_parser = seconds)]
    to: Option<u64>,
    /// In the CSV, a line for each flow; needs an observation recorded with `observe = { flows = true }`
    #[arg(long, requires = "csv")]
    flows: bool,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  fatpath lab observe out/demo/runs/clean.default.1.observation
  fatpath lab observe FILE --plot burst.svg --link wan --from 2 --to 2.5
  fatpath lab observe FILE --csv - --interval 100ms | head";

/// What `--json` prints.
#[derive(Serialize)]
struct Summary {
    interval_ms: f64,
    begun_unix_s: f64,
    from_s: f64,
    to_s: f64,
    whole: bool,
    directions: Vec<DirectionFigures>,
}

impl Observe {
    /// Does it.
    ///
    /// # Errors
    /// If the file cannot be read, or an output cannot be written.
    pub fn run(&self) -> Result<()> {
        let name = self.file.display().to_string();
        let header = self.open()?.header;
        self.check(&header)?;
        let outputs = self.csv.is_some() || self.plot.is_some();
        if let Some(file) = &self.csv {
            let written = self.write_csv(file).with_context(|| name.clone());
            // `--csv - | head` is no failure.
            written.or_else(|error| {
                if is_closed_pipe(&error) {
                    Ok(())
                } else {
                    Err(error)
                }
            })?;
        }
        if let Some(file) = &self.plot {
            self.draw(file).with_context(|| name.clone())?;
        }
        if self.json || !outputs {
            self.summarise().context(name)?;
        }
        Ok(())
    }

    fn open(&self) -> Result<Observation> {
        Observation::open(&self.file).with_context(|| self.file.display().to_string())
    }

    fn check(&self, header: &Header) -> Result<()> {
        let mut links: Vec<&str> = header.directions.iter().map(|one| &*one.link).collect();
        links.dedup();
        if let Some(link) = &self.link
            && !links.contains(&link.as_str())
        {
            bail!(
                "the observation has no link {link}; its links: {}",
                links.join(", ")
            );
        }
        if self.from.zip(self.to).is_some_and(|(from, to)| from >= to) {
            bail!("--from must be before --to");
        }
        let is_multiple = |length_ns: u64| length_ns.is_multiple_of(header.interval_ns);
        if !self.interval.is_none_or(is_multiple) {
            let length_ms = header.interval_ns as f64 / 1e6;
            bail!("--interval: give a multiple of {length_ms} ms, the observation's own interval");
        }
        if self.flows && !header.per_flow {
            bail!("the observation has no flows; record one with observe = {{ flows = true }}");
        }
        Ok(())
    }

    fn selection(&self) -> Selection {
        Selection {
            link: self.link.clone(),
            from_ns: self.from,
            until_ns: self.to,
            flows: self.flows,
        }
    }

    fn write_csv(&self, file: &Path) -> Result<()> {
        if file == Path::new("-") {
            return self.write_lines(io::stdout().lock());
        }
        let out = File::create(file).with_context(|| file.display().to_string())?;
        self.write_lines(out)
            .with_context(|| file.display().to_string())
    }

    fn write_lines(&self, out: impl Write) -> Result<()> {
        let header = self.open()?.header;
        let bin_s = bin_s(&header, self.interval.unwrap_or(0));
        let mut lines = Lines::new(BufWriter::new(out), &header, bin_s, self.flows)?;
        self.each_bin(self.interval.unwrap_or(0), |bin| Ok(lines.write(bin)?))?;
        Ok(lines.end()?)
    }

    fn draw(&self, file: &Path) -> Result<()> {
        let format = Format::of(file).context("--plot must end in .png or .svg")?;
        let (totals, _) = self.open()?.totals(&self.selection())?;
        let length_ns = self.interval.unwrap_or_else(|| drawable_ns(&totals));
        let header = self.open()?.header;
        let title = self.file.file_name().unwrap_or_default().to_string_lossy();
        let mut observed = Observed {
            title: title.into_owned(),
            bin_s: bin_s(&header, length_ns),
            directions: header.directions.iter().map(empty).collect(),
        };
        self.each_bin(length_ns, |bin| {
            observed.directions[bin.direction].bins.push(bin.clone());
            Ok(())
        })?;
        observed.directions.retain(|one| !one.bins.is_empty());
        Ok(files::write(file, plot::picture(&observed, format)?)?)
    }

    fn each_bin(&self, length_ns: u64, mut take: impl FnMut(&Bin) -> Result<()>) -> Result<()> {
        let Observation { header, records } = self.open()?;
        let is_cut = Cell::new(false);
        let records = up_to_cut(records, &is_cut);
        bins(&header, records, &self.selection(), length_ns, |bin| {
            take(bin).map_err(Stopped::Output)
        })?;
        if is_cut.get() {
            eprintln!(
                "fatpath: {}: warning: {}",
                self.file.display(),
                ReadError::Cut
            );
        }
        Ok(())
    }

    fn summarise(&self) -> Result<()> {
        let observation = self.open()?;
        let header = observation.header.clone();
        let selection = self.selection();
        let (totals, whole) = observation.totals(&selection)?;
        let (from_ns, to_ns) = selection.span_ns(&header, totals.span_ns());
        // Beyond the end nothing is known.
        let to_ns = to_ns.min(totals.end_ns());
        if self.from.is_some() && from_ns >= to_ns {
            bail!(
                "--from: the record ends at {} s",
                totals.end_ns() as f64 / 1e9
            );
        }
        let duration_s = to_ns.saturating_sub(from_ns).max(1) as f64 / 1e9;
        let mut directions = totals.figures(duration_s, |_, _| None);
        directions.retain(|one| self.link.as_ref().is_none_or(|link| *link == one.link));
        let summary = Summary {
            interval_ms: header.interval_ns as f64 / 1e6,
            begun_unix_s: header.begun_unix_ns as f64 / 1e9,
            from_s: from_ns as f64 / 1e9,
            to_s: to_ns as f64 / 1e9,
            whole,
            directions,
        };
        match self.json {
            true => print_json(&summary),
            false => Ok(print_lines(&lines_of(&summary))?),
        }
    }
}

/// Why bins are not read to their end.
#[derive(Debug, thiserror::Error)]
enum Stopped {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("{0}")]
    Output(#[source] anyhow::Error),
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<io::Error>();
        io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}

fn bin_s(header: &Header, length_ns: u64) -> f64 {
    (intervals_per_bin(header, length_ns) * header.interval_ns) as f64 / 1e9
}

/// A length that gives no more bins than are drawn.
fn drawable_ns(totals: &Totals) -> u64 {
    let (from_ns, to_ns) = totals.span_ns();
    (to_ns - from_ns) / MOST_BINS_DRAWN
}

fn empty(name: &DirectionName) -> ObservedDirection {
    ObservedDirection {
        name: format!("{}, {} to {}", name.link, name.from, name.to),
        bins: vec![],
    }
}

fn lines_of(summary: &Summary) -> Vec<String> {
    let (from_s, to_s, ms) = (summary.from_s, summary.to_s, summary.interval_ms);
    let span = format!("from {from_s:.3} s to {to_s:.3} s, intervals of {ms} ms");
    let cut = (!summary.whole).then(|| ReadError::Cut.to_string());
    let directions = summary.directions.iter().map(direction_line);
    std::iter::once(span).chain(directions).chain(cut).collect()
}

fn direction_line(one: &DirectionFigures) -> String {
    let dropped = one.dropped.iter().filter(|(_, count)| **count > 0);
    let dropped: Vec<String> = dropped
        .map(|(cause, count)| format!("{count} ({})", cause.replace('_', " ")))
        .collect();
    let dropped = match dropped.is_empty() {
        true => "none".to_owned(),
        false => dropped.join(", "),
    };
    format!(
        "{}, {} to {}: {:.3} Mb/s; queue {:.0} B in the mean, {} B at most; dropped {dropped}; marked {}",
        one.link,
        one.from,
        one.to,
        one.left_mbps,
        one.mean_queue_bytes,
        one.peak_queue_bytes,
        one.marked
    )
}

fn seconds(text: &str) -> Result<u64, String> {
    let number = text.strip_suffix('s').unwrap_or(text).parse::<f64>();
    match number {
        Ok(s) if (0.0..1e9).contains(&s) => Ok((s * 1e9).round() as u64),
        _ => Err("give seconds, such as 2.5".to_owned()),
    }
}

fn interval_ns(text: &str) -> Result<u64, String> {
    let ns = fatpath_units::time_ns(text).and_then(|ns| u64::try_from(ns).ok());
    ns.filter(|ns| (1_000_000..=86_400_000_000_000).contains(ns))
        .ok_or_else(|| "give a time from \"1ms\" to \"24h\"".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_nonsense_is_refused() {
        assert_eq!(seconds("2.5"), Ok(2_500_000_000));
        assert_eq!(seconds("2s"), Ok(2_000_000_000));
        assert!(seconds("-1").is_err() && seconds("x").is_err() && seconds("nan").is_err());
        assert_eq!(interval_ns("100ms"), Ok(100_000_000));
        assert!(interval_ns("1us").is_err() && interval_ns("5").is_err());
    }
}
