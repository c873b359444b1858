// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where file systems are mounted: the one reader of a list of mounts (proc_pid_mounts(5)).

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// Of the calling thread's mount namespace, which may be another than the process's.
const MOUNTS: &str = "/proc/thread-self/mounts";

/// Where file systems of this type (`cgroup2`, `bpf`, ...) are mounted, in the order of the mounts.
///
/// # Errors
/// When the list of mounts cannot be read.
pub fn mounts_of(file_system: &str) -> io::Result<Vec<PathBuf>> {
    Ok(listed(&std::fs::read(MOUNTS)?, file_system))
}

/// The first of them.
///
/// # Errors
/// When the list of mounts cannot be read.
pub fn first_mount_of(file_system: &str) -> io::Result<Option<PathBuf>> {
    Ok(mounts_of(file_system)?.into_iter().next())
}

/// A line is `DEVICE DIRECTORY TYPE OPTIONS 0 0`.
fn listed(mounts: &[u8], file_system: &str) -> Vec<PathBuf> {
    let directory_of = |line: &[u8]| {
        let mut fields = line.split(|byte| *byte == b' ').skip(1);
        let (directory, found) = (fields.next()?, fields.next()?);
        (found == file_system.as_bytes()).then(|| unescaped(directory))
    };
    let lines = mounts.split(|byte| *byte == b'\n');
    lines.filter_map(directory_of).collect()
}

/// The kernel writes space, tab, newline and backslash as three octal digits.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut path = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|_| *first == b'\\');
        let code = octal.and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                path.push(byte);
                rest = &after[3..];
            }
            None => {
                path.push(*first);
                rest = after;
            }
        }
    }
    OsString::from_vec(path).into()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests {
    use super::*;

    #[test]
    fn mounts_are_found_by_their_type() {
        let mounts = b"proc /proc proc rw 0 0\ntmpfs /sys/fs/cgroup tmpfs ro 0 0\n\
            cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\nnone /mnt/a\\040b\\134c cgroup2 rw 0 0\n\
            cut /short";
        let wanted = ["/sys/fs/cgroup/unified", "/mnt/a b\\c"].map(PathBuf::from);
        assert_eq!(listed(mounts, "cgroup2"), wanted);
        assert_eq!(listed(mounts, "bpf"), Vec::<PathBuf>::new());
    }

    #[test]
    fn this_host_has_proc_mounted() {
        let proc = first_mount_of("proc").unwrap();
        assert_eq!(proc, Some("/proc".into()));
    }
}
