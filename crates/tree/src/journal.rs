// SPDX-License-Identifier: MIT OR Apache-2.0
//! The journal of a part: which stretches of it were written, so that a transfer that ended goes on.
//!
//! ```text
//! header: "fatpath1" | file: BLAKE3 of path, size, time | boot: this boot of the kernel, 16 bytes
//! record: from u64 | until u64 | first 8 bytes of BLAKE3 of header and record      from = 2^64-1: a mark
//! ```
//!
//! What was written before a process died is in the kernel's memory: its records count while the same kernel runs. After a
//! reboot only those count that a mark covers: the data were synced before it was written. The first record that does not
//! verify ends the journal, as a torn write leaves it.

use crate::Ranges;
use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::Arc;

const MAGIC: &[u8; 8] = b"fatpath1";
/// Bytes of the header.
pub const HEADER_BYTES: usize = 8 + 32 + 16;
/// Bytes of a record.
pub const RECORD_BYTES: usize = 24;
const MARK: u64 = u64::MAX;
/// A journal that is longer is not read to its end: 11 million records, one for each MiB at least and for each hole.
const MOST_BYTES: u64 = 256 << 20;

/// What a journal belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Which file, of which size and time.
    pub file: [u8; 32],
    /// Which boot of the kernel.
    pub boot: [u8; 16],
}

impl Header {
    /// Its bytes.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..40].copy_from_slice(&self.file);
        bytes[40..].copy_from_slice(&self.boot);
        bytes
    }

    /// The bytes of a record of the journal that it begins.
    pub fn record(&self, from: u64, until: u64) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        bytes[..8].copy_from_slice(&from.to_le_bytes());
        bytes[8..16].copy_from_slice(&until.to_le_bytes());
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.encode()).update(&bytes[..16]);
        bytes[16..].copy_from_slice(&hasher.finalize().as_bytes()[..8]);
        bytes
    }
}

/// What a journal says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// What is there.
    pub ranges: Ranges,
    /// Records that hold, marks among them; 0: none, or it is another file's.
    pub records: u64,
    /// Stretches among them, as [`Journal::mark`] counts.
    pub stretches: u64,
    /// It was written under this boot, and may go on.
    pub is_current: bool,
}

/// Reads the bytes of a journal, for `now`.
pub fn recover(bytes: &[u8], now: &Header) -> Recovered {
    let written = Header {
        boot: match bytes.get(40..HEADER_BYTES).map(TryInto::try_into) {
            Some(Ok(boot)) => boot,
            _ => return Recovered::default(),
        },
        ..*now
    };
    if bytes[..HEADER_BYTES] != written.encode() {
        return Recovered::default();
    }
    let mut recovered = Recovered {
        is_current: written.boot == now.boot,
        ..Recovered::default()
    };
    let (mut stretches, mut synced) = (Vec::new(), 0);
    for record in bytes[HEADER_BYTES..].chunks_exact(RECORD_BYTES) {
        let number =
            |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().unwrap_or_default());
        let (from, until) = (number(0), number(8));
        if written.record(from, until) != *record {
            break;
        }
        recovered.records += 1;
        match from {
            MARK => synced = until.min(stretches.len() as u64),
            _ => stretches.push((from, until)),
        }
    }
    recovered.stretches = stretches.len() as u64;
    let hold = if recovered.is_current {
        recovered.stretches
    } else {
        synced
    };
    for (from, until) in &stretches[..hold as usize] {
        recovered.ranges.insert(*from, *until);
    }
    recovered
}

/// A journal that is being written.
#[derive(Debug)]
pub struct Journal {
    file: Arc<File>,
    header: Header,
    stretches: u64,
}

impl Journal {
    /// Reads what `file` (open for reading and appending) has, and goes on with it if that holds under this boot;
    /// else begins it anew with what holds. Gives what is there.
    ///
    /// # Errors
    /// The file system's.
    pub fn open(mut file: File, header: Header) -> io::Result<(Journal, Ranges)> {
        let mut bytes = Vec::new();
        (&mut file).take(MOST_BYTES).read_to_end(&mut bytes)?;
        let recovered = recover(&bytes, &header);
        let mut journal = Journal {
            file: Arc::new(file),
            header,
            stretches: recovered.stretches,
        };
        if recovered.is_current {
            let whole = HEADER_BYTES as u64 + recovered.records * RECORD_BYTES as u64;
            journal.file.set_len(whole)?;
            return Ok((journal, recovered.ranges));
        }
        journal.stretches = 0;
        journal.file.set_len(0)?;
        (&*journal.file).write_all(&header.encode())?;
        journal.note(&recovered.ranges)?;
        // What was synced before a reboot is.
        journal.mark(journal.stretches)?;
        Ok((journal, recovered.ranges))
    }

