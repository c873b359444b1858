// SPDX-License-Identifier: MIT OR Apache-2.0
//! The newest result of each pair of hosts that all test one another.

use crate::Mesh;
use crate::outcome::main_of;
use fatpath_api::{MeshGrid, MeshPair, TestLevel, TestOutcome};
use std::collections::BTreeMap;

/// What the newest test of each pair gave.
pub struct Grid<'m> {
    mesh: &'m Mesh,
    newest: BTreeMap<(String, String), TestOutcome>,
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

    /// As the API and the command line give it.
    pub fn answer(&self) -> MeshGrid {
        let hosts = &self.mesh.hosts;
        let all = hosts
            .iter()
            .flat_map(|from| hosts.iter().map(move |to| (from, to)));
        let pairs = all.filter(|(from, to)| from != to);
        MeshGrid {
            mesh: self.mesh.name.clone(),
            tool: self.mesh.test.tool.name().to_owned(),
            hosts: hosts.clone(),
            pairs: pairs.map(|(from, to)| self.pair(from, to)).collect(),
        }
    }

    fn pair(&self, from: &str, to: &str) -> MeshPair {
        let outcome = self.newest.get(&(from.to_owned(), to.to_owned()));
        let main = outcome.and_then(main_of);
        MeshPair {
            from: from.to_owned(),
            to: to.to_owned(),
            start_us: outcome.map(|outcome| outcome.start_us),
            value: main.map(|(value, _)| *value),
            unit: main.map(|(_, unit)| unit.clone()),
            note: outcome.and_then(|outcome| outcome.note.clone()),
        }
    }

    /// A row a host, and above them all hosts to which it tests.
    pub fn table(&self) -> Vec<Vec<String>> {
        let hosts = &self.mesh.hosts;
        let head = std::iter::once("FROM, TO".to_owned()).chain(hosts.iter().cloned());
        let row = |from: &String| {
            let cells = hosts.iter().map(|to| match from == to {
                true => String::new(),
                false => shown(&self.pair(from, to)),
            });
            std::iter::once(from.clone()).chain(cells).collect()
        };
        std::iter::once(head.collect())
            .chain(hosts.iter().map(row))
            .collect()
    }
}

fn shown(pair: &MeshPair) -> String {
    match (pair.value, &pair.note) {
        (Some(value), _) => format!("{value} {}", pair.unit.as_deref().unwrap_or_default()),
        (None, Some(note)) if note.level == TestLevel::Error => "failed".to_owned(),
        (None, Some(_)) => "left out".to_owned(),
        (None, None) => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{error, outcome};
    use crate::{Measured, Values, parse};

    const FILE: &str = "[[mesh]]\nname = 'core'\nhosts = ['a', 'b', 'c']\ntool = 'ping'\nevery = '10s'\nduration = '1s'\n";

    #[test]
    fn the_newest_result_of_each_pair_is_shown() {
        let plan = parse(FILE).unwrap();
        let mut of_a = plan.clone();
        of_a.join_meshes("a");
        let mut grid = Grid::of(&plan.meshes[0]);
        for (start_us, rtt_ms) in [(1, 9.5), (2, 10.5)] {
            let values = Values::from([("rtt_avg".to_owned(), (rtt_ms, "ms".to_owned()))]);
            grid.take(
                "a",
                outcome(&of_a.tests[0], start_us, 1.0, Ok(values.into())),
            );
        }
        grid.take(
            "c",
            outcome(&of_a.tests[0], 3, 1.0, Err(error("no answer"))),
        );
        let mut other = outcome(&of_a.tests[1], 4, 1.0, Ok(Measured::default()));
        other.test = "of another mesh".to_owned();
        grid.take("b", other);
        let rows = [
            ["FROM, TO", "a", "b", "c"],
            ["a", "", "10.5 ms", "-"],
            ["b", "-", "", "-"],
            ["c", "-", "failed", ""],
        ];
        assert_eq!(grid.table(), rows);
        let answer = grid.answer();
        assert_eq!((answer.tool.as_str(), answer.pairs.len()), ("ping", 6));
        let first = MeshPair {
            from: "a".into(),
            to: "b".into(),
            start_us: Some(2),
            value: Some(10.5),
            unit: Some("ms".into()),
            note: None,
        };
        assert_eq!(answer.pairs[0], first);
    }
}
