// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table for people: a line a case, compared with its path's first variant.
//!
//! Pure. Start with [`table`].

use std::collections::BTreeSet;

use fatpath_statistics::{Ratio, Statistic};
use fatpath_table::aligned;

use super::Row;
use super::summary::{Summary, summaries};

/// Per path (and what else varies) every variant with its goodput, its ratio to the first variant,
/// its share of the bottleneck, its retransmissions, and how late the emulator was. Of several runs
/// it shows means with half the width of their confidence interval, and the interval of the ratio. A
/// case with runs that are not to be trusted has a `!`, and the last lines say why.
pub fn table(rows: &[Row]) -> String {
    let cases = summaries(rows);
    let vary: BTreeSet<&String> = cases.iter().flat_map(|case| case.vary.keys()).collect();
    let has_lateness = rows.iter().any(|row| row.emulator.is_some());
    let mut head = vec!["path", "variant"];
    head.extend(vary.iter().map(|name| name.as_str()));
    let left = head.len();
    head.extend(["goodput", "ratio", "of bottleneck", "retransmits"]);
    if has_lateness {
        head.push("late us: p50/p90/p99/max");
    }
    let mut lines = vec![head.iter().map(|cell| cell.to_string()).collect::<Vec<_>>()];
    for (index, case) in cases.iter().enumerate() {
        let above = index.checked_sub(1).map(|above| cases[above].path.as_str());
        let mut line = vec![if above == Some(&case.path) {
            String::new()
        } else {
            case.path.clone()
        }];
        line.push(case.variant.clone());
        line.extend(vary.iter().map(|name| or_dash(case.vary.get(*name))));
        line.extend(figures(case));
        if has_lateness {
            line.push(or_dash(lateness(case).as_ref()));
        }
        lines.push(line);
    }
    aligned(&lines, left) + &distrust(rows)
}

fn figures(case: &Summary) -> [String; 4] {
    let goodput = case.goodput_mbps();
    let share = case
        .bottleneck_mbps
        .and_then(|mbps| Some(goodput?.mean / mbps));
    let mark = if case.untrusted > 0 { "! " } else { "" };
    let failed = match case.failed {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    [
        goodput.map_or("failed".to_owned(), |goodput| {
            format!("{mark}{} Mb/s{failed}", with_interval(goodput, 1))
        }),
        or_dash(case.ratio.map(ratio)),
        or_dash(share.map(|share| format!("{:.1} %", share * 100.0))),
        or_dash(
            case.figures
                .get("retransmits")
                .map(|one| with_interval(one, 0)),
        ),
    ]
}

fn with_interval(figure: &Statistic, digits: usize) -> String {
    match figure.ci95 {
        Some(ci95) => format!("{:.digits$} ± {ci95:.digits$}", figure.mean),
        None => format!("{:.digits$}", figure.mean),
    }
}

/// That of the first variant to itself has an interval of no width.
fn ratio(ratio: Ratio) -> String {
    let mean = ratio.mean;
    match ratio.ci95 {
        Some([low, high]) if low < high => format!("{mean:.2} x ({low:.2} to {high:.2})"),
        _ => format!("{mean:.1} x"),
    }
}

/// Means over the runs.
fn lateness(case: &Summary) -> Option<String> {
    let us = |part: &str| Some(case.figures.get(&format!("lateness_{part}_us"))?.mean);
    let (p50, p90, p99, max) = (us("p50")?, us("p90")?, us("p99")?, us("max")?);
    Some(format!("{p50:.0}/{p90:.0}/{p99:.0}/{max:.0}"))
}

fn distrust(rows: &[Row]) -> String {
    let lines = rows.iter().filter_map(|row| {
        let reason = row.distrust.as_ref()?;
        let attempts = row.attempts.filter(|attempts| *attempts > 1);
        let attempts = attempts.map_or(String::new(), |n| format!(" (attempt {n})"));
        let name = name(row);
        Some(format!("! {name}: untrusted{attempts}: {reason}\n"))
    });
    lines.collect()
}

/// A run in words: its path, variant, what varies, and the number of its repeat.
pub fn name(row: &Row) -> String {
    let vary = row
        .vary
        .iter()
        .map(|(name, value)| format!(", {name} = {value}"));
    let repeat = match row.repeat {
        0 | 1 => String::new(),
        repeat => format!(", repeat {repeat}"),
    };
    format!(
        "{}, {}{}{repeat}",
        row.path,
        row.variant,
        vary.collect::<String>()
    )
}

fn or_dash(text: Option<impl ToString>) -> String {
    text.map_or("-".to_owned(), |text| text.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::examples::{failed, run};
    use fatpath_observation::Lateness;

    use super::super::EmulatorFigures;
    use super::*;

    #[test]
    fn the_table_compares_with_the_first_variant_of_each_path() {
        let rows = [
            run("clean", "default", 300e6).row,
            run("clean", "tuned", 930e6).row,
            failed("lossy", "default", "why").row,
            run("lossy", "tuned", 700e6).row,
        ];
        insta::assert_snapshot!(table(&rows), @r"
        path   variant     goodput  ratio  of bottleneck  retransmits
        clean  default  300.0 Mb/s  1.0 x         30.0 %            7
               tuned    930.0 Mb/s  3.1 x         93.0 %            7
        lossy  default      failed      -              -            -
               tuned    700.0 Mb/s      -         70.0 %            7
        ");
    }

    #[test]
    fn the_ratio_of_repeats_has_the_interval_of_their_pairs() {
        let mut rows = vec![];
        for (repeat, mbps, times) in [(1, 10.0, 1.9), (2, 100.0, 2.0), (3, 50.0, 2.1)] {
            for (variant, times) in [("default", 1.0), ("tuned", times)] {
                let mut row = run("clean", variant, mbps * times * 1e6).row;
                row.repeat = repeat;
                rows.push(row);
            }
        }
        insta::assert_snapshot!(table(&rows), @r"
        path   variant             goodput                  ratio  of bottleneck  retransmits
        clean  default   53.3 ± 112.0 Mb/s                  1.0 x          5.3 %        7 ± 0
               tuned    108.0 ± 224.9 Mb/s  2.00 x (1.76 to 2.26)         10.8 %        7 ± 0
        ");
    }

    #[test]
    fn repeats_give_intervals_and_distrust_is_reported() {
        let mut rows: Vec<Row> = [10e6, 12e6, 14e6]
            .map(|bps| run("clean", "default", bps).row)
            .into();
        for (row, loss) in rows.iter_mut().zip(["1%", "1%", "2%"]) {
            row.vary.insert("loss".into(), loss.into());
        }
        rows[1].repeat = 2;
        rows[1].trusted = Some(false);
        rows[1].distrust = Some("it was late".into());
        let lateness = Lateness {
            p50_us: 10.0,
            p90_us: 20.0,
            p99_us: 90.4,
            max_us: 1000.0,
            ..Lateness::default()
        };
        rows[2].emulator = Some(EmulatorFigures {
            lateness,
            ..EmulatorFigures::default()
        });
        insta::assert_snapshot!(table(&rows), @r"
        path   variant  loss             goodput  ratio  of bottleneck  retransmits  late us: p50/p90/p99/max
        clean  default  1%    ! 11.0 ± 12.7 Mb/s  1.0 x          1.1 %        7 ± 0                         -
               default  2%             14.0 Mb/s  1.0 x          1.4 %            7             10/20/90/1000
        ! clean, default, loss = 1%, repeat 2: untrusted: it was late
        ");
    }
}
