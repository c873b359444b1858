// SPDX-License-Identifier: MIT OR Apache-2.0
//! A folder of traces: what is written is read back, bounds hold, and neither crash nor full disk costs more
//! than it must.

#![allow(clippy::unwrap_used)]

mod support;

use fatpath_record::{Bounds, Recorded, Recorder, Recovered, read, recover};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::row;

/// Groups of ten rows.
const SMALL: Bounds = Bounds {
    file_bytes: 1 << 30,
    total_bytes: 1 << 40,
    files: usize::MAX,
    group_rows: 10,
    group_us: i64::MAX,
};

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<_> = entries
        .map(|entry| name(entry).into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn points(folder: &Path, name: &str) -> usize {
    let flows = read(&folder.join(name)).unwrap();
    flows.iter().map(|flow| flow.points.len()).sum()
}

#[test]
fn what_is_taken_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::begin(folder.path(), "t", SMALL).unwrap();
    for n in 0..25 {
        assert_eq!(recorder.take(row(7, n)), None);
        assert_eq!(recorder.take(row(8, n)), None);
    }
    let recorded = recorder.finish().unwrap();
    assert_eq!((recorded.written_rows, recorded.lost_rows), (50, 0));
    assert_eq!(files(folder.path()), ["t-0001.parquet"]);

    let flows = read(&folder.path().join("t-0001.parquet")).unwrap();
    let [seven, eight] = &flows[..] else {
        panic!("two flows: {flows:?}")
    };
    assert_eq!((seven.cookie, eight.cookie), (7, 8));
    assert_eq!(seven.remote, "2001:db8::7 5201");
    assert_eq!(seven.law, "fp_scalable");
    assert_eq!(seven.begin_us, support::BEGIN_US);
    assert_eq!(
        seven.ends.unwrap()[1],
        "[2001:db8::7]:5201".parse().unwrap()
    );
    assert!(seven.mss_bytes > 0);
    assert_eq!(seven.points.len(), 25);
    assert_eq!(seven.congestion_s, [1.0, 2.0]);
    let last = seven.points[24];
    assert_eq!(
        (last.t_s, last.cwnd_pkts, last.srtt_us),
        (2.4, 103, 100_500)
    );
    assert_eq!((last.rtt_us, last.ssthresh_pkts), (Some(100_024), Some(50)));
    assert_eq!((last.in_flight_pkts, last.rate_bps.round()), (86, 1e7));
    assert_eq!(last.average_bps.round(), 1e7);
    assert_eq!(
        (seven.points[3].rtt_us, seven.points[3].ssthresh_pkts),
        (None, None)
    );
    assert_eq!(seven.points[10].retransmitted_pkts, 1);
}

#[test]
fn the_oldest_file_goes() {
    let folder = tempfile::tempdir().unwrap();
    // Every group fills a file; two of them fit.
    let bounds = Bounds {
        file_bytes: 1,
        total_bytes: 60_000,
        ..SMALL
    };
    let mut recorder = Recorder::begin(folder.path(), "t", bounds).unwrap();
    for n in 0..60 {
        assert_eq!(recorder.take(row(7, n)), None);
    }
    let recorded = recorder.finish().unwrap();
    assert_eq!(recorded.finished, 6);
    let names = files(folder.path());
    assert_eq!(names.len() as u64, 6 - recorded.removed);
    assert!((1..6).contains(&names.len()), "{names:?}");
    assert_eq!(names.last().unwrap(), "t-0006.parquet");
    let bytes: u64 = names
        .iter()
        .map(|name| folder.path().join(name).metadata().unwrap().len())
        .sum();
    assert!(bytes <= 60_000, "{bytes}");
}

/// All that is in the folder, the ends of unfinished files included.
fn bytes_in(folder: &Path) -> u64 {
    let bytes = |name: &String| folder.join(name).metadata().unwrap().len();
    files(folder).iter().map(bytes).sum()
}

#[test]
fn bounds_hold_at_every_moment_over_recorders() {
    let folder = tempfile::tempdir().unwrap();
    let bounds = Bounds {
        file_bytes: 150_000,
        total_bytes: 450_000,
        files: 3,
        ..SMALL
    };
    let (mut most_bytes, mut removed) = (0, 0);
    for time in ["a", "b", "c"] {
        let name = format!("t-{time}");
        let begun = Recorder::begin(folder.path(), &name, bounds).unwrap();
        let mut recorder = begun.after_earlier("t-").unwrap();
        recorder.prune().unwrap();
        for n in 0..300 {
            assert_eq!(recorder.take(row(7, n)), None);
            assert!(
                files(folder.path()).len() <= 3 + 1,
                "a part has its end beside it"
            );
            most_bytes = most_bytes.max(bytes_in(folder.path()));
        }
        assert_eq!(recorder.close(), None);
        assert_eq!(recorder.kept().1, bytes_in(folder.path()));
        removed += recorder.recorded().removed;
    }
    // A group is 20,000 or so: a file may end so much later.
    assert!(most_bytes <= 450_000 + 40_000, "{most_bytes}");
    assert!(
        most_bytes > 200_000 && removed > 3,
        "{most_bytes}, {removed}"
    );
    let names = files(folder.path());
    assert!(
        names.iter().all(|name| name.starts_with("t-c")),
        "{names:?}"
    );
}

