// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which functions of which libraries are a phase of a program.

use crate::Rule;
use serde::Serialize;

/// Most tables of a policy.
pub const MAX_PHASE_TABLES: usize = 16;
/// Most patterns of a list, and characters of a pattern.
pub(crate) const MAX_PATTERNS: usize = 64;
pub(crate) const MAX_PATTERN_LENGTH: usize = 255;

/// `[phases.NAME]`: a process is in a collective phase while one of its threads is in one of the functions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PhaseTable {
    /// Its own name in the file.
    pub name: String,
    /// Patterns of the names of libraries' files, or of whole paths where a pattern has a slash.
    pub libraries: Vec<Pattern>,
    /// Patterns of the names of functions.
    pub collective: Vec<Pattern>,
}

/// A text in which each `*` stands for any characters, also none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Pattern(String);

impl Pattern {
    pub(crate) fn new(text: &str) -> Pattern {
        Pattern(text.to_owned())
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is one of `text` as a whole.
    pub fn matches(&self, text: &str) -> bool {
        let mut parts = self.0.split('*');
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = text.strip_prefix(first) else {
            return false;
        };
        let Some(last) = parts.next_back() else {
            return rest.is_empty();
        };
        for part in parts {
            match rest.find(part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        rest.ends_with(last)
    }
}

impl PhaseTable {
    /// Whether a file is one of its libraries.
    pub fn is_library(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        let of = |pattern: &Pattern| match pattern.0.contains('/') {
            true => path,
            false => name,
        };
        self.libraries.iter().any(|one| one.matches(of(one)))
    }

    /// Whether a function begins a collective phase.
    pub fn is_collective(&self, function: &str) -> bool {
        self.collective.iter().any(|one| one.matches(function))
    }

    /// What is known of a library without the file's help.
    pub(crate) fn built_in(name: &str) -> Option<PhaseTable> {
        (name == "mpi").then(mpi)
    }
}

/// MPI_X and PMPI_X are one function in each of these libraries, and what Fortran calls ends there, too. Barriers move no
/// data (Matsuda et al. 2005, 3.1), and operations that do not block end before their data moves.
fn mpi() -> PhaseTable {
    let all = |texts: &[&str]| texts.iter().map(|text| Pattern::new(text)).collect();
    PhaseTable {
        name: "mpi".to_owned(),
        libraries: all(&["libmpi.so*", "libmpich.so*"]),
        collective: all(&[
            "PMPI_Allgather",
            "PMPI_Allgatherv",
            "PMPI_Allreduce",
            "PMPI_Alltoall",
            "PMPI_Alltoallv",
            "PMPI_Alltoallw",
            "PMPI_Bcast",
            "PMPI_Exscan",
            "PMPI_Gather",
            "PMPI_Gatherv",
            "PMPI_Neighbor_allgather*",
            "PMPI_Neighbor_alltoall*",
            "PMPI_Reduce",
            "PMPI_Reduce_scatter",
            "PMPI_Reduce_scatter_block",
            "PMPI_Scan",
            "PMPI_Scatter",
            "PMPI_Scatterv",
        ]),
    }
}

impl Rule {
    /// Whether what its flows get differs by phase.
    pub fn has_phases(&self) -> bool {
        self.collective.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_one_of_the_whole_text() {
        let cases = [
            ("libmpi.so*", "libmpi.so.40.30.4", true),
            ("libmpi.so*", "xlibmpi.so", false),
            ("PMPI_Alltoall*", "PMPI_Alltoallv", true),
            ("PMPI_Alltoall", "PMPI_Alltoallv", false),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b", "bab", true),
            ("a*a", "a", false),
            ("a*ab*ab", "aab", false),
            ("*", "", true),
            ("", "", true),
        ];
        for (pattern, text, is_match) in cases {
            assert_eq!(
                Pattern::new(pattern).matches(text),
                is_match,
                "{pattern} {text}"
            );
        }
    }

    #[test]
    fn a_library_is_found_by_its_name_or_by_its_path() {
        let of = |library: &str| PhaseTable {
            libraries: vec![Pattern::new(library)],
            ..mpi()
        };
        assert!(of("libmpi.so*").is_library("/usr/lib/x86_64-linux-gnu/libmpi.so.40"));
        assert!(of("/opt/*/libmpi.so*").is_library("/opt/mpi/lib/libmpi.so.12"));
        assert!(!of("/opt/*/libmpi.so*").is_library("/usr/lib/libmpi.so.12"));
        assert!(mpi().is_collective("PMPI_Alltoallv") && !mpi().is_collective("PMPI_Barrier"));
    }
}
