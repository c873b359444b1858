// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows and summaries as CSV (RFC 4180): a column for every figure that any row has.
//!
//! Pure. Start with [`rows_csv`] and [`summary_csv`].

use std::collections::{BTreeMap, BTreeSet};

use super::Row;
use super::summary::Summary;

/// `results.csv`: a line a run.
pub(super) fn rows_csv(rows: &[Row]) -> String {
    let vary = names(rows.iter().map(|row| &row.vary));
    let figures: Vec<BTreeMap<String, f64>> = rows
        .iter()
        .map(|row| row.figures().into_iter().collect())
        .collect();
    let columns = names(&figures);
    let mut head = words(&["run", "repeat", "path", "variant"]);
    head.extend(vary.iter().map(|name| name.to_string()));
    head.push("bottleneck_mbps".into());
    head.extend(columns.iter().map(|name| name.to_string()));
    head.extend(words(&["trusted", "distrust", "error"]));
    let mut table = vec![head];
    for (row, figures) in rows.iter().zip(&figures) {
        let mut line = vec![row.run.to_string(), row.repeat.to_string()];
        line.extend([row.path.clone(), row.variant.clone()]);
        line.extend(vary.iter().map(|name| text(row.vary.get(*name))));
        line.push(text(row.bottleneck_mbps.as_ref()));
        line.extend(columns.iter().map(|name| text(figures.get(*name))));
        line.push(text(row.trusted.as_ref()));
        line.extend([text(row.distrust.as_ref()), text(row.error.as_ref())]);
        table.push(line);
    }
    written(&table)
}

/// `summary.csv`: a line a case, four columns for the ratio and four a figure.
pub(super) fn summary_csv(summaries: &[Summary]) -> String {
    let vary = names(summaries.iter().map(|case| &case.vary));
    let columns = names(summaries.iter().map(|case| &case.figures));
    let mut head = words(&["path", "variant"]);
    head.extend(vary.iter().map(|name| name.to_string()));
    head.extend(words(&["bottleneck_mbps", "runs", "failed", "untrusted"]));
    head.extend(["mean", "low95", "high95", "n"].map(|part| format!("ratio_{part}")));
    for column in &columns {
        head.extend(["mean", "sd", "ci95", "n"].map(|part| format!("{column}_{part}")));
    }
    let mut table = vec![head];
    for case in summaries {
        let mut line = vec![case.path.clone(), case.variant.clone()];
        line.extend(vary.iter().map(|name| text(case.vary.get(*name))));
        line.push(text(case.bottleneck_mbps.as_ref()));
        line.extend([case.runs, case.failed, case.untrusted].map(|count| count.to_string()));
        line.push(text(case.ratio.map(|ratio| ratio.mean).as_ref()));
        let interval = case.ratio.and_then(|ratio| ratio.ci95);
        line.extend([0, 1].map(|end| text(interval.map(|ends| ends[end]).as_ref())));
        line.push(text(case.ratio.map(|ratio| ratio.n).as_ref()));
        for column in &columns {
            let one = case.figures.get(*column);
            line.push(text(one.map(|one| one.mean).as_ref()));
            line.push(text(one.and_then(|one| one.sd).as_ref()));
            line.push(text(one.and_then(|one| one.ci95).as_ref()));
            line.push(text(one.map(|one| one.n).as_ref()));
        }
        table.push(line);
    }
    written(&table)
}

/// The names that any of the maps has.
fn names<'m, V: 'm>(maps: impl IntoIterator<Item = &'m BTreeMap<String, V>>) -> BTreeSet<&'m str> {
    let keys = maps.into_iter().flat_map(|map| map.keys());
    keys.map(String::as_str).collect()
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| word.to_string()).collect()
}

fn text(value: Option<&impl ToString>) -> String {
    value.map(ToString::to_string).unwrap_or_default()
}

fn written(table: &[Vec<String>]) -> String {
    let mut writer = csv::Writer::from_writer(vec![]);
    for line in table {
        writer.write_record(line).expect("memory takes every line");
    }
    let bytes = writer.into_inner().expect("memory takes every line");
    String::from_utf8(bytes).expect("every cell is text")
}

#[cfg(test)]
mod tests {
    use super::super::examples::{failed, run};
    use super::super::summary::summaries;
    use super::*;

    fn rows() -> Vec<Row> {
        let vary = |value: &str| BTreeMap::from([("loss".to_owned(), value.to_owned())]);
        let mut rows = vec![
            run("clean", "default", 10e6).row,
            run("clean", "default", 12e6).row,
            failed("clean", "default", "no, \"really\"").row,
        ];
        rows[1].repeat = 2;
        rows[0].vary = vary("0%");
        rows[1].vary = vary("0%");
        rows[2].vary = vary("1%");
        rows
    }

    #[test]
    fn every_run_is_a_line_and_commas_are_quoted() {
        insta::assert_snapshot!(rows_csv(&rows()), @r#"
        run,repeat,path,variant,loss,bottleneck_mbps,goodput_mbps,retransmits,trusted,distrust,error
        1,1,clean,default,0%,1000,10,7,true,,
        1,2,clean,default,0%,1000,12,7,true,,
        1,1,clean,default,1%,1000,,,,,"no, ""really"""
        "#);
    }

    #[test]
    fn every_case_is_a_line_of_the_summary() {
        insta::assert_snapshot!(summary_csv(&summaries(&rows())), @r"
        path,variant,loss,bottleneck_mbps,runs,failed,untrusted,ratio_mean,ratio_low95,ratio_high95,ratio_n,goodput_mbps_mean,goodput_mbps_sd,goodput_mbps_ci95,goodput_mbps_n,retransmits_mean,retransmits_sd,retransmits_ci95,retransmits_n
        clean,default,0%,1000,2,0,0,1,1,1,2,11,1.4142135623730951,12.706,2,7,0,0,2
        clean,default,1%,1000,1,1,0,,,,,,,,,,,,
        ");
    }
}
