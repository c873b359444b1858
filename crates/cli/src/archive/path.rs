// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath archive path`: the history of a path.

use super::time::{now_us, shown, time_us};
use super::{Place, plot};
use anyhow::Result;
use clap::{Args, ValueEnum};
use fatpath_api::Finding;
use fatpath_archive::store::{
    History, Measure, PathQuery, Record, Rollup, Width, parse_prefix, path_history, path_of,
};
use fatpath_daemon::history_answer;
use ipnet::IpNet;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(Args)]
pub struct Arguments {
    /// Prefix or address of the peers. Measures are kept for each /24, of IPv6 for each /48
    #[arg(value_name = "PREFIX", value_parser = prefix)]
    path: IpNet,
    /// From this time on
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = time_us)]
    since: i64,
    /// Before this time [default: now]
    #[arg(long, value_name = "TIME", value_parser = time_us)]
    until: Option<i64>,
    /// How long an interval is
    #[arg(long, value_enum, default_value_t = By::Hour)]
    by: By,
    /// Draw what tests measured, and what rules that follow the path had in force: FILE.png or FILE.svg
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Place,
}

#[derive(Clone, Copy, ValueEnum)]
enum By {
    Minute,
    Hour,
}

/// Decisions and findings that are shown at most.
const MOST_MARKS: usize = 200;

/// Width of the longest bar, characters.
const BAR: f64 = 24.0;

/// A prefix, or an address for the prefix of this address alone.
pub fn prefix(text: &str) -> Result<IpNet, String> {
    let prefix = parse_prefix(text);
    prefix.ok_or_else(|| "give a prefix (192.0.2.0/24, 2001:db8::/48) or an address".to_owned())
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let store = arguments.place.existing()?;
    let (since_us, until_us) = (arguments.since, arguments.until.unwrap_or_else(now_us));
    let width = match arguments.by {
        By::Minute => Width::Minute,
        By::Hour => Width::Hour,
    };
    let asked = PathQuery {
        prefix: arguments.path,
        width,
        since_us,
        until_us,
        most_marks: MOST_MARKS,
    };
    let history = path_history(&*store, &asked)?;
    if let Some(file) = &arguments.plot {
        plot::write(file, arguments.path, &history.marks)?;
    }
    if arguments.json {
        println!(
            "{}",
            serde_json::to_string_pretty(&history_answer(&history))?
        );
        return Ok(());
    }
    if arguments.path.prefix_len() > path_of(arguments.path.network()).prefix_len() {
        println!("measured of {}", path_of(arguments.path.network()));
    }
    print!("{}", as_text(&history.measured, &history.marks));
    Ok(())
}

/// By the begin of the interval.
fn intervals(history: &History) -> BTreeMap<i64, BTreeMap<Measure, &Rollup>> {
    let mut intervals = BTreeMap::<_, BTreeMap<_, _>>::new();
    for ((begin_s, measure), rollup) in history {
        intervals
            .entry(*begin_s)
            .or_default()
            .insert(*measure, rollup);
    }
    intervals
}

