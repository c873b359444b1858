// SPDX-License-Identifier: MIT OR Apache-2.0
//! Modules that depend on one another in a circle.
//!
//! Compared are siblings, each with all that is within it: what a module and its own children name of one
//! another is no circle.

use super::tree::Tree;
use std::collections::BTreeMap;
use std::path::Path;

/// Siblings each of which leads to every other.
pub struct Circle {
    pub modules: Vec<usize>,
    /// One line an edge: who, whom, and where it is written first.
    pub edges: Vec<String>,
}

/// From sibling to sibling, with where it is written first.
type Edges = BTreeMap<(usize, usize), String>;

/// All circles of a crate, the largest first.
pub fn circles(tree: &Tree) -> Vec<Circle> {
    let edges = edges(tree);
    let reached = reached(tree.modules.len(), &edges);
    let mut circles: Vec<Circle> = (0..tree.modules.len())
        .filter_map(|first| circle(tree, &edges, &reached, first))
        .collect();
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.modules.len()));
    circles
}

/// The circle whose first module this is.
fn circle(tree: &Tree, edges: &Edges, reached: &[Vec<bool>], first: usize) -> Option<Circle> {
    let modules: Vec<usize> = (0..reached.len())
        .filter(|&other| reached[first][other] && reached[other][first])
        .collect();
    if modules.len() < 2 || modules[0] != first {
        return None;
    }
    let within = |(from, to): &(usize, usize)| modules.contains(from) && modules.contains(to);
    let edges = edges
        .iter()
        .filter(|(edge, _)| within(edge))
        .map(|((from, to), place)| {
            let (from, to) = (&tree.modules[*from].name, &tree.modules[*to].name);
            format!("{from} -> {to} ({place})")
        })
        .collect();
    Some(Circle { modules, edges })
}

fn edges(tree: &Tree) -> Edges {
    let mut edges = Edges::new();
    let sources = tree.modules[0].file.parent().unwrap_or(Path::new(""));
    for (from, module) in tree.modules.iter().enumerate() {
        for named in &module.named {
            let Some(home) = tree.home(from, &named.segments) else {
                continue;
            };
            if let Some(edge) = siblings(tree, from, home) {
                edges.entry(edge).or_insert_with(|| {
                    let file = module.file.strip_prefix(sources).unwrap_or(&module.file);
                    let path = named.segments.join("::");
                    format!("{}:{} {path}", file.display(), named.line)
                });
            }
        }
    }
    edges
}

/// The two siblings that hold these modules; none when one module is within the other.
fn siblings(tree: &Tree, from: usize, to: usize) -> Option<(usize, usize)> {
    let (from, to) = (line_of_descent(tree, from), line_of_descent(tree, to));
    from.into_iter().zip(to).find(|(from, to)| from != to)
}

/// The root, its child, …, the module itself.
fn line_of_descent(tree: &Tree, module: usize) -> Vec<usize> {
    let mut line: Vec<usize> =
        std::iter::successors(Some(module), |&at| tree.modules[at].parent).collect();
    line.reverse();
    line
}

/// Who leads to whom over any number of edges.
fn reached(modules: usize, edges: &Edges) -> Vec<Vec<bool>> {
    let mut reached = vec![vec![false; modules]; modules];
    for &(from, to) in edges.keys() {
        reached[from][to] = true;
    }
    for between in 0..modules {
        for from in 0..modules {
            if reached[from][between] {
                let beyond = reached[between].clone();
                for (to, leads) in beyond.into_iter().enumerate() {
                    reached[from][to] |= leads;
                }
            }
        }
    }
    reached
}
