// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reader of the archive's segments against arbitrary bytes: never a panic, and what it reads is read again when
//! it is written.
#![no_main]

use fatpath_archive::segment::{head, push_event, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok((header, events)) = read(bytes) else {
        return;
    };
    let events: Vec<_> = events.collect();
    let mut written = head(&header).expect("what was read is not too long");
    for (sequence, event) in &events {
        push_event(&mut written, *sequence, event).expect("what was read is not too long");
    }
    let (header_again, again) = read(&written).expect("what is written is read");
    assert_eq!(header_again, header);
    // By its text: an event's value may be no number, which equals nothing.
    assert_eq!(format!("{:?}", again.collect::<Vec<_>>()), format!("{events:?}"));
});
