// SPDX-License-Identifier: MIT OR Apache-2.0
//! The newest result of each pair of hosts that all test one another.

use crate::Mesh;
use crate::outcome::main_of;
use fatpath_api::{TestLevel, TestNote, TestOutcome};
use serde::Serialize;
use std::collections::BTreeMap;

/// What the newest test of each pair gave.
pub struct Grid<'m> {
    mesh: &'m Mesh,
    newest: BTreeMap<(String, String), TestOutcome>,
}

/// The newest test from one host to another.
#[derive(Debug, PartialEq, Serialize)]
pub struct Pair<'g> {
    /// Which ran it.
    pub from: &'g str,
    /// The peer.
    pub to: &'g str,
    /// When it started, µs since 1970; none: there was no test lately.
    pub start_us: Option<i64>,
    /// The number that the tool is for.
    pub value: Option<f64>,
    /// Its unit.
    pub unit: Option<&'g str>,
    /// Why there is no value.
    pub note: Option<&'g TestNote>,
}

impl<'m> Grid<'m> {
    /// Nothing is known yet.
    pub fn of(mesh: &'m Mesh) -> Grid<'m> {
        Grid {
            mesh,
            newest: BTreeMap::new(),
        }
    }

    /// Whose results these are.
    pub fn mesh(&self) -> &'m Mesh {
        self.mesh
    }

    /// A host ran a test, later than those before.
    pub fn take(&mut self, from: &str, outcome: TestOutcome) {
        let to = outcome.to.as_ref();
        if let Some(to) = to.filter(|to| outcome.test == self.mesh.test_name(to)) {
            self.newest.insert((from.to_owned(), to.clone()), outcome);
        }
    }

    /// All of one host after those of another.
    pub fn pairs(&self) -> Vec<Pair<'_>> {
        let hosts = &self.mesh.hosts;
        let all = hosts
            .iter()
            .flat_map(|from| hosts.iter().map(move |to| (from, to)));
        let pairs = all.filter(|(from, to)| from != to);
        pairs.map(|(from, to)| self.pair(from, to)).collect()
    }

    fn pair<'g>(&'g self, from: &'g str, to: &'g str) -> Pair<'g> {
        let outcome = self.newest.get(&(from.to_owned(), to.to_owned()));
        let main = outcome.and_then(main_of);
        Pair {
            from,
            to,
            start_us: outcome.map(|outcome| outcome.start_us),
            value: main.map(|(value, _)| *value),
            unit: main.map(|(_, unit)| unit.as_str()),
            note: outcome.and_then(|outcome| outcome.note.as_ref()),
        }
    }

    /// A row a host, and above them all hosts to which it tests.
    pub fn table(&self) -> Vec<Vec<String>> {
        let hosts = &self.mesh.hosts;
        let head = std::iter::once("FROM, TO".to_owned()).chain(hosts.iter().cloned());
        let row = |from: &String| {
            let cells = hosts.iter().map(|to| match from == to {
                true => String::new(),
                false => self.pair(from, to).shown(),
            });
            std::iter::once(from.clone()).chain(cells).collect()
        };
        std::iter::once(head.collect())
            .chain(hosts.iter().map(row))
            .collect()
    }
}

impl Pair<'_> {
    fn shown(&self) -> String {
        match (self.value, self.note) {
            (Some(value), _) => format!("{value} {}", self.unit.unwrap_or_default()),
            (None, Some(note)) if note.level == TestLevel::Error => "failed".to_owned(),
            (None, Some(_)) => "left out".to_owned(),
            (None, None) => "-".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{error, outcome};
    use crate::{Values, parse};

    const FILE: &str = "[[mesh]]\nname = 'core'\nhosts = ['a', 'b', 'c']\ntool = 'ping'\nevery = '10s'\nduration = '1s'\n";

    #[test]
    fn the_newest_result_of_each_pair_is_shown() {
        let plan = parse(FILE).unwrap();
        let mut of_a = plan.clone();
        of_a.join_meshes("a");
        let mut grid = Grid::of(&plan.meshes[0]);
        for (start_us, rtt_ms) in [(1, 9.5), (2, 10.5)] {
            let values = Values::from([("rtt_avg".to_owned(), (rtt_ms, "ms".to_owned()))]);
            grid.take("a", outcome(&of_a.tests[0], start_us, 1.0, Ok(values)));
        }
        grid.take(
            "c",
            outcome(&of_a.tests[0], 3, 1.0, Err(error("no answer"))),
        );
        let mut other = outcome(&of_a.tests[1], 4, 1.0, Ok(Values::new()));
        other.test = "of another mesh".to_owned();
        grid.take("b", other);
        let rows = [
            ["FROM, TO", "a", "b", "c"],
            ["a", "", "10.5 ms", "-"],
            ["b", "-", "", "-"],
            ["c", "-", "failed", ""],
        ];
        assert_eq!(grid.table(), rows);
        let pairs = grid.pairs();
        assert_eq!(pairs.len(), 6);
        let first = (
            pairs[0].to,
            pairs[0].start_us,
            pairs[0].value,
            pairs[0].unit,
        );
        assert_eq!(first, ("b", Some(2), Some(10.5), Some("ms")));
    }
}
