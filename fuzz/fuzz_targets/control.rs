// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mover's control channel and journal against arbitrary bytes: a message is read or refused, and written the same again;
//! names that are taken stay below the folder; a journal claims only what its records say.
#![no_main]

use fatpath_mover::fuzzed::{Header, checked, recover};
use fatpath_mover::protocol::{self, Message};
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
        }
    }
    check_name(bytes);
    let header = Header { file: [0; 32], boot: [0; 16] };
    let recovered = recover(bytes, &header);
    assert!(recovered.stretches <= recovered.records);
});

fn check_name(path: &[u8]) {
    if let Ok(names) = checked(path) {
        assert!(names.iter().all(|name| ![&b""[..], b".", b".."].contains(name)));
        assert!(!path.starts_with(b"/") && !path.contains(&0));
    }
}
