// SPDX-License-Identifier: MIT OR Apache-2.0
//! Holes: stretches of a file that read as zeros and take no room on the disk.

use crate::system::punch;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};

/// A hole that is shorter is taken for data: to tell of it would cost as much as it saves.
const LEAST_BYTES: u64 = 64 << 10;
/// Of the blocks that are counted (stat(2)).
const BLOCK_BYTES: u64 = 512;

/// A file may have holes: it takes less room than it is long.
pub fn may_have(metadata: &Metadata) -> bool {
    metadata.blocks() * BLOCK_BYTES < metadata.size()
}

/// The first stretch from `from` to before `until` that is no hole, its first `most` bytes where it is longer; `None`: all is
/// a hole.
///
/// # Errors
/// The kernel's.
pub fn data(file: &File, from: u64, until: u64, most: u64) -> io::Result<Option<(u64, u64)>> {
    let first = next_data(file, from, until)?;
    let begin = match first - from < LEAST_BYTES && first < until {
        true => from,
        false => first,
    };
    if begin >= until {
        return Ok(None);
    }
    let until = until.min(begin.saturating_add(most));
    let mut end = seek(file, SeekFrom::Hole(first))?.min(until);
    loop {
        let next = next_data(file, end, until)?;
        if next - end >= LEAST_BYTES || next >= until {
            return Ok(Some((begin, end)));
        }
        end = seek(file, SeekFrom::Hole(next))?.min(until);
    }
}

/// Where the next data are, from `from` on; `until` where there are none before.
fn next_data(file: &File, from: u64, until: u64) -> io::Result<u64> {
    match seek(file, SeekFrom::Data(from)) {
        Ok(at) => Ok(at.min(until)),
        Err(Errno::NXIO) => Ok(until), // a hole up to the end
        Err(error) => Err(error.into()),
    }
}

/// Makes the bytes from `from` to before `until` read as zeros, and the file at least so long; they take no room where the
/// file system has holes.
///
/// # Errors
/// The kernel's.
pub fn make(file: &File, from: u64, until: u64) -> io::Result<()> {
    let length = file.metadata()?.len();
    if from < length {
        match punch(file, from, until - from) {
            Err(Errno::OPNOTSUPP) => write_zeros(file, from, until.min(length))?,
            punched => punched?,
        }
    }
    match length < until {
        true => file.set_len(until),
        false => Ok(()),
    }
}

fn write_zeros(file: &File, mut from: u64, until: u64) -> io::Result<()> {
    let zeros = vec![0; LEAST_BYTES as usize];
    while from < until {
        let bytes = (until - from).min(LEAST_BYTES);
        file.write_all_at(&zeros[..bytes as usize], from)?;
        from += bytes;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// A file of 16 MiB with data in these places, a page each.
    fn sparse(places: &[u64]) -> File {
        let file = tempfile::tempfile().unwrap();
        file.set_len(16 * MIB).unwrap();
        for place in places {
            file.write_all_at(&[7; 4096], *place).unwrap();
        }
        file
    }

    /// All stretches of data, one after the other.
    fn all(file: &File, from: u64, until: u64) -> Vec<(u64, u64)> {
        let mut at = from;
        let next = || {
            let found = data(file, at, until, u64::MAX).unwrap()?;
            at = found.1;
            Some(found)
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn data_are_found_and_short_holes_are_among_them() {
        let file = sparse(&[MIB, MIB + 8192, 5 * MIB]);
        assert!(may_have(&file.metadata().unwrap()));
        let stretches = [(MIB, MIB + 12288), (5 * MIB, 5 * MIB + 4096)];
        assert_eq!(all(&file, 0, 16 * MIB), stretches);
        assert_eq!(all(&file, MIB - 10, MIB + 10), [(MIB - 10, MIB + 10)]);
        assert_eq!(all(&file, 6 * MIB, 16 * MIB), []);
        let dense = sparse(&[]);
        dense.write_all_at(&vec![1; 16 << 20], 0).unwrap();
        assert!(!may_have(&dense.metadata().unwrap()));
        assert_eq!(all(&dense, 3, 16 * MIB), [(3, 16 * MIB)]);
    }

    /// Else each look at a file of many short holes would go through all of it.
    #[test]
    fn no_more_is_looked_at_than_is_wanted() {
        let places: Vec<_> = (0..1024).map(|page| page * 8192).collect();
        let file = sparse(&places);
        let (begin, end) = data(&file, 0, 16 * MIB, MIB).unwrap().unwrap();
        assert!(begin == 0 && (MIB - 8192..=MIB).contains(&end), "{end}");
        let (begin, end) = data(&file, end, 16 * MIB, MIB).unwrap().unwrap();
        assert!(begin < 2 * MIB && end - begin <= MIB, "{begin} {end}");
        let late = sparse(&[15 * MIB]);
        let found = data(&late, 0, 16 * MIB, 100).unwrap();
        assert_eq!(found, Some((15 * MIB, 15 * MIB + 100)));
    }

    #[test]
    fn what_becomes_a_hole_reads_as_zeros() {
        let file = sparse(&[0, MIB]);
        let byte = |at: u64| {
            let mut byte = [9];
            file.read_exact_at(&mut byte, at).unwrap();
            byte[0]
        };
        make(&file, MIB + 1, 17 * MIB).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 17 * MIB);
        assert_eq!(
            (byte(0), byte(MIB), byte(MIB + 1), byte(17 * MIB - 1)),
            (7, 7, 0, 0)
        );
        write_zeros(&file, 0, 100).unwrap();
        assert_eq!((byte(99), byte(100)), (0, 7));
        assert!(file.metadata().unwrap().blocks() * BLOCK_BYTES < MIB);
    }
}
