// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use proptest::prelude::*;

fn origin() -> Origin {
    Origin {
        host: "here".into(),
        boot: "1".into(),
    }
}

fn event(body: &str) -> Event {
    Event {
        time_us: 7,
        name: "flow.end".into(),
        peer: None,
        rule: None,
        value: None,
        weight: 1,
        body: body.into(),
    }
}

fn open(folder: &Path, total_bytes: u64) -> Spool {
    Spool::open(folder, origin(), Bounds::of(total_bytes), 1).unwrap()
}

/// Everything that waits, in order; it waits no more.
fn drain(spool: &Spool) -> Vec<(u64, Kind, Event)> {
    let mut all = Vec::new();
    while let Some(claimed) = spool.sealed().claim_oldest() {
        let bytes = claimed.read().unwrap();
        let (header, events) = segment::read(&bytes).unwrap();
        all.extend(events.map(|(sequence, event)| (sequence, header.kind, event)));
        claimed.remove().unwrap();
    }
    all.sort_by_key(|(sequence, ..)| *sequence);
    all
}

#[test]
fn what_is_appended_is_sealed_and_read_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut spool = open(dir.path(), 1 << 20);
    for (kind, body) in [(Kind::Flow, "a"), (Kind::Test, "b"), (Kind::Flow, "c")] {
        spool.append(kind, &event(body)).unwrap();
    }
    spool.seal_all(8).unwrap();
    assert_eq!(spool.status().events, 3);
    let bodies: Vec<_> = drain(&spool).into_iter().map(|(_, _, e)| e.body).collect();
    assert_eq!(bodies, ["a", "b", "c"]);
    assert_eq!(spool.status(), SpoolStatus::default());
}

#[test]
fn the_next_writer_goes_on_where_the_last_one_ended() {
    let dir = tempfile::tempdir().unwrap();
    let mut spool = open(dir.path(), 1 << 20);
    let first = spool.append(Kind::Flow, &event("a")).unwrap();
    spool.sync(7).unwrap();
    drop(spool);
    let mut spool = open(dir.path(), 1 << 20);
    assert!(spool.append(Kind::Flow, &event("b")).unwrap() > first);
    assert_eq!(drain(&spool).len(), 1, "what was not sealed waits now");
}

/// A number that was used twice would make the store take the second event for the first.
#[test]
fn no_sequence_number_is_used_twice_when_the_folder_was_emptied() {
    let dir = tempfile::tempdir().unwrap();
    let last = {
        let mut spool = open(dir.path(), 1 << 20);
        spool.append(Kind::Flow, &event("a")).unwrap();
        let last = spool.append(Kind::Flow, &event("b")).unwrap();
        spool.seal_all(7).unwrap();
        drain(&spool);
        last
    };
    let mut spool = Spool::open(dir.path(), origin(), Bounds::of(1 << 20), 1_000_000).unwrap();
    assert!(spool.append(Kind::Flow, &event("c")).unwrap() > last);
}

#[test]
fn two_writers_of_one_folder_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let _first = open(dir.path(), 1 << 20);
    let second = Spool::open(dir.path(), origin(), Bounds::of(1 << 20), 1);
    assert!(matches!(second, Err(SpoolError::InUse(_))), "{second:?}");
}

#[test]
fn a_file_that_is_no_segment_is_moved_away() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("1.segment"), "not one").unwrap();
    let spool = open(dir.path(), 1 << 20);
    assert_eq!(spool.status().events, 0);
    assert!(dir.path().join("1.damaged").exists());
}

