// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a thread that reads files again and hashes them does at this moment, for another one that waits for it.

use crate::receiver::Finishing;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What is in memory is read faster, a mebibyte at a time.
const SLOW: Duration = Duration::from_millis(1);

/// Its thread writes, others read.
pub struct Hashing {
    begun: Instant,
    /// Since when it reads, from `begun` on; 0: it does not.
    reading_us: AtomicU64,
    /// It reads or hashes.
    busy: AtomicU64,
    unstored: AtomicU64,
}

/// A whole file whose checksum is known, until it is stored.
pub struct Unstored(Arc<Hashing>);

impl Unstored {
    /// One of those that this thread hashes.
    pub fn of(hashing: &Arc<Hashing>) -> Unstored {
        hashing.unstored.fetch_add(1, Ordering::Relaxed);
        Unstored(hashing.clone())
    }
}

impl Drop for Unstored {
    fn drop(&mut self) {
        self.0.unstored.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Default for Hashing {
    fn default() -> Hashing {
        Hashing {
            begun: Instant::now(),
            reading_us: AtomicU64::new(0),
            busy: AtomicU64::new(0),
            unstored: AtomicU64::new(0),
        }
    }
}

impl Hashing {
    /// Does what the thread does of a file.
    pub fn busy<T>(&self, work: impl FnOnce() -> T) -> T {
        self.busy.fetch_add(1, Ordering::Relaxed);
        let done = work();
        self.busy.fetch_sub(1, Ordering::Relaxed);
        done
    }

    /// Reads a mebibyte or less.
    pub fn read<T>(&self, read: impl FnOnce() -> T) -> T {
        let since_us = self.begun.elapsed().as_micros() as u64;
        self.reading_us.store(since_us.max(1), Ordering::Relaxed);
        let done = read();
        self.reading_us.store(0, Ordering::Relaxed);
        done
    }

    /// It reads or hashes.
    pub fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed) > 0
    }

    /// What is done for files that are whole, and of which it is known what the sender read.
    pub fn finishing(&self) -> Finishing {
        if self.unstored.load(Ordering::Relaxed) == 0 {
            return Finishing::Nothing;
        }
        match self.is_busy() && !self.waits_for_disk() {
            true => Finishing::Processor,
            false => Finishing::Disk,
        }
    }

    /// It reads from a disk.
    pub fn waits_for_disk(&self) -> bool {
        let since_us = self.reading_us.load(Ordering::Relaxed);
        let now_us = self.begun.elapsed().as_micros() as u64;
        since_us > 0 && now_us.saturating_sub(since_us) > SLOW.as_micros() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn what_reads_for_long_waits_for_a_disk() {
        let hashing = Hashing::default();
        assert!(!hashing.is_busy());
        hashing.busy(|| {
            assert!(hashing.is_busy() && !hashing.waits_for_disk());
            hashing.read(|| {
                thread::sleep(5 * SLOW);
                assert!(hashing.waits_for_disk());
            });
            assert!(!hashing.waits_for_disk());
        });
        assert!(!hashing.is_busy());
    }

    #[test]
    fn files_are_finished_while_one_is_not_stored() {
        let hashing = Arc::new(Hashing::default());
        assert_eq!(hashing.finishing(), Finishing::Nothing);
        let files = [(); 2].map(|()| Unstored::of(&hashing));
        assert_eq!(hashing.finishing(), Finishing::Disk, "synced and renamed");
        let hashed = hashing.clone();
        assert_eq!(hashing.busy(|| hashed.finishing()), Finishing::Processor);
        drop(files);
        assert_eq!(hashing.finishing(), Finishing::Nothing);
    }
}