#[test]
fn earlier_files_of_others_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    for name in [
        "t-9998.parquet",
        "t-9999.parquet",
        "t-10000.parquet",
        "mine.parquet",
        "t-4.txt",
    ] {
        std::fs::write(folder.path().join(name), "PAR1").unwrap();
    }
    let bounds = Bounds { files: 2, ..SMALL };
    let recorder = Recorder::begin(folder.path(), "t-5", bounds).unwrap();
    let mut recorder = recorder.after_earlier("t-").unwrap();
    recorder.prune().unwrap();
    assert_eq!(recorder.recorded().removed, 2);
    let names = files(folder.path());
    assert_eq!(names, ["mine.parquet", "t-10000.parquet", "t-4.txt"]);
}

#[test]
fn a_file_that_cannot_be_removed_keeps_no_other_one() {
    let folder = tempfile::tempdir().unwrap();
    let place = |number: u32| folder.path().join(format!("t-{number}.parquet"));
    (1..=4).for_each(|number| std::fs::write(place(number), "PAR1").unwrap());
    let bounds = Bounds { files: 2, ..SMALL };
    let recorder = Recorder::begin(folder.path(), "t-5", bounds).unwrap();
    let mut recorder = recorder.after_earlier("t-").unwrap();
    std::fs::remove_file(place(1)).unwrap();
    std::fs::create_dir(place(1)).unwrap();
    let error = recorder.prune().unwrap_err();
    assert!(error.to_string().contains("t-1.parquet"), "{error}");
    assert_eq!(recorder.recorded().removed, 2);
    assert_eq!(files(folder.path()), ["t-1.parquet", "t-4.parquet"]);
    recorder.prune().unwrap();
}

#[test]
fn a_footer_that_says_more_than_there_is_changes_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let part = folder.path().join("t-1.parquet.part");
    std::fs::write(&part, "PAR1").unwrap();
    let footer = [1_u64 << 40, 0].map(u64::to_le_bytes).concat();
    std::fs::write(folder.path().join("t-1.parquet.footer"), footer).unwrap();
    let recovered = recover(folder.path()).unwrap();
    assert!(
        matches!(&recovered[..], [Recovered::Failed(path, _)] if path.ends_with("t-1.parquet")),
        "{recovered:?}"
    );
    assert_eq!(std::fs::read(&part).unwrap(), b"PAR1");
}

#[test]
fn a_file_is_closed_and_the_next_sample_begins_another() {
    let folder = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::begin(folder.path(), "t", SMALL).unwrap();
    assert_eq!((recorder.close(), recorder.flush()), (None, None));
    for part in 0..2 {
        assert_eq!(recorder.take(row(7, part)), None);
        assert_eq!(recorder.flush(), None);
        assert_eq!(recorder.close(), None);
    }
    assert_eq!(files(folder.path()), ["t-0001.parquet", "t-0002.parquet"]);
    assert_eq!(recorder.recorded().written_rows, 2);
}

#[test]
fn a_group_may_read_what_is_shared_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let own = rustix::process::getegid().as_raw();
    let recorder = Recorder::begin(folder.path(), "t", SMALL).unwrap();
    let mut recorder = recorder.shared_with(Some(own));
    assert_eq!(recorder.take(row(7, 0)), None);
    recorder.finish().unwrap();
    let meta = folder.path().join("t-0001.parquet").metadata().unwrap();
    assert_eq!((meta.mode() & 0o777, meta.gid()), (0o640, own));
}

/// The first group is on disk with its end, the second one without, because of what is in the way.
fn without_its_last_end(folder: &Path) -> (Recorder, PathBuf) {
    let mut recorder = Recorder::begin(folder, "t", SMALL).unwrap();
    (0..10).for_each(|n| assert_eq!(recorder.take(row(7, n)), None));
    let in_the_way = folder.join("t-0001.parquet.footer.new");
    std::fs::create_dir(&in_the_way).unwrap();
    let said: Vec<String> = (10..20).filter_map(|n| recorder.take(row(7, n))).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    (recorder, in_the_way)
}

#[test]
fn a_group_whose_end_came_late_is_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let (mut recorder, in_the_way) = without_its_last_end(folder.path());
    std::fs::remove_dir(&in_the_way).unwrap();
    let said = recorder.close().unwrap();
    assert!(said.contains("written again"), "{said}");
    assert_eq!(recorder.recorded().written_rows, 20);
    assert_eq!(points(folder.path(), "t-0001.parquet"), 20);
}

#[test]
fn a_group_whose_end_never_came_is_lost_and_its_file_counts_for_the_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let (mut recorder, _in_the_way) = without_its_last_end(folder.path());
    assert_eq!(recorder.close(), None, "it was said");
    let recorded = recorder.recorded();
    assert_eq!((recorded.written_rows, recorded.lost_rows), (10, 10));
    assert_eq!(recorder.kept().0, 1);
    assert_eq!(points(folder.path(), "t-0001.parquet"), 10);
}