#[test]
fn a_full_spool_drops_the_oldest_of_what_matters_least() {
    let dir = tempfile::tempdir().unwrap();
    let mut spool = open(dir.path(), 16 << 10);
    let body = "x".repeat(1000);
    for kind in [Kind::Decision, Kind::Sample, Kind::Flow, Kind::Sample] {
        for _ in 0..3 {
            spool.append(kind, &event(&body)).unwrap();
        }
        spool.seal_all(8).unwrap();
    }
    for _ in 0..6 {
        spool.append(Kind::Decision, &event(&body)).unwrap();
    }
    assert_eq!(spool.status().dropped, BTreeMap::from([(Kind::Sample, 3)]));
    for _ in 0..6 {
        spool.append(Kind::Decision, &event(&body)).unwrap();
    }
    assert_eq!(
        spool.status().dropped,
        BTreeMap::from([(Kind::Sample, 6), (Kind::Flow, 3)])
    );
    // Everything is a decision now: nothing else is taken.
    let refused = spool.append(Kind::Flow, &event(&body));
    assert!(matches!(refused, Err(SpoolError::Full)), "{refused:?}");
    assert_eq!(spool.status().dropped[&Kind::Flow], 4);
    assert!(spool.status().bytes <= 16 << 10);
}

/// Between two syncs nothing is sealed.
#[test]
fn what_grows_makes_space_for_what_matters_more() {
    let dir = tempfile::tempdir().unwrap();
    let mut spool = open(dir.path(), 16 << 10);
    let body = "x".repeat(1000);
    while spool.append(Kind::Sample, &event(&body)).is_ok() {}
    spool.append(Kind::Test, &event(&body)).unwrap();
    spool.seal_all(8).unwrap();
    let left: Vec<Kind> = drain(&spool).into_iter().map(|(_, kind, _)| kind).collect();
    assert_eq!(left, [Kind::Test]);
}

#[test]
fn a_segment_that_is_moved_is_not_dropped_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let mut spool = open(dir.path(), 16 << 10);
    spool.append(Kind::Sample, &event("kept")).unwrap();
    spool.seal_all(8).unwrap();
    let claimed = spool.sealed().claim_oldest().unwrap();
    while spool.append(Kind::Flow, &event(&"x".repeat(1000))).is_ok() {}
    assert_eq!(
        segment::read(&claimed.read().unwrap()).unwrap().1.count(),
        1
    );
    drop(claimed);
    spool.append(Kind::Decision, &event("more")).unwrap();
    assert_eq!(
        spool.status().dropped[&Kind::Flow],
        1,
        "the last was refused"
    );
}

#[test]
fn a_clock_that_was_set_back_seals() {
    let dir = tempfile::tempdir().unwrap();
    let mut spool = open(dir.path(), 1 << 20);
    spool.append(Kind::Flow, &event("a")).unwrap();
    spool.sync(8).unwrap();
    assert!(spool.sealed().claim_oldest().is_none());
    spool.sync(6).unwrap();
    assert!(spool.sealed().claim_oldest().is_some());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A crash leaves any part of what was not synced, and of a segment that was only being written.
    #[test]
    fn what_was_synced_survives_a_crash_and_the_rest_is_whole(
        synced in 1..20usize, more in 0..20usize, cut: prop::sample::Index,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut spool = open(dir.path(), 1 << 20);
        let append = |spool: &mut Spool, count: usize| -> Vec<u64> {
            (0..count).map(|_| spool.append(Kind::Flow, &event("body")).unwrap()).collect()
        };
        let mut sequences = append(&mut spool, synced);
        spool.sync(7).unwrap();
        let path = segments(dir.path()).unwrap().remove(0);
        let durable_bytes = std::fs::metadata(&path).unwrap().len();
        sequences.extend(append(&mut spool, more));
        spool.sync(7).unwrap();
        drop(spool);
        let all_bytes = std::fs::metadata(&path).unwrap().len();
        let kept = durable_bytes + cut.index((all_bytes - durable_bytes) as usize + 1) as u64;
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(kept).unwrap();
        let read: Vec<u64> = drain(&open(dir.path(), 1 << 20)).into_iter().map(|e| e.0).collect();
        prop_assert!(read.len() >= synced);
        prop_assert_eq!(&read[..], &sequences[..read.len()]);
    }
}
