// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures of chosen connections, into a directory. Names of files are made of numbers only.

use anyhow::{Context, Result};
use fatpath_capture::{History, Way};
use fatpath_plot::{CapturedOverTime, Figure, Format, TimeSequence, interactive, picture, xplot};
use std::borrow::Cow;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// `3.5..4.25`.
pub fn part(text: &str) -> Result<Range<f64>, String> {
    let ends = text
        .split_once("..")
        .map(|(from, to)| (from.parse(), to.parse()));
    match ends {
        Some((Ok(from), Ok(to))) if from < to => Ok(from..to),
        _ => Err("give two numbers of seconds, such as 3.5..4.25".to_owned()),
    }
}

/// Writes all figures, and names each file.
pub fn write(
    histories: &[History],
    dir: &Path,
    part: Option<Range<f64>>,
    is_xplot: bool,
) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
    for history in histories {
        for drawn in ways(history) {
            drawn.within(part.as_ref()).write(dir, is_xplot)?;
        }
    }
    warn_of_left_out(histories);
    write_page(
        histories,
        &dir.join(format!("flow-{}.html", numbers(histories).join("-"))),
    )
}

/// Of a capture with more segments than are held.
pub fn warn_of_left_out(histories: &[History]) {
    for history in histories.iter().filter(|history| history.left_out > 0) {
        eprintln!(
            "fatpath: warning: flow {}: the last {} segments are not drawn: too many to hold",
            history.flow, history.left_out
        );
    }
}

/// The HTML file that zooms.
pub fn write_page(histories: &[History], file: &Path) -> Result<()> {
    let title = match &numbers(histories)[..] {
        [one] => format!("flow {one}"),
        many => format!("flows {}", many.join(", ")),
    };
    save(file, interactive(&title, histories)?.as_bytes())
}

fn numbers(histories: &[History]) -> Vec<String> {
    histories.iter().map(|one| one.flow.to_string()).collect()
}

/// One direction of a connection.
struct Drawn<'h> {
    way: Cow<'h, Way>,
    title: String,
    /// How the names of its files begin.
    name: String,
    origin_ns: i64,
}

/// Those with data.
fn ways(history: &History) -> impl Iterator<Item = Drawn<'_>> {
    let (client, server, flow) = (history.client, history.server, history.flow);
    let ways = [
        (
            &history.from_client,
            "client",
            format!("{client} to {server}"),
        ),
        (
            &history.from_server,
            "server",
            format!("{server} to {client}"),
        ),
    ];
    let ways = ways.into_iter().filter(|(way, ..)| way.has_data());
    ways.map(move |(way, end, ends)| Drawn {
        way: Cow::Borrowed(way),
        title: format!("flow {flow}, {ends}"),
        name: format!("flow-{flow}-from-{end}"),
        origin_ns: history.first_ns(),
    })
}

impl Drawn<'_> {
    fn within(mut self, part: Option<&Range<f64>>) -> Self {
        if let Some(part) = part {
            let at = |s: f64| self.origin_ns.saturating_add((s * 1e9) as i64);
            self.way = Cow::Owned(self.way.between(at(part.start), at(part.end)));
        }
        self
    }

    fn write(&self, dir: &Path, is_xplot: bool) -> Result<()> {
        let file = |what: &str| dir.join(format!("{}-{what}", self.name));
        let title = |what: &str| format!("{}: {what}", self.title);
        let sequence =
            TimeSequence::of(title("time and sequence number"), &self.way, self.origin_ns);
        draw(sequence.as_ref(), &file("time-sequence"))?;
        let over_time = CapturedOverTime::of(title("over time"), &self.way, self.origin_ns);
        draw(over_time.as_ref(), &file("over-time"))?;
        match is_xplot {
            true => save(
                &file("time-sequence.xpl"),
                xplot(&self.title, &self.way).as_bytes(),
            ),
            false => Ok(()),
        }
    }
}

fn draw(figure: Option<&impl Figure>, file: &Path) -> Result<()> {
    let Some(figure) = figure else { return Ok(()) };
    Format::ALL.into_iter().try_for_each(|format| {
        let file = file.with_extension(format.ending());
        let bytes = picture(figure, format).with_context(|| file.display().to_string())?;
        save(&file, &bytes)
    })
}

fn save(file: &Path, bytes: &[u8]) -> Result<()> {
    let name = || PathBuf::from(file).display().to_string();
    fs::write(file, bytes).with_context(name)?;
    eprintln!("wrote {}", name());
    Ok(())
}
