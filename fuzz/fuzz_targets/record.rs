// SPDX-License-Identifier: MIT OR Apache-2.0
//! A connection of TCP: arbitrary bytes, which are waited for or refused, and whatever a peer with the keys sealed, cut
//! anywhere on its way, which never panics.
#![no_main]

use fatpath_transport::{HEADER_BYTES, Kind, MOST_RECORD_BYTES, Record, RecordOpener, Secret, Spec};
use libfuzzer_sys::fuzz_target;

/// What arrives unsealed; kinds of what the peer seals, with it; how much arrives at once.
type Input = (Vec<u8>, Vec<(u8, Vec<u8>)>, u8);

fuzz_target!(|input: Input| {
    let (bytes, frames, cut) = input;
    let cipher = Spec::default().cipher;
    let flow = || Secret::agree(&[7; 32], &[8; 32]).next_flow().expect("the first of many");
    let opener = || flow().records_of_receiver(cipher).1;
    assert!(read(&mut opener(), &bytes, usize::from(cut)).is_none_or(|records| records == 0));
    let (mut sealer, mut stream) = (flow().of_sender(cipher).0, vec![]);
    for (what, frame) in frames.iter().filter(|(_, frame)| frame.len() < 60_000) {
        let kinds = [Kind::Data, Kind::Probe, Kind::Ack, Kind::Close, Kind::Hello];
        let kind = kinds[usize::from(what % 8).min(4)];
        let mut datagram = [&[0; HEADER_BYTES], &frame[..]].concat();
        sealer.seal(kind, &mut datagram, 0).expect("few were sealed");
        stream.extend_from_slice(&(datagram.len() as u16).to_be_bytes());
        stream.extend_from_slice(&datagram);
    }
    read(&mut opener(), &stream, usize::from(cut));
});

/// Records of the stream; `None`: it was refused.
fn read(opener: &mut RecordOpener, stream: &[u8], cut: usize) -> Option<usize> {
    let (mut arrived, mut records) = (vec![], 0);
    for piece in stream.chunks(cut + 1) {
        arrived.extend_from_slice(piece);
        let _ = opener.is_named_by(&arrived);
        while let Some(length) = RecordOpener::whole(&arrived).ok()? {
            assert!(length <= MOST_RECORD_BYTES);
            if let Record::Data(writes) = opener.open(&mut arrived[..length]).ok()? {
                assert!(writes.map(|write| write.bytes.len()).sum::<usize>() < length);
            }
            arrived.drain(..length);
            records += 1;
        }
    }
    Some(records)
}
