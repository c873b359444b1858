// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the crates are divided: lines of code, modules, and modules that depend on one another in a circle.

mod circles;
mod paths;
mod resolve;
mod source;
mod tree;

use anyhow::{Context, Result};
use circles::{Circle, circles};
use std::path::{Path, PathBuf};
use tree::Tree;

/// A larger crate is to be divided.
const MOST_CODE_LINES: usize = 6500;

/// A crate as it is divided.
struct Division {
    name: String,
    tree: Tree,
    circles: Vec<Circle>,
}

/// Prints a table of all crates; of the crates that are named also what makes their circles.
pub fn print(root: &Path, named: &[String]) -> Result<()> {
    println!("crate         lines  modules  largest circle");
    for division in divisions(root)? {
        println!("{}", division.row());
        if named.contains(&division.name) {
            println!("{}", division.descriptions().join("\n"));
        }
    }
    Ok(())
}

/// Circles, and crates that are too large.
pub fn breaches(root: &Path) -> Result<Vec<String>> {
    let divisions = divisions(root)?;
    Ok(divisions.iter().flat_map(Division::breaches).collect())
}

impl Division {
    fn read(name: String, file: &Path) -> Result<Division> {
        let tree = Tree::read(file)?;
        let circles = circles(&tree);
        Ok(Division {
            name,
            tree,
            circles,
        })
    }

    fn row(&self) -> String {
        let largest = self.circles.first().map_or(0, |c| c.modules.len());
        let modules = self.tree.modules.len() - 1; // its root is the crate
        let lines = self.tree.code_lines;
        format!("{:<12} {lines:>6} {modules:>8} {largest:>15}", self.name)
    }

    fn breaches(&self) -> Vec<String> {
        self.descriptions()
            .into_iter()
            .chain(too_large(&self.name, self.tree.code_lines))
            .collect()
    }

    fn descriptions(&self) -> Vec<String> {
        self.circles.iter().map(|c| self.description(c)).collect()
    }

    fn description(&self, circle: &Circle) -> String {
        let name = |&module: &usize| self.tree.modules[module].name.as_str();
        let names: Vec<&str> = circle.modules.iter().map(name).collect();
        format!(
            "  {}: these modules depend on one another in a circle: {}\n    {}",
            self.name,
            names.join(", "),
            circle.edges.join("\n    ")
        )
    }
}

fn too_large(name: &str, code_lines: usize) -> Option<String> {
    (code_lines > MOST_CODE_LINES).then(|| {
        format!("  {name}: {code_lines} lines of code without tests, {MOST_CODE_LINES} are allowed: divide the crate")
    })
}

fn divisions(root: &Path) -> Result<Vec<Division>> {
    crate_roots(root)?
        .into_iter()
        .map(|(name, file)| Division::read(name, &file))
        .collect()
}

/// Each crate's name and the file of its root.
fn crate_roots(root: &Path) -> Result<Vec<(String, PathBuf)>> {
    let mut roots = Vec::new();
    for entry in std::fs::read_dir(root.join("crates")).context("crates")? {
        let directory = entry.context("crates")?.path();
        let name = directory.file_name().context("a crate has a name")?;
        roots.push((name.to_string_lossy().into_owned(), directory.join("src")));
    }
    roots.push(("xtask".into(), root.join("xtask/src")));
    roots.sort();
    roots
        .into_iter()
        .map(|(name, sources)| {
            let file = ["lib.rs", "main.rs"].map(|file| sources.join(file));
            let file = file.into_iter().find(|file| file.exists());
            Ok((name, file.with_context(|| sources.display().to_string())?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A crate of these files.
    fn division(files: &[(&str, &str)]) -> Division {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let file = directory.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        Division::read("seeded".into(), &directory.path().join("lib.rs")).unwrap()
    }

    fn names(division: &Division) -> Vec<Vec<&str>> {
        let name = |module: &usize| division.tree.modules[*module].name.as_str();
        let of_circle = |circle: &Circle| circle.modules.iter().map(name).collect();
        division.circles.iter().map(of_circle).collect()
    }

    #[test]
    fn a_seeded_circle_is_a_breach_that_names_its_edges() {
        let seeded = division(&[
            ("lib.rs", "mod a; mod b; mod c; mod apart; pub use c::Deep;"),
            (
                "a.rs",
                "use crate::b::{self, f}; pub struct A; fn g() { f() }",
            ),
            ("b.rs", "pub fn f() -> super::Deep { todo!() }"),
            (
                "c.rs",
                "pub struct Deep; fn h() { println!(\"{}\", crate::a::A) }",
            ),
            ("apart.rs", "use crate::a::A; use std::fmt;"),
        ]);
        let breaches = seeded.descriptions();
        assert_eq!(breaches.len(), 1);
        for edge in ["a -> b (", "b -> c (", "c -> a ("] {
            assert!(breaches[0].contains(edge), "{}", breaches[0]);
        }
        assert!(breaches[0].contains("a, b, c\n"), "{}", breaches[0]);
    }

    #[test]
    fn a_parent_and_its_children_may_name_one_another() {
        let seeded = division(&[
            ("lib.rs", "mod a; pub struct Root;"),
            ("a/mod.rs", "mod inner; pub use inner::I; pub struct A(I);"),
            (
                "a/inner.rs",
                "use super::A; use crate::{Root, a}; pub struct I;",
            ),
        ]);
        assert!(seeded.circles.is_empty());
    }

    #[test]
    fn siblings_count_with_all_that_is_within_them() {
        let seeded = division(&[
            ("lib.rs", "mod a; mod b;"),
            ("a/mod.rs", "mod x; mod y; pub use y::Y;"),
            ("a/x.rs", "use crate::b::*; fn f(of: B) {}"),
            ("a/y.rs", "pub struct Y;"),
            (
                "b.rs",
                "pub use self::inner::B; mod inner { pub struct B; type C = crate::a::Y; }",
            ),
        ]);
        assert_eq!(names(&seeded), [["a", "b"]]);
    }

    #[test]
    fn a_crate_that_is_too_large_is_a_breach() {
        assert_eq!(too_large("a", MOST_CODE_LINES), None);
        let breach = too_large("a", MOST_CODE_LINES + 1).unwrap();
        assert!(breach.contains("a: 6501 lines"), "{breach}");
    }

    #[test]
    fn tests_are_not_counted() {
        let seeded = division(&[
            (
                "lib.rs",
                "mod a;\n\n// why\nmod b;\n#[cfg(test)]\nmod absent;\n",
            ),
            ("a.rs", "use crate::b::B;\n/// What it is.\npub struct A;\n"),
            (
                "b.rs",
                "pub struct B;\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n",
            ),
        ]);
        assert!(seeded.circles.is_empty());
        assert_eq!(seeded.tree.code_lines, 5);
    }
}
