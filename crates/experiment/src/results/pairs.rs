// SPDX-License-Identifier: MIT OR Apache-2.0
//! Goodputs of two sets of runs in pairs of the same repeat, which has the same random numbers.
//!
//! Pure. Start with [`pairs`].

use std::collections::BTreeMap;

use super::Row;

/// Those of `rows` with those of `base`, both of one case. A run in which nothing is drawn is that of every
/// repeat.
pub(crate) fn pairs(rows: &[&Row], base: &[&Row]) -> Vec<(f64, f64)> {
    match (every_repeat(rows), every_repeat(base)) {
        (_, Some(base)) => goodputs(rows).map(|(_, one)| (one, base)).collect(),
        (Some(one), None) => goodputs(base).map(|(_, base)| (one, base)).collect(),
        (None, None) => {
            let base: BTreeMap<u32, f64> = goodputs(base).collect();
            goodputs(rows)
                .filter_map(|(repeat, one)| Some((one, *base.get(&repeat)?)))
                .collect()
        }
    }
}

fn every_repeat(rows: &[&Row]) -> Option<f64> {
    let row = rows.iter().find(|row| row.every_repeat)?;
    row.goodput_mbps
}

fn goodputs<'r>(rows: &'r [&Row]) -> impl Iterator<Item = (u32, f64)> + 'r {
    rows.iter()
        .filter_map(|row| Some((row.repeat, row.goodput_mbps?)))
}

#[cfg(test)]
mod tests {
    use super::super::examples::run;
    use super::*;

    fn rows(mbps: &[f64]) -> Vec<Row> {
        let row = |(repeat, mbps): (u32, &f64)| Row {
            repeat,
            ..run("clean", "reno", mbps * 1e6).row
        };
        (1..).zip(mbps).map(row).collect()
    }

    fn paired(rows: &[Row], base: &[Row]) -> Vec<(f64, f64)> {
        pairs(
            &rows.iter().collect::<Vec<_>>(),
            &base.iter().collect::<Vec<_>>(),
        )
    }

    #[test]
    fn runs_are_paired_by_repeat_and_one_of_every_repeat_with_all() {
        let (three, two) = (rows(&[1.0, 2.0, 3.0]), rows(&[10.0, 20.0]));
        assert_eq!(paired(&three, &two), [(1.0, 10.0), (2.0, 20.0)]);
        let mut every = rows(&[7.0]);
        assert_eq!(paired(&every, &two), [(7.0, 10.0)]);
        every[0].every_repeat = true;
        assert_eq!(paired(&every, &two), [(7.0, 10.0), (7.0, 20.0)]);
        assert_eq!(paired(&two, &every), [(10.0, 7.0), (20.0, 7.0)]);
        assert_eq!(paired(&every, &every), [(7.0, 7.0)]);
    }
}