#[test]
fn a_crash_costs_the_last_group() {
    let folder = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::begin(folder.path(), "t", SMALL).unwrap();
    for n in 0..25 {
        recorder.take(row(7, n));
    }
    // Dropped, not finished: as a process that was killed.
    drop(recorder);
    assert_eq!(
        files(folder.path()),
        ["t-0001.parquet.footer", "t-0001.parquet.part"]
    );
    // A group that was being written.
    let part = folder.path().join("t-0001.parquet.part");
    let mut bytes = std::fs::read(&part).unwrap();
    bytes.extend([0; 100]);
    std::fs::write(&part, bytes).unwrap();

    let finished = folder.path().join("t-0001.parquet");
    assert_eq!(
        recover(folder.path()).unwrap(),
        [Recovered::Finished(finished)]
    );
    assert_eq!(files(folder.path()), ["t-0001.parquet"]);
    assert_eq!(points(folder.path(), "t-0001.parquet"), 20);
}

#[test]
fn what_never_had_a_group_is_removed_and_what_runs_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::begin(folder.path(), "t", SMALL).unwrap();
    (0..10).for_each(|n| assert_eq!(recorder.take(row(7, n)), None));
    std::fs::write(folder.path().join("u-0001.parquet.part"), "PAR1").unwrap();
    let removed = folder.path().join("u-0001.parquet");
    assert_eq!(
        recover(folder.path()).unwrap(),
        [Recovered::Removed(removed)]
    );
    recorder.finish().unwrap();
    assert_eq!(files(folder.path()), ["t-0001.parquet"]);
    assert_eq!(points(folder.path(), "t-0001.parquet"), 10);
}

/// In a folder that others may write to.
#[test]
fn what_others_left_is_not_written_to_and_traces_are_their_owners() {
    let folder = tempfile::tempdir().unwrap();
    let precious = folder.path().join("precious");
    std::fs::write(&precious, "as it was").unwrap();
    // Finished, this would put "evil" behind the first two bytes.
    let link = |name: &str| std::os::unix::fs::symlink(&precious, folder.path().join(name));
    link("u-0001.parquet.part").unwrap();
    let end = [2u64.to_le_bytes().as_slice(), b"evil"].concat();
    std::fs::write(folder.path().join("u-0001.parquet.footer"), end).unwrap();
    link("t-0001.parquet.footer.new").unwrap();
    assert_eq!(recover(folder.path()).unwrap(), []);

    let mut recorder = Recorder::begin(folder.path(), "t", SMALL).unwrap();
    (0..10).for_each(|n| assert_eq!(recorder.take(row(7, n)), None));
    recorder.finish().unwrap();
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "as it was");
    let meta = folder.path().join("t-0001.parquet").metadata().unwrap();
    assert_eq!(meta.mode() & 0o777, 0o600);
}

#[test]
fn a_clock_that_is_set_back_costs_no_row_and_no_file() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let mut recorder = Recorder::begin(folder.path(), "t", SMALL).unwrap();
        for n in [100, 101, 102, 3, 4, 5] {
            assert_eq!(recorder.take(row(7, n)), None);
        }
        let recorded = recorder.finish().unwrap();
        assert_eq!((recorded.written_rows, recorded.lost_rows), (6, 0));
    }
    // The second trace had the first one's name.
    assert_eq!(files(folder.path()), ["t-0001.parquet", "t-0002.parquet"]);
    for name in files(folder.path()) {
        assert_eq!(points(folder.path(), &name), 6);
    }
}

/// A file system of its own, that is full soon.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(bytes: u64) -> Option<SmallDisk> {
        let place = tempfile::tempdir().unwrap().keep();
        let size = format!("size={bytes}");
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(&place)
            .output();
        match mount {
            Ok(output) if output.status.success() => Some(SmallDisk(place)),
            _ => {
                let _ = std::fs::remove_dir(&place);
                None
            }
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn a_full_disk_is_counted_and_said_once_and_so_is_its_end() {
    let Some(disk) = SmallDisk::mount(200 << 10) else {
        println!("skipped: mounting a small file system needs root");
        return;
    };
    let ballast = disk.0.join("ballast");
    let mut recorder = Recorder::begin(&disk.0, "t", SMALL).unwrap();
    let mut take = |from: u64, to: u64| -> Vec<String> {
        (from..to)
            .filter_map(|n| recorder.take(row(7, n)))
            .collect()
    };
    assert_eq!(take(0, 10), [""; 0]);
    let room = std::fs::write(&ballast, vec![0; 1 << 20]);
    assert!(room.is_err(), "the disk is full");
    let said = take(10, 40);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("samples are lost"), "{said:?}");
    std::fs::remove_file(&ballast).unwrap();
    let said = take(40, 60);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].contains("written again, 20 samples lost"),
        "{said:?}"
    );
    let recorded: Recorded = recorder.finish().unwrap();
    // The group that waited is there; the two that came meanwhile are not.
    assert_eq!((recorded.written_rows, recorded.lost_rows), (40, 20));
    assert_eq!(points(&disk.0, "t-0001.parquet"), 40);
}