/// A line an interval, with a bar for its median goodput, then the events.
fn as_text(history: &History, marks: &[Record]) -> String {
    let intervals = intervals(history);
    if intervals.is_empty() && marks.is_empty() {
        return "nothing was archived of this path in this time\n".to_owned();
    }
    let median = |measures: &BTreeMap<Measure, &Rollup>, measure, share| {
        measures
            .get(&measure)
            .and_then(|rollup| rollup.histogram.quantile(share))
    };
    let goodput = |measures| median(measures, Measure::GoodputBps, 0.5).unwrap_or_default();
    let most = intervals
        .values()
        .map(goodput)
        .fold(f64::MIN_POSITIVE, f64::max);
    let mut text = "TIME                  FLOWS   p10 Mb/s   p50 Mb/s   p90 Mb/s   RTT p50 ms   RTT least p10   RETRANS %\n".to_owned();
    for (begin_s, measures) in &intervals {
        let flows = measures
            .get(&Measure::GoodputBps)
            .map_or(0, |rollup| rollup.n);
        let cell = |measure, share, unit: f64, digits: usize| {
            let value = median(measures, measure, share);
            value.map_or("-".to_owned(), |value| format!("{:.digits$}", value / unit))
        };
        let bar = "#".repeat((goodput(measures) / most * BAR).round() as usize);
        let line = format!(
            "{:20}  {flows:>5}  {:>9}  {:>9}  {:>9}  {:>11}  {:>14}  {:>10}  {bar}",
            &shown(begin_s * 1_000_000)[.."2026-11-23T10:15".len()],
            cell(Measure::GoodputBps, 0.1, 1e6, 1),
            cell(Measure::GoodputBps, 0.5, 1e6, 1),
            cell(Measure::GoodputBps, 0.9, 1e6, 1),
            cell(Measure::SrttUs, 0.5, 1e3, 1),
            cell(Measure::MinRttUs, 0.1, 1e3, 1),
            cell(Measure::RetransmittedShare, 0.9, 0.01, 2),
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    for record in marks {
        let event = &record.event;
        let what = match event.name.as_str() {
            "finding" => id_of(&event.body),
            _ => String::new(),
        };
        let line = format!(
            "{}  {}  {} {what}",
            shown(event.time_us),
            record.kind.name(),
            event.name
        );
        text.push_str(line.replace(char::is_control, "?").trim_end());
        text.push('\n');
    }
    text
}

/// Identifier and title of a finding.
fn id_of(body: &str) -> String {
    match serde_json::from_str(body) {
        Ok(FindingEvent { attributes }) => {
            format!("{}: {}", attributes.finding.id, attributes.finding.title)
        }
        Err(error) => format!("not a finding: {error}"),
    }
}

/// What is read of the event that archives a finding.
#[derive(Deserialize)]
struct FindingEvent {
    attributes: FindingAttributes,
}

#[derive(Deserialize)]
struct FindingAttributes {
    finding: Finding,
}

#[cfg(test)]
mod tests {
    use super::*;
    use fatpath_archive::store::PathHistory;

    #[test]
    fn a_finding_is_told_by_identifier_and_title() {
        let finding = Finding::new(
            "FP-LOSS",
            fatpath_api::Severity::Problem,
            "losses hold it back",
        );
        let body = serde_json::json!({ "event": "finding", "attributes": { "finding": finding } });
        assert_eq!(id_of(&body.to_string()), "FP-LOSS: losses hold it back");
        assert!(id_of("{}").starts_with("not a finding: "));
    }

    #[test]
    fn a_history_is_a_line_an_interval() {
        let mut history = History::new();
        for (begin_s, mbps) in [(1_795_392_000, 8.0), (1_795_395_600, 80.0)] {
            let mut rollup = Rollup::default();
            rollup.add(mbps * 1e6, 3);
            history.insert((begin_s, Measure::GoodputBps), rollup);
        }
        let text = as_text(&history, &[]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(
            lines[1].starts_with("2026-11-23T00:00          3"),
            "{text}"
        );
        assert!(
            lines[2].ends_with(&"#".repeat(24)) && lines[1].ends_with(" ##"),
            "{text}"
        );
        let json = history_answer(&PathHistory {
            measured: history,
            marks: vec![],
        });
        let json = serde_json::to_value(json).unwrap();
        assert_eq!(json["intervals"][1]["measures"]["goodput_bps"]["n"], 3);
    }

    #[test]
    fn a_prefix_may_be_an_address() {
        assert_eq!(prefix("192.0.2.1").unwrap().prefix_len(), 32);
        assert_eq!(prefix("2001:db8::/48").unwrap().prefix_len(), 48);
        assert!(prefix("far").is_err());
    }
}