    /// These stretches were written.
    ///
    /// # Errors
    /// The file system's.
    pub fn note(&mut self, written: &Ranges) -> io::Result<()> {
        let mut bytes = Vec::new();
        for (from, until) in written.iter() {
            bytes.extend_from_slice(&self.header.record(from, until));
            self.stretches += 1;
        }
        (&*self.file).write_all(&bytes)
    }

    /// Stretches that were noted.
    pub fn stretches(&self) -> u64 {
        self.stretches
    }

    /// The first `stretches` of them are synced.
    ///
    /// # Errors
    /// The file system's.
    pub fn mark(&mut self, stretches: u64) -> io::Result<()> {
        (&*self.file).write_all(&self.header.record(MARK, stretches))
    }

    /// Its file, to be synced.
    pub fn file(&self) -> Arc<File> {
        self.file.clone()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEADER: Header = Header {
        file: [7; 32],
        boot: [1; 16],
    };

    fn opened(path: &std::path::Path) -> File {
        let mut options = File::options();
        options.read(true).append(true).create(true);
        options.open(path).unwrap()
    }

    fn one(from: u64, until: u64) -> Ranges {
        let mut ranges = Ranges::default();
        ranges.insert(from, until);
        ranges
    }

    #[test]
    fn under_the_same_boot_all_counts_and_after_another_what_was_synced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let (mut journal, ranges) = Journal::open(opened(&path), HEADER).unwrap();
        assert_eq!(ranges, Ranges::default());
        journal.note(&one(0, 100)).unwrap();
        let synced = journal.stretches();
        journal.note(&one(200, 300)).unwrap();
        journal.mark(synced).unwrap();
        drop(journal);
        let (_, ranges) = Journal::open(opened(&path), HEADER).unwrap();
        assert_eq!(ranges.iter().collect::<Vec<_>>(), [(0, 100), (200, 300)]);
        let rebooted = Header {
            boot: [2; 16],
            ..HEADER
        };
        for _ in 0..2 {
            let (_, ranges) = Journal::open(opened(&path), rebooted).unwrap();
            assert_eq!(ranges, one(0, 100));
        }
        let again = Header {
            boot: [3; 16],
            ..HEADER
        };
        assert_eq!(Journal::open(opened(&path), again).unwrap().1, one(0, 100));
        let other = Header {
            file: [8; 32],
            ..HEADER
        };
        assert_eq!(
            Journal::open(opened(&path), other).unwrap().1,
            Ranges::default()
        );
    }

    proptest! {
        /// Cut off anywhere, or with a bit flipped anywhere: what is recovered was written, and a cut journal loses only its end.
        #[test]
        fn a_damaged_journal_claims_nothing_that_was_not_written(
            stretches in prop::collection::vec((0u64..1000, 1u64..50), 0..20),
            cut in any::<prop::sample::Index>(),
            bit in any::<prop::sample::Index>(),
        ) {
            let mut bytes = HEADER.encode().to_vec();
            let mut all = Ranges::default();
            for (from, length) in &stretches {
                bytes.extend_from_slice(&HEADER.record(*from, from + length));
                all.insert(*from, from + length);
            }
            prop_assert_eq!(recover(&bytes, &HEADER).ranges, all.clone());
            let cut = cut.index(bytes.len());
            let kept = (cut.saturating_sub(HEADER_BYTES)) / RECORD_BYTES;
            prop_assert_eq!(recover(&bytes[..cut], &HEADER).records, kept as u64);
            let bit = bit.index(8 * bytes.len());
            bytes[bit / 8] ^= 1 << (bit % 8);
            for (from, until) in recover(&bytes, &HEADER).ranges.iter() {
                let mut with = all.clone();
                with.insert(from, until);
                prop_assert_eq!(&with, &all);
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            recover(&bytes, &HEADER);
            recover(&[&HEADER.encode()[..], &bytes].concat(), &HEADER);
        }
    }
}
