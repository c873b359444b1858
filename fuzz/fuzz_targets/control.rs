// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mover's control channel and journal against arbitrary bytes: a message is read or refused, and written the same again;
//! names that are taken stay below the folder; a journal claims only what its records say.
#![no_main]

use fatpath_mover::fuzzed::{Header, recover};
use fatpath_mover::protocol::{self, Kind, Message};
use fatpath_tree::checked;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut channel = bytes;
    while protocol::read(&mut channel).is_ok() {}
    if let Some(message) = protocol::decode(bytes) {
        let mut again = Vec::new();
        protocol::write(&mut again, &message).expect("a vector takes it");
        assert_eq!(protocol::read(&mut &again[..]).expect("it was written"), message);
        if let Message::Entries(entries) = message {
            entries.iter().for_each(|entry| check_name(&entry.path));
            let names = entries.iter().filter_map(|entry| match &entry.kind {
                Kind::HardLink { of } => Some(of),
                _ => None,
            });
            names.for_each(|of| check_name(of));
        }
    }
    check_name(bytes);
    let header = Header { file: [0; 32], boot: [0; 16] };
    let recovered = recover(bytes, &header);
    assert!(recovered.stretches <= recovered.records);
    check_journal(bytes, &header);
});

/// A journal whose records verify, whoever wrote them.
fn check_journal(bytes: &[u8], header: &Header) {
    let mut journal = header.encode().to_vec();
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight of them"));
    let records = bytes.chunks_exact(16).map(|pair| pair.split_at(8));
    let records: Vec<_> = records.map(|(from, until)| (number(from), number(until))).collect();
    for (from, until) in &records {
        journal.extend_from_slice(&header.record(*from, *until));
    }
    let recovered = recover(&journal, header);
    assert_eq!(recovered.records, records.len() as u64);
    let size = u64::MAX / 2;
    let there = recovered.ranges.iter().map(|(from, until)| until.min(size).saturating_sub(from));
    let missing = recovered.ranges.missing(size, usize::MAX);
    let missing = missing.iter().map(|(from, until)| until - from);
    assert_eq!(there.sum::<u64>() + missing.sum::<u64>(), size);
}

fn check_name(path: &[u8]) {
    if let Ok(names) = checked(path) {
        assert!(names.iter().all(|name| ![&b""[..], b".", b".."].contains(name)));
        assert!(!path.starts_with(b"/") && !path.contains(&0));
    }
}
