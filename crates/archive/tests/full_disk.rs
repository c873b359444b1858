// SPDX-License-Identifier: MIT OR Apache-2.0
//! A disk that is full: events are refused and counted, what was durable stays, and writing goes on when there is
//! space again.

#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

use fatpath_archive::{Bounds, Event, Kind, Origin, Spool, SpoolError, segment};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::path::Path;

const DISK_BYTES: u64 = 1 << 20;

/// A file system of 1 MiB, until it is dropped.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<SmallDisk> {
        let dir = tempfile::tempdir().unwrap();
        let size = std::ffi::CString::new(format!("size={DISK_BYTES}")).unwrap();
        let mounted = mount(
            c"tmpfs",
            dir.path(),
            c"tmpfs",
            MountFlags::empty(),
            size.as_c_str(),
        );
        mounted.ok().map(|()| SmallDisk(dir))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = unmount(self.0.path(), UnmountFlags::DETACH);
    }
}

fn open(folder: &Path) -> Spool {
    let origin = Origin {
        host: "here".into(),
        boot: "1".into(),
    };
    // The bound is beyond what the disk has.
    Spool::open(folder, origin, Bounds::of(64 << 20), 1).unwrap()
}

fn event() -> Event {
    Event {
        time_us: 7,
        name: "flow.end".into(),
        peer: None,
        rule: None,
        value: None,
        weight: 1,
        body: "x".repeat(1000),
    }
}

fn sequences(spool: &Spool) -> Vec<u64> {
    let mut all = Vec::new();
    while let Some(claimed) = spool.sealed().claim_oldest() {
        let bytes = claimed.read().unwrap();
        all.extend(
            segment::read(&bytes)
                .unwrap()
                .1
                .map(|(sequence, _)| sequence),
        );
        claimed.remove().unwrap();
    }
    all.sort_unstable();
    all
}

#[test]
fn a_full_disk_costs_only_what_is_refused() {
    let Some(disk) = SmallDisk::mount() else {
        println!("skipped: only root may mount a small disk");
        return;
    };
    let mut spool = open(&disk.0.path().join("spool"));
    let ballast = disk.0.path().join("ballast");
    std::fs::write(&ballast, vec![0; 600 << 10]).unwrap();
    let (mut acknowledged, mut accepted) = (0, Vec::new());
    for _ in 0..1000 {
        if let Ok(sequence) = spool.append(Kind::Flow, &event()) {
            accepted.push(sequence);
        }
        if spool.sync(7).is_ok() {
            acknowledged = accepted.len();
        }
    }
    assert!((300..600).contains(&acknowledged), "{acknowledged}");
    let refused = spool.append(Kind::Flow, &event());
    assert!(matches!(refused, Err(SpoolError::File(..))), "{refused:?}");
    assert_eq!(
        spool.status().dropped[&Kind::Flow] as usize,
        1001 - accepted.len()
    );
    std::fs::remove_file(&ballast).unwrap();
    spool.seal_all(7).unwrap();
    assert_eq!(sequences(&spool), accepted);
}

#[test]
fn a_full_disk_gives_up_what_matters_less() {
    let Some(disk) = SmallDisk::mount() else {
        println!("skipped: only root may mount a small disk");
        return;
    };
    let mut spool = open(&disk.0.path().join("spool"));
    // Twice what the disk has: from some moment on each new sample replaces the oldest ones.
    for _ in 0..2000 {
        let _ = spool.append(Kind::Sample, &event());
        let _ = spool.seal_all(7);
    }
    for _ in 0..100 {
        spool.append(Kind::Decision, &event()).unwrap();
    }
    spool.seal_all(7).unwrap();
    assert!(spool.status().dropped[&Kind::Sample] > 1);
    assert!(!spool.status().dropped.contains_key(&Kind::Decision));
}
