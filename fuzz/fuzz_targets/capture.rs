// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reader of captures and the analysis against arbitrary bytes: never a panic, and the same when the input comes in
//! pieces. The first byte tells the length of the pieces.
#![no_main]

use fatpath_capture::{Analysis, Connection, Counts, History, Limits, Reader, Way, goodput};
use libfuzzer_sys::fuzz_target;
use std::io::Read;

fuzz_target!(|bytes: &[u8]| {
    let Some((length, file)) = bytes.split_first() else {
        return;
    };
    let pieces = Pieces {
        bytes: file,
        most: usize::from(*length) + 1,
    };
    assert_eq!(all(pieces), all(file));
});

/// What plots, and a trace beside it, are made of.
fn drawn(history: &History) -> usize {
    let points = |way: &Way| {
        way.beside_kernel();
        let [moving, total] = goodput(&way.acked, 10_000_000);
        way.in_flight.len() + way.cwnd.len() + moving.len() + total.len()
    };
    points(&history.from_client) + points(&history.from_server)
}

/// Reads of at most so many bytes.
struct Pieces<'b> {
    bytes: &'b [u8],
    most: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let most = self.most.min(buffer.len());
        self.bytes.read(&mut buffer[..most])
    }
}

fn all(input: impl Read) -> (Vec<Connection>, Counts, String, usize) {
    let limits = Limits {
        connections: 4,
        bytes: 40_000,
        seed: 0,
    };
    let mut analysis = Analysis::new(limits).in_tunnels(true).watching(&[1, 2]);
    let mut end = String::new();
    match Reader::new(input) {
        Err(error) => end = error.to_string(),
        Ok(mut reader) => loop {
            match reader.next_frame() {
                Ok(Some(frame)) => analysis.take(&frame),
                Ok(None) => break,
                Err(error) => {
                    end = error.to_string();
                    break;
                }
            };
        },
    }
    let points = analysis.take_histories().iter().map(drawn).sum();
    let (connections, counts) = analysis.finish();
    (connections, counts, end, points)
}
