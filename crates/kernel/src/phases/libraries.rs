// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the files of libraries: those that are installed, and those that processes have mapped, also in containers.

use fatpath_policy::PhaseTable;
use std::collections::HashMap;
use std::fs::{File, read_dir, read_to_string};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A longer file is no library of message passing.
const MOST_BYTES: u64 = 512 << 20;

/// Processes looked at in one pass, beyond which they wait for the next.
const PROCESSES_A_PASS: usize = 500;
/// A program may load a library some time after it began: each process is looked at so often, pass after pass.
const LOOKS: u8 = 3;

/// A file, whatever its names are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
}

/// A library that was found.
pub(super) struct Library {
    pub(super) id: FileId,
    /// As it was found, for people.
    pub(super) path: String,
    pub(super) file: File,
}

/// Which processes were looked at, how often.
#[derive(Default)]
pub(super) struct Search {
    looked: HashMap<u32, u8>,
    /// From where the processes are looked at again that have been looked at often enough.
    next: u32,
}

impl Search {
    /// One pass: what is installed, and what the processes have mapped whose turn it is.
    pub(super) fn pass(&mut self, tables: &[PhaseTable]) -> Vec<Library> {
        let mut found = installed(tables);
        for process in self.turn() {
            found.extend(mapped(process, tables));
        }
        let mut known = std::collections::HashSet::new();
        found.retain(|library| known.insert(library.id));
        found
    }

    /// New processes first, then the others in turn.
    fn turn(&mut self) -> Vec<u32> {
        let mut processes = processes();
        processes.sort_unstable();
        self.looked
            .retain(|process, _| processes.binary_search(process).is_ok());
        let looked = |process: &u32| self.looked.get(process).copied().unwrap_or(0);
        let (new, old): (Vec<u32>, Vec<u32>) = processes
            .into_iter()
            .partition(|process| looked(process) < LOOKS);
        let after = old.partition_point(|process| *process < self.next);
        let again = old[after..].iter().chain(&old[..after]).copied();
        let turn: Vec<u32> = new
            .into_iter()
            .chain(again.take(PROCESSES_A_PASS / 10))
            .collect();
        let turn: Vec<u32> = turn.into_iter().take(PROCESSES_A_PASS).collect();
        for process in &turn {
            let looks = self.looked.entry(*process).or_default();
            *looks = looks.saturating_add(1);
            self.next = process + 1;
        }
        turn
    }
}

fn processes() -> Vec<u32> {
    let entries = read_dir("/proc").into_iter().flatten().flatten();
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    entries.filter_map(number).collect()
}

/// In the folders that the dynamic linker looks into, and in those that patterns with a slash name.
fn installed(tables: &[PhaseTable]) -> Vec<Library> {
    let mut folders = linker_folders();
    for pattern in tables.iter().flat_map(|table| &table.libraries) {
        let fixed = pattern.as_str().split('*').next().unwrap_or_default();
        if let Some((folder, _)) = fixed.rsplit_once('/') {
            folders.push(PathBuf::from(folder));
        }
    }
    folders.sort();
    folders.dedup();
    let files = folders
        .iter()
        .flat_map(|folder| read_dir(folder).into_iter().flatten().flatten());
    let wanted = files.filter_map(|entry| {
        let path = entry.path();
        let text = path.to_str()?;
        tables
            .iter()
            .any(|table| table.is_library(text))
            .then(|| open(&path, text))?
    });
    wanted.collect()
}

fn linker_folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = [
        "/lib",
        "/lib64",
        "/usr/lib",
        "/usr/lib64",
        "/usr/local/lib",
        "/usr/local/lib64",
    ]
    .map(PathBuf::from)
    .into();
    let confs = read_dir("/etc/ld.so.conf.d")
        .into_iter()
        .flatten()
        .flatten();
    let confs = confs
        .map(|entry| entry.path())
        .chain(["/etc/ld.so.conf".into()]);
    for conf in confs {
        let text = read_to_string(conf).unwrap_or_default();
        let named = text
            .lines()
            .map(str::trim)
            .filter(|line| line.starts_with('/'));
        folders.extend(named.map(PathBuf::from));
    }
    folders
}

/// Through the process's own root: a container has other files under the same names.
fn mapped(process: u32, tables: &[PhaseTable]) -> Vec<Library> {
    let maps = read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    let mut paths: Vec<&str> = maps.lines().filter_map(executable).collect();
    paths.dedup();
    let wanted = paths
        .into_iter()
        .filter(|path| tables.iter().any(|table| table.is_library(path)));
    let open = |path: &str| open(Path::new(&format!("/proc/{process}/root{path}")), path);
    wanted.filter_map(open).collect()
}

/// The file of a line of /proc/PID/maps that is mapped as code.
fn executable(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once(' ')?;
    let is_code = rest.as_bytes().get(2) == Some(&b'x');
    let path = &rest[rest.find('/')?..];
    is_code.then_some(path)
}

/// A path of which something else than a file was made is nothing: opening it must not wait. Nor is a file whose table
/// of symbols could fill the memory.
fn open(path: &Path, name: &str) -> Option<Library> {
    let meta = std::fs::metadata(path).ok()?;
    if !meta.is_file() || meta.len() > MOST_BYTES {
        return None;
    }
    let file = File::open(path).ok()?;
    let meta = file.metadata().ok()?;
    Some(Library {
        id: FileId {
            device: meta.dev(),
            inode: meta.ino(),
        },
        path: name.to_owned(),
        file,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps_name_files_of_code() {
        let line = "7f1-7f2 r-xp 00028000 fe:00 1311 /usr/lib/lib c.so.6";
        assert_eq!(executable(line), Some("/usr/lib/lib c.so.6"));
        assert_eq!(
            executable("7f1-7f2 r--p 0 fe:00 1 /usr/lib/libc.so.6"),
            None
        );
        assert_eq!(executable("7ffd-7ffe r-xp 0 00:00 0 [vdso]"), None);
        assert_eq!(executable("nonsense"), None);
    }

    #[test]
    fn each_process_has_its_turn() {
        let mut search = Search::default();
        let own = std::process::id();
        assert!((0..LOOKS).all(|_| search.turn().contains(&own)));
        let passes = 1 + 10 * processes().len() / PROCESSES_A_PASS;
        assert!((0..2 * passes).any(|_| search.turn().contains(&own)));
    }
}
