// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures as people read them.

use crate::figure::{Better, Figure};
use crate::results::Row;
use fatpath_table::aligned;

/// Name, goal and meaning of every figure.
pub fn of_goals(figures: &[&Figure]) -> String {
    let row = |figure: &&Figure| vec![figure.name.into(), goal(figure), figure.what.into()];
    let rows = figures.iter().map(row).collect();
    with_header(&["figure", "goal", "what"], rows)
}

/// What was measured, beside the goals.
pub fn of_rows(rows: &[(&Figure, Row)]) -> String {
    let rows = rows.iter().map(|(figure, row)| cells(figure, row));
    with_header(
        &["figure", "value", "unit", "goal", "", "samples"],
        rows.collect(),
    )
}

fn cells(figure: &Figure, row: &Row) -> Vec<String> {
    let verdict = match figure.is_reached(row.value) {
        Some(true) => "reached",
        Some(false) => "MISSED",
        None => "",
    };
    let least = row.samples.iter().copied().fold(f64::INFINITY, f64::min);
    let most = row
        .samples
        .iter()
        .copied()
        .fold(f64::NEG_INFINITY, f64::max);
    vec![
        row.name.clone(),
        format!("{:.3}", row.value),
        row.unit.clone(),
        goal(figure),
        verdict.into(),
        format!("{} from {least:.3} to {most:.3}", row.samples.len()),
    ]
}

fn goal(figure: &Figure) -> String {
    match (figure.goal, figure.better) {
        (Some(goal), Better::Higher) => format!(">= {goal}"),
        (Some(goal), Better::Lower) => format!("<= {goal}"),
        (None, _) => "-".into(),
    }
}

fn with_header(header: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut lines = vec![header.iter().map(|cell| cell.to_string()).collect()];
    lines.extend(rows);
    aligned(&lines, header.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::FIGURES;

    #[test]
    fn a_row_says_whether_the_goal_is_reached() {
        let mut figures = FIGURES.iter().copied();
        let figure = figures.find(|figure| figure.name == "tune.connect_rate_ratio");
        let figure = figure.unwrap();
        let row = |value| Row {
            name: figure.name.into(),
            value,
            unit: figure.unit.into(),
            better: figure.better,
            samples: vec![value, value - 0.5],
        };
        let text = of_rows(&[(figure, row(1.0)), (figure, row(0.5))]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].contains("reached") && lines[1].ends_with("2 from 0.500 to 1.000"));
        assert!(lines[2].contains("MISSED"));
    }
}
