// SPDX-License-Identifier: MIT OR Apache-2.0
//! How fast the disks at both ends are, measured at the beginning of a large transfer, in a thread of its own: while names are
//! exchanged and the first data go, so that nothing waits for it. The sender reads the beginning of what it will send anyway; the receiver
//! writes and syncs a file without a name. Nothing that goes wrong here ends a transfer: then nothing is known.

use crate::DiskFigures;
use fatpath_tree::system;
use fatpath_units::show_rate;
use rustix::fs::fstatvfs;
#[cfg(target_os = "linux")]
use rustix::fs::{Mode, OFlags, openat};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// A transfer of so many bytes is large: at 10 Gb/s it lasts a second, four times what this takes.
pub const LARGE_BYTES: u64 = 1 << 30;
/// No more is read, or written.
const MOST_BYTES: u64 = 64 << 20;
/// Nor for longer, but for what was begun.
const MOST_TIME: Duration = Duration::from_millis(250);
/// Read at a time; written and synced at a time: a sync of less is longer than the writing, where the disk turns.
const READ_BYTES: usize = 1 << 20;
const WRITE_BYTES: usize = 8 << 20;
/// Where a file system has less room, nothing is written to find out.
const LEAST_ROOM_BYTES: u64 = 1 << 30;
/// Files whose beginnings are read, at most: small ones tell of a disk that opens many.
pub const MOST_FILES: usize = 64;

/// A measurement that runs, or that gave nothing.
pub struct Measuring(mpsc::Receiver<DiskFigures>);

impl Measuring {
    /// What was measured, once.
    pub fn take(&self) -> Option<DiskFigures> {
        self.0.try_recv().ok()
    }

    fn start(measure: impl FnOnce() -> io::Result<DiskFigures> + Send + 'static) -> Measuring {
        let (found, measured) = mpsc::channel();
        // A host that has no thread left for it goes without.
        let _ = thread::Builder::new().spawn(move || measure().map(|figures| found.send(figures)));
        Measuring(measured)
    }

    /// Reads the beginnings of files that `open` gives, until it gives none.
    pub fn reads(open: impl FnMut() -> Option<io::Result<File>> + Send + 'static) -> Measuring {
        Measuring::start(move || read_all(open))
    }

    /// Writes into the file system that has this folder.
    pub fn writes(folder: Arc<OwnedFd>) -> Measuring {
        Measuring::start(move || write_all(&folder))
    }
}

/// What is left to be done, of bytes and of time.
struct Bounds {
    begun: Instant,
    bytes: u64,
}

impl Bounds {
    fn start() -> Bounds {
        let begun = Instant::now();
        Bounds { begun, bytes: 0 }
    }

    fn are_reached(&self) -> bool {
        self.bytes >= MOST_BYTES || self.begun.elapsed() >= MOST_TIME
    }

    fn figures(&self, from_memory: u64) -> DiskFigures {
        DiskFigures {
            bytes: self.bytes,
            from_memory_bytes: from_memory.min(self.bytes),
            took_us: self.begun.elapsed().as_micros() as u64,
        }
    }
}

fn read_all(mut open: impl FnMut() -> Option<io::Result<File>>) -> io::Result<DiskFigures> {
    let mut buffer = vec![0; READ_BYTES];
    let (mut bounds, before) = (Bounds::start(), fetched_bytes()?);
    while !bounds.are_reached()
        && let Some(file) = open()
    {
        let (file, mut at) = (file?, 0);
        while !bounds.are_reached() {
            let read = file.read_at(&mut buffer, at)? as u64;
            if read == 0 {
                break;
            }
            at += read;
            bounds.bytes += read;
        }
    }
    let fetched = fetched_bytes()? - before;
    Ok(bounds.figures(bounds.bytes.saturating_sub(fetched)))
}

/// What the kernel has fetched from disks for this thread so far: what it read beyond was in memory (`read_bytes` of proc(5)).
fn fetched_bytes() -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/io")?;
    let mut lines = text.lines();
    let bytes = lines.find_map(|line| line.strip_prefix("read_bytes: ")?.parse().ok());
    bytes.ok_or_else(|| io::Error::other("the kernel does not count what threads read"))
}

fn write_all(folder: &OwnedFd) -> io::Result<DiskFigures> {
    if room_bytes(folder)? < LEAST_ROOM_BYTES {
        return Err(io::ErrorKind::StorageFull.into());
    }
    let (file, mut bytes) = (nameless(folder)?, vec![0; WRITE_BYTES]);
    let mut noise = blake3::Hasher::new().finalize_xof();
    let mut bounds = Bounds::start();
    while !bounds.are_reached() {
        noise.fill(&mut bytes); // no file system makes it shorter
        file.write_all_at(&bytes, bounds.bytes)?;
        system::sync_data(&file)?;
        bounds.bytes += bytes.len() as u64;
    }
    Ok(bounds.figures(0))
}

