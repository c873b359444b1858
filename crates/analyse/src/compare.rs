// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--compare`: two captures of the same connections, read side by side. Each file is read twice: what its connections
//! are, and where, must be known before their segments can be found again.

use super::chosen::busier;
use super::{Analysed, Arguments, analyse, open, seed};
use anyhow::{Context, Result, bail};
use fatpath_capture::{
    Capture, Compared, ComparedWay, Comparison, Connection, DelaySummary, Known, Reader, Segment,
    decode,
};
use fatpath_table::write_table;
use fatpath_units::show_time;
use serde::Serialize;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Losses that are printed; JSON has more.
const MOST_PRINTED: usize = 20;

/// Compared at once, each with up to 100 MB of what is on the way.
const MOST_FLOWS: usize = 8;

/// What `--json` prints.
#[derive(Serialize)]
struct Printed<'c> {
    files: [String; 2],
    /// Why a file was not read to its end.
    incomplete: Vec<String>,
    connections: &'c [Compared],
}

pub fn run(arguments: &Arguments, other: &Path) -> Result<ExitCode> {
    let files = [arguments.file.clone(), other.to_path_buf()];
    if files.iter().any(|file| file == Path::new("-")) {
        bail!("--compare reads each capture twice: give files, not standard input");
    }
    let [first, second] = [
        read(&Arguments {
            flow: arguments.flow.clone(),
            filter: arguments.filter.clone(),
            ..Arguments::of(files[0].clone(), false)
        })?,
        read(&Arguments::of(files[1].clone(), false))?,
    ];
    let pairs = pairs(&first, &second, &arguments.flow, &files)?;
    let begin = |(a, b): (&Connection, &Connection)| {
        Comparison::new([known(&first, a), known(&second, b)], seed())
    };
    let mut comparisons: Vec<Comparison> = pairs.into_iter().filter_map(begin).collect();
    take_all(&mut comparisons, &files)?;
    let compared: Vec<Compared> = comparisons.into_iter().map(Comparison::finish).collect();
    let stopped = [first.stopped, second.stopped].into_iter().zip(&files);
    let stopped =
        stopped.filter_map(|(error, file)| Some(format!("{}: {}", file.display(), error?)));
    let printed = Printed {
        files: files.each_ref().map(|file| file.display().to_string()),
        incomplete: stopped.collect(),
        connections: &compared,
    };
    for warning in &printed.incomplete {
        eprintln!("fatpath: {warning}");
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    match arguments.json {
        true => {
            serde_json::to_writer_pretty(&mut out, &printed).map_err(io::Error::from)?;
            writeln!(out)?;
        }
        false => print(&printed, &mut out)?,
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn read(arguments: &Arguments) -> Result<Analysed> {
    let name = || arguments.file.display().to_string();
    let input = open::open(&arguments.file)?;
    let mut analysed = analyse(input, arguments).with_context(name)?;
    analysed.chosen.order();
    Ok(analysed)
}

fn known<'c>(analysed: &Analysed, connection: &'c Connection) -> Known<'c> {
    Known {
        connection,
        first_ns: analysed.counts.first_ns,
        last_ns: analysed.counts.last_ns,
    }
}

type Pair<'c> = (&'c Connection, &'c Connection);

/// The connections of `flows`, or else the one with most data that both captures have.
fn pairs<'c>(
    first: &'c Analysed,
    second: &'c Analysed,
    flows: &[u64],
    files: &[PathBuf; 2],
) -> Result<Vec<Pair<'c>>> {
    let of = |one: &'c Connection| Some((one, same(one, second)?));
    let mut pairs: Vec<Pair<'c>> = first.chosen.connections.iter().filter_map(of).collect();
    if flows.is_empty() {
        pairs.sort_by_key(|(one, _)| std::cmp::Reverse(busier(one).unique_bytes));
        pairs.truncate(1);
    }
    if flows.len() > MOST_FLOWS {
        bail!("{MOST_FLOWS} connections are compared at once: give fewer --flow");
    }
    let has = |flow: &&u64| pairs.iter().all(|(one, _)| one.flow != **flow);
    if let Some(flow) = flows.iter().find(has) {
        bail!(
            "no connection {flow} in both captures: `fatpath analyse` lists those of {} and of {}",
            files[0].display(),
            files[1].display()
        );
    }
    if pairs.is_empty() {
        bail!(
            "{} and {} have no connection in common: the same addresses and ports at both ends. An address that is \
             translated between them makes two of one",
            files[0].display(),
            files[1].display()
        );
    }
    Ok(pairs)
}

/// The connection of the other capture with the same ends; of several, the one that began nearest in time.
fn same<'c>(one: &Connection, other: &'c Analysed) -> Option<&'c Connection> {
    let ends = |one: &Connection| (one.client, one.server);
    let found = other.chosen.connections.iter();
    found
        .filter(|other| ends(other) == ends(one))
        .min_by_key(|other| other.first_ns.abs_diff(one.first_ns))
}

/// Segments of one capture, in its order.
struct Segments {
    reader: Reader<Box<dyn Read>>,
    next: Option<Segment>,
}

impl Segments {
    fn open(file: &Path) -> Result<Segments> {
        let reader = Reader::new(open::open(file)?)?;
        let mut segments = Segments { reader, next: None };
        segments.advance();
        Ok(segments)
    }

