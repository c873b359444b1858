// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which cells of a chain go on when it adopts another spec: the longest common subsequence.

use crate::CellSpec;

/// What happens to the next cell of a chain, or of a spec, on the way from front to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The next cell takes on the parameters of the next spec.
    Change,
    /// The next cell does nothing any more.
    Neutralise,
    /// A cell is made from the next spec.
    Insert,
}

/// Cells kept, and how many of them were active: more is better, in this order.
type Kept = (u32, u32);

/// The steps from `cells`, each with whether it is active, to `specs` that keep most cells; of equal
/// ways, most active ones.
pub(crate) fn align(cells: &[(&CellSpec, bool)], specs: &[CellSpec]) -> Vec<Step> {
    let best = best_of_tails(cells, specs);
    let (mut cell, mut spec) = (0, 0);
    let mut steps = Vec::with_capacity(cells.len() + specs.len());
    while cell < cells.len() || spec < specs.len() {
        let here = best[cell][spec];
        if cell < cells.len() && best[cell + 1][spec] == here {
            steps.push(Step::Neutralise);
            cell += 1;
        } else if spec < specs.len() && best[cell][spec + 1] == here {
            steps.push(Step::Insert);
            spec += 1;
        } else {
            steps.push(Step::Change);
            (cell, spec) = (cell + 1, spec + 1);
        }
    }
    steps
}

/// What can be kept of the cells from each index on, for the specs from each index on.
fn best_of_tails(cells: &[(&CellSpec, bool)], specs: &[CellSpec]) -> Vec<Vec<Kept>> {
    let mut best = vec![vec![(0, 0); specs.len() + 1]; cells.len() + 1];
    for cell in (0..cells.len()).rev() {
        for spec in (0..specs.len()).rev() {
            let (kept, active) = best[cell + 1][spec + 1];
            let (known, is_active) = cells[cell];
            let both = match known.is_same_effect(&specs[spec]) {
                true => (kept + 1, active + u32::from(is_active)),
                false => (0, 0),
            };
            best[cell][spec] = both.max(best[cell + 1][spec]).max(best[cell][spec + 1]);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(cells: &[(CellSpec, bool)], specs: &[CellSpec]) -> Vec<Step> {
        let cells: Vec<_> = cells.iter().map(|(cell, active)| (cell, *active)).collect();
        align(&cells, specs)
    }

    #[test]
    fn a_cell_in_front_leaves_those_behind_it_in_place() {
        let (rate, delay) = (CellSpec::rate(1_000, None), CellSpec::delay(1));
        let cells = [(rate.clone(), true), (delay.clone(), true)];
        let wanted = [Step::Insert, Step::Change, Step::Change];
        assert_eq!(steps(&cells, &[delay.clone(), rate, delay]), wanted);
    }

    #[test]
    fn of_equal_cells_the_active_one_goes_on() {
        let delay = CellSpec::delay(1);
        for (active, wanted) in [
            ([true, false], [Step::Change, Step::Neutralise]),
            ([false, true], [Step::Neutralise, Step::Change]),
        ] {
            let cells = active.map(|active| (delay.clone(), active));
            assert_eq!(steps(&cells, std::slice::from_ref(&delay)), wanted);
        }
    }
}