fn room_bytes(folder: &OwnedFd) -> io::Result<u64> {
    let found = fstatvfs(folder)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// A disk that is slower than the path, as a train found it, or than what may be sent, may be what holds the transfer back; in
/// words. `what` it does, and the rates, bits a second.
pub fn slower(
    what: &str,
    disk_bps: Option<u64>,
    train_bps: Option<u64>,
    limit_bps: Option<u64>,
) -> Option<String> {
    let bounds = [
        (train_bps, "the path carries about"),
        (limit_bps, "--limit allows"),
    ];
    let bounds = bounds
        .into_iter()
        .filter_map(|(bps, who)| Some((bps?, who)));
    let (least_bps, who) = bounds.min()?;
    let disk_bps = disk_bps.filter(|disk_bps| *disk_bps < least_bps)?;
    Some(format!(
        "{what} at {}, and {who} {}: the disk may hold the transfer back",
        show_rate(disk_bps),
        show_rate(least_bps)
    ))
}

/// A file that is gone when it is closed, whatever ends the program.
#[cfg(target_os = "linux")]
fn nameless(folder: &OwnedFd) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::TMPFILE;
    let file = openat(folder, ".", flags, Mode::RUSR | Mode::WUSR)?;
    Ok(File::from(file))
}

#[cfg(not(target_os = "linux"))]
fn nameless(_folder: &OwnedFd) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests {
    use super::*;
    use std::fs;

    fn folder() -> (tempfile::TempDir, OwnedFd) {
        let folder = tempfile::tempdir().unwrap();
        let opened = File::open(folder.path()).unwrap();
        (folder, opened.into())
    }

    #[test]
    fn a_disk_that_is_slower_than_all_else_is_told() {
        let slow = |mbps: u64, train_bps, limit_bps| {
            let disk_bps = Some(mbps * 1_000_000);
            slower("the receiver's disk writes", disk_bps, train_bps, limit_bps)
        };
        assert_eq!(slow(1, None, None), None, "nothing to compare with");
        let train_bps = Some(900_000_000);
        let expected = "the receiver's disk writes at 400 Mb/s, and the path carries about 900 Mb/s: the disk may hold the \
                        transfer back";
        assert_eq!(slow(400, train_bps, None).as_deref(), Some(expected));
        assert_eq!(slow(901, train_bps, None), None);
        let limit_bps = Some(300_000_000);
        assert_eq!(slow(400, train_bps, limit_bps), None, "the limit will be");
        let told = slow(200, train_bps, limit_bps);
        assert!(told.is_some_and(|told| told.contains("--limit allows 300 Mb/s")));
        assert_eq!(slower("", None, train_bps, None), None);
    }

    #[test]
    fn what_is_written_is_bounded_and_leaves_nothing() {
        let (path, folder) = folder();
        if room_bytes(&folder).unwrap() < LEAST_ROOM_BYTES {
            println!("skipped: the file system has little room");
            return;
        }
        let written = write_all(&folder).unwrap();
        assert!((1..=MOST_BYTES).contains(&written.bytes), "{written:?}");
        assert_eq!(written.from_memory_bytes, 0);
        assert_eq!(fs::read_dir(path.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_read_is_bounded_and_what_was_in_memory_is_told() {
        let (path, _) = folder();
        let name = path.path().join("file");
        fs::write(&name, vec![1; 3 << 20]).unwrap();
        let mut files = 2;
        let read = read_all(|| {
            files -= 1;
            (files >= 0).then(|| File::open(&name))
        });
        let read = read.unwrap();
        assert_eq!((read.bytes, read.from_memory_bytes), (6 << 20, 6 << 20));
        let endless = read_all(|| Some(File::open("/dev/zero"))).unwrap();
        assert!((1..=MOST_BYTES).contains(&endless.bytes), "{endless:?}");
        let gone = read_all(|| Some(File::open(path.path().join("none"))));
        assert!(gone.is_err());
    }

    #[test]
    fn a_measurement_that_fails_gives_nothing() {
        let measuring = Measuring::start(|| Err(io::Error::other("no")));
        while let Err(mpsc::TryRecvError::Empty) = measuring.0.try_recv() {
            thread::yield_now();
        }
        assert!(measuring.take().is_none());
    }
}
