// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reader of observation files against arbitrary bytes: never a panic, and what it reads is read
//! again when it is written, unless a record lists a flow twice: no writer does, and no reader looks.
#![no_main]

use std::collections::HashSet;

use fatpath_observation::{Header, Record, Recorder, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok((header, records)) = read(bytes) else {
        return;
    };
    let records: Vec<_> = records.map_while(Result::ok).collect();
    if records.iter().any(lists_a_flow_twice) {
        return;
    }
    let file = written(&header, &records);
    let (header_again, again) = read(&file[..]).expect("what the recorder writes is read");
    assert_eq!(header_again, header);
    let again: Result<Vec<_>, _> = again.collect();
    assert_eq!(again.expect("what the recorder writes is read"), records);
});

fn lists_a_flow_twice(record: &Record) -> bool {
    let flows: HashSet<_> = record.flows.iter().map(|of| of.flow).collect();
    flows.len() < record.flows.len()
}

fn written(header: &Header, records: &[Record]) -> Vec<u8> {
    let (mut recorder, mut file) = Recorder::new(header);
    for record in records {
        recorder.record(record);
        file.extend(recorder.take_full_block().unwrap_or_default());
    }
    file.extend(recorder.take_block().unwrap_or_default());
    file
}