    /// A file that cannot be read further was said to be so when it was read first.
    fn advance(&mut self) {
        self.next = None;
        while let Ok(Some(frame)) = self.reader.next_frame() {
            if let Ok(segment) = decode(&frame) {
                self.next = Some(segment);
                return;
            }
        }
    }
}

/// In the order of time, as far as the clocks are known.
fn take_all(comparisons: &mut [Comparison], files: &[PathBuf; 2]) -> Result<()> {
    let [mut first, mut second] = [Segments::open(&files[0])?, Segments::open(&files[1])?];
    let offset_ns = comparisons.first().map_or(0, Comparison::offset_ns);
    loop {
        let is_first = match (&first.next, &second.next) {
            (Some(a), Some(b)) => a.time_ns <= b.time_ns.saturating_sub(offset_ns),
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => return Ok(()),
        };
        let (segments, capture) = match is_first {
            true => (&mut first, Capture::First),
            false => (&mut second, Capture::Second),
        };
        if let Some(segment) = &segments.next {
            for comparison in comparisons.iter_mut() {
                comparison.take(capture, segment);
            }
        }
        segments.advance();
    }
}

fn print(printed: &Printed<'_>, out: &mut impl Write) -> io::Result<()> {
    for (number, one) in printed.connections.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        print_one(one, &printed.files, out)?;
    }
    Ok(())
}

fn print_one(one: &Compared, files: &[String; 2], out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "flow {} of {}, flow {} of {}: client {}, server {}",
        one.flows[0], files[0], one.flows[1], files[1], one.client, one.server
    )?;
    let nearer = &files[usize::from(one.nearer_client) - 1];
    writeln!(out, "{nearer} is nearer to the client")?;
    clocks(one, &files[1], out)?;
    writeln!(out)?;
    let header = ["", "FROM CLIENT", "FROM SERVER"].map(str::to_owned);
    let both = rows(&one.from_client)
        .into_iter()
        .zip(rows(&one.from_server));
    let both = both.map(|((name, client), (_, server))| [name.to_owned(), client, server]);
    write_table(out, header, both)?;
    for (from, way) in [("client", &one.from_client), ("server", &one.from_server)] {
        losses(from, way, out)?;
    }
    Ok(())
}

fn clocks(one: &Compared, second: &str, out: &mut impl Write) -> io::Result<()> {
    let (Some(round_trip_us), Some(offset_us), Some(doubt_us)) =
        (one.round_trip_us, one.clock_offset_us, one.clock_doubt_us)
    else {
        return writeln!(
            out,
            "one direction has nothing in common: no delay can be told from the clocks"
        );
    };
    writeln!(
        out,
        "from one capture to the other and back {} at least, whatever the clocks say",
        time(round_trip_us)
    )?;
    writeln!(
        out,
        "the clock of {second} is {} {}, give or take {}: the least delays are taken as equal in both directions",
        time(offset_us.abs()),
        if offset_us < 0.0 { "behind" } else { "ahead" },
        time(doubt_us)
    )?;
    let drift = one.clock_drift_us.map(|drift_us| time(drift_us.abs()));
    drift.map_or(Ok(()), |drift| {
        writeln!(
            out,
            "between the halves of the connection the clocks, or the least delays, differ by {drift}"
        )
    })
}

fn rows(way: &ComparedWay) -> Vec<(&'static str, String)> {
    let delay =
        |of: fn(&DelaySummary) -> f64| way.delay.map_or("-".to_owned(), |delay| time(of(&delay)));
    vec![
        ("data sent", format!("{} B", way.sent_bytes)),
        ("  lost on the way", format!("{} B", way.lost_bytes)),
        ("segments lost", way.lost_segments.to_string()),
        (
            "  that were retransmissions",
            way.lost_retransmissions.to_string(),
        ),
        ("segments without data", way.sent_bare.to_string()),
        ("  lost on the way", way.lost_bare.to_string()),
        (
            "only at the far end, segments",
            (way.added_segments + way.added_bare).to_string(),
        ),
        (
            "while one capture was not there",
            way.not_judged.to_string(),
        ),
        ("given up early", way.given_up.to_string()),
        ("one-way delay, least", delay(|delay| delay.min_us)),
        ("  median", delay(|delay| delay.median_us)),
        ("  99 % are below", delay(|delay| delay.p99_us)),
        ("  greatest", delay(|delay| delay.max_us)),
    ]
}

fn losses(from: &str, way: &ComparedWay, out: &mut impl Write) -> io::Result<()> {
    let Some(first) = way.lost.first() else {
        return Ok(());
    };
    writeln!(
        out,
        "\nlost on the way from the {from}, seconds since the first loss:"
    )?;
    for lost in way.lost.iter().take(MOST_PRINTED) {
        writeln!(
            out,
            "  {:.6}  bytes {} to {}{}",
            lost.time_ns.saturating_sub(first.time_ns) as f64 / 1e9,
            lost.offset_bytes,
            lost.offset_bytes.saturating_add_unsigned(lost.bytes),
            if lost.is_retransmission {
                ", sent again"
            } else {
                ""
            }
        )?;
    }
    match way.lost.len().saturating_sub(MOST_PRINTED) {
        0 => Ok(()),
        more => writeln!(out, "  and {more} more: --json lists up to 10,000"),
    }
}

fn time(us: f64) -> String {
    show_time(us.round() as u64)
}
