// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath analyse`: what a packet capture says of each TCP connection, as tables, JSON, figures and Parquet.
//!
//! It finds nothing itself: `fatpath-capture` reads the file and judges its connections. Here is which of them are
//! shown, in which order and how. Start at [`run`].

mod chosen;
mod compare;
mod detail;
mod open;
mod plots;
mod summary;
mod traced;

use anyhow::{Context, Result, bail};
use chosen::{Chosen, Filter, Sort};
use clap::Args;
use fatpath_capture::{About, Analysis, Connection, Counts, History, Limits, ReadError, Reader};
use fatpath_record::CapturedFile;
use fatpath_units::show_bytes;
use serde::Serialize;
use std::hash::{BuildHasher, RandomState};
use std::io::{Read, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::process::ExitCode;
use traced::Laid;

/// Below the options in `--help`.
pub const HELP: &str = "\
Reads pcap and pcapng, also gzip and zstd, of any size; `-` is standard input.
The table has a line for each connection, and the figures of the direction with
more data; the arrow shows it. docs/capture.md defines each field.

Examples:
  fatpath analyse transfer.pcap
  fatpath analyse transfer.pcap --flow 3
  fatpath analyse transfer.pcap --flow 3 --plot figures
  fatpath analyse transfer.pcap --flow 3 --flow 4 --plot figures --xplot
  fatpath analyse transfer.pcap --flow 3 --plot figures --time 3.5..4.25
  fatpath analyse big.pcapng.zst --sort retransmissions --filter 10.5.0.0/16 \\
    --filter 443
  fatpath analyse transfer.pcap --flow 3 \\
    --trace traces/trace-2026-11-25T201500Z-0001.parquet
  fatpath analyse transfer.pcap --filter FP-RWND
  fatpath analyse big.pcapng.zst --parquet connections.parquet
  fatpath analyse sender.pcap --compare receiver.pcap
  tcpdump -s 128 -w - tcp | fatpath analyse - --json \\
    | jq '.connections[].from_client.rtt'";

/// Arguments of `analyse`.
#[derive(Args)]
pub struct Arguments {
    /// Capture file, or - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print all that is known of this connection, a number of the table's first column; may be repeated
    #[arg(long, value_name = "N")]
    flow: Vec<u64>,
    /// Draw the chosen connections: time-sequence graphs, windows, round-trip times, goodput, as PNG, SVG, and one HTML
    /// file that zooms
    #[arg(long, value_name = "DIR", requires = "flow")]
    plot: Option<PathBuf>,
    /// Write only that HTML file, under this name
    #[arg(
        long,
        value_name = "FILE",
        requires = "flow",
        conflicts_with = "compare"
    )]
    html: Option<PathBuf>,
    /// Draw only this part, in seconds since the first segment, such as 3.5..4.25; the HTML file has all
    #[arg(long, value_name = "FROM..TO", requires = "plot", value_parser = plots::part)]
    time: Option<Range<f64>>,
    /// Write the time-sequence graphs for xplot, too
    #[arg(long, requires = "plot")]
    xplot: bool,
    /// Lay the samples of `fatpath trace` over the chosen connections: what the sender's kernel said beside what the
    /// capture shows, as a table and in what --plot draws; may be repeated
    #[arg(long, value_name = "TRACE", requires = "flow", conflicts_with_all = ["compare", "parquet"])]
    trace: Vec<PathBuf>,
    /// Order of the table; greatest first, but for flow
    #[arg(long, value_name = "KEY", value_enum, default_value_t = Sort::Flow)]
    sort: Sort,
    /// Only connections with this address or prefix, port, or finding (FP-…); may be repeated: then connections that fit all of them
    #[arg(long, value_name = "ADDRESS|PORT|FINDING")]
    filter: Vec<Filter>,
    /// Follow connections within GRE, VXLAN and IP in IP, too; a capture that has them outside as well (-i any) counts them
    /// twice
    #[arg(long, conflicts_with = "compare")]
    tunnels: bool,
    /// Write all connections that fit to this file, two rows each, instead of printing a table; the file is
    /// replaced if it exists
    #[arg(long, value_name = "OUT")]
    parquet: Option<PathBuf>,
    /// Compare with another capture of the same transfer, made at the other end or on the way: what was lost between
    /// them, and one-way delays; of the connection with most data, or those of --flow
    #[arg(long, value_name = "OTHER", conflicts_with_all = ["plot", "parquet"])]
    compare: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// All connections of a file.
    pub fn of(file: PathBuf, json: bool) -> Arguments {
        Arguments {
            file,
            flow: Vec::new(),
            plot: None,
            html: None,
            time: None,
            xplot: false,
            trace: Vec::new(),
            tunnels: false,
            sort: Sort::Flow,
            filter: Vec::new(),
            parquet: None,
            compare: None,
            json,
        }
    }

    /// Whether each segment of the chosen connections is needed.
    fn wants_histories(&self) -> bool {
        self.plot.is_some() || self.html.is_some() || !self.trace.is_empty()
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Printed<'c> {
    about: &'c About,
    counts: &'c Counts,
    /// Why the file was not read to its end.
    incomplete: Option<String>,
    /// Connections that fit and are not listed, because there are too many.
    left_out: u64,
    connections: &'c [Connection],
    /// With `--trace`.
    #[serde(skip_serializing_if = "<[Laid]>::is_empty")]
    traced: &'c [Laid],
}

/// A capture that was read.
struct Analysed {
    about: About,
    counts: Counts,
    chosen: Chosen,
    stopped: Option<ReadError>,
    /// Of what is drawn, or laid under a trace.
    histories: Vec<History>,
    traced: Vec<Laid>,
}

/// Reads the capture and prints what was asked for. The exit status is 1 where the file could not be read to its end, but
/// for one that ends within a packet.
///
/// # Errors
/// If a file cannot be opened, read or written, or no connection has the number of `--flow`.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    if let Some(other) = &arguments.compare {
        return compare::run(arguments, other);
    }
    let name = arguments.file.display().to_string();
    let input = open::open(&arguments.file)?;
    let mut analysed = analyse(input, arguments).with_context(|| name.clone())?;
    analysed.chosen.order();
    if !arguments.trace.is_empty() {
        check_flows(&analysed, &arguments.flow)?;
        analysed.traced = traced::lay(&mut analysed.histories, &arguments.trace)?;
    }
    match (arguments.json, &arguments.flow[..]) {
        (true, _) => print_json(&analysed)?,
        (false, []) if arguments.parquet.is_some() => {}
        (false, []) => summary::print(&analysed, &mut std::io::stdout().lock())?,
        (false, flows) => print_flows(&analysed, flows)?,
    }
    if let Some(dir) = &arguments.plot {
        let part = arguments.time.clone();
        plots::write(&analysed.histories, dir, part, arguments.xplot)?;
    }
    if let Some(file) = &arguments.html {
        plots::warn_of_left_out(&analysed.histories);
        plots::write_page(&analysed.histories, file)?;
    }
    match analysed.stopped {
        // Whoever interrupts a capture leaves this.
        Some(stopped @ ReadError::CutShort { .. }) => {
            eprintln!("fatpath: {name}: warning: {stopped}");
            Ok(ExitCode::SUCCESS)
        }
        Some(stopped) => {
            eprintln!("fatpath: {name}: error: {stopped}");
            Ok(ExitCode::FAILURE)
        }
        None => Ok(ExitCode::SUCCESS),
    }
}

fn analyse(input: impl Read, arguments: &Arguments) -> Result<Analysed> {
    let mut reader = Reader::new(input)?;
    let limits = Limits {
        seed: seed(),
        ..Limits::default()
    };
    let watched: &[u64] = match arguments.wants_histories() {
        true => &arguments.flow,
        false => &[],
    };
    let analysis = Analysis::new(limits).in_tunnels(arguments.tunnels);
    let mut analysis = analysis.watching(watched);
    let mut chosen = Chosen::new(arguments.sort, arguments.filter.clone(), &arguments.flow);
    if let Some(file) = &arguments.parquet {
        chosen = chosen.writing(CapturedFile::begin(file)?);
    }
    let stopped = loop {
        match reader.next_frame() {
            Ok(Some(frame)) => analysis.take_ahead(&frame),
            Ok(None) => break None,
            Err(error) => break Some(error),
        };
        if analysis.has_ended() {
            chosen.extend(analysis.take_ended())?;
        }
    };
    let histories = analysis.take_histories();
    let (left, counts) = analysis.finish();
    chosen.extend(left)?;
    if let (Some(bytes), Some(file)) = (chosen.finish_file()?, &arguments.parquet) {
        eprintln!("wrote {} ({})", file.display(), show_bytes(bytes));
    }
    Ok(Analysed {
        about: reader.about().clone(),
        counts,
        chosen,
        stopped,
        histories,
        traced: Vec::new(),
    })
}

/// Nobody who writes a capture can know it.
fn seed() -> u64 {
    RandomState::new().hash_one(0)
}

fn print_json(analysed: &Analysed) -> Result<()> {
    let printed = Printed {
        about: &analysed.about,
        counts: &analysed.counts,
        incomplete: analysed.stopped.as_ref().map(ToString::to_string),
        left_out: analysed.chosen.left_out,
        connections: &analysed.chosen.connections,
        traced: &analysed.traced,
    };
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    serde_json::to_writer_pretty(&mut out, &printed).map_err(std::io::Error::from)?;
    writeln!(out)?;
    out.flush()?;
    Ok(())
}

fn check_flows(analysed: &Analysed, flows: &[u64]) -> Result<()> {
    let found = &analysed.chosen.connections;
    if let Some(flow) = flows
        .iter()
        .find(|flow| found.iter().all(|one| one.flow != **flow))
    {
        bail!(
            "no connection {flow} among {}: `fatpath analyse` without --flow lists them",
            analysed.counts.connections
        );
    }
    Ok(())
}

fn print_flows(analysed: &Analysed, flows: &[u64]) -> Result<()> {
    check_flows(analysed, flows)?;
    let mut out = std::io::stdout().lock();
    for (number, connection) in analysed.chosen.connections.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        detail::print(connection, &mut out)?;
    }
    traced::print(&analysed.traced, &mut out)?;
    Ok(())
}
