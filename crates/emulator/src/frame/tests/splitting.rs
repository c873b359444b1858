// SPDX-License-Identifier: MIT OR Apache-2.0
//! Super-packets, split in every way.

use fatpath_link::Packet;
use proptest::collection::vec;
use proptest::prelude::*;

use super::packets::*;
use super::{completed, split, verified_payload};
use crate::frame::Frame;
use crate::fuzzing;

fn assert_gso_fields(frame: &Frame, origin: &Super, is_first: bool) {
    let segments = frame.wire().segments;
    let vnet = &frame.bytes()[..VNET];
    let ecn = if is_first { 0xff } else { !ECN };
    let gso_type = if segments > 1 {
        origin.gso_type() & ecn
    } else {
        0
    };
    let gso_size = if segments > 1 { origin.gso_size } else { 0 };
    assert_eq!(vnet[1], gso_type);
    assert_eq!(u16::from_ne_bytes([vnet[4], vnet[5]]), gso_size);
}

/// Among them what the fuzzer once found.
#[test]
fn the_seeds_of_the_fuzzer_hold() {
    let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/splitter");
    for seed in std::fs::read_dir(seeds).unwrap() {
        fuzzing::packet(&std::fs::read(seed.unwrap().path()).unwrap());
    }
}

proptest! {
    #[test]
    fn pieces_are_right_and_join_to_the_whole(
        origin in supers(),
        cuts in vec(0.0..1.0f64, 0..8),
    ) {
        let pieces = split(origin.frame(), &cuts);
        let mut payload = vec![];
        for (index, piece) in pieces.iter().enumerate() {
            let (is_first, is_last) = (index == 0, index + 1 == pieces.len());
            assert_gso_fields(piece, &origin, is_first);
            let packet = completed(piece);
            payload.extend(verified_payload(&packet, &origin, payload.len(), is_last));
        }
        prop_assert_eq!(payload, origin.payload);
    }

    #[test]
    fn the_wire_is_what_splitting_to_the_last_segment_gives(origin in supers()) {
        let mut frame = origin.frame();
        let wire = frame.wire();
        let payload_bytes = origin.payload.len();
        prop_assert_eq!(wire.segments as usize, payload_bytes.div_ceil(origin.gso_size.into()));
        let headers = wire.segments as usize * origin.header_bytes();
        prop_assert_eq!(wire.len_bytes(0) as usize, payload_bytes + headers);
        for _ in 1..wire.segments {
            let front = frame.split_front(1);
            prop_assert_eq!(front.wire().len_bytes(0), u64::from(wire.segment_bytes));
            prop_assert_eq!(front.bytes().len() - VNET, wire.segment_bytes as usize);
        }
        prop_assert_eq!(frame.wire().len_bytes(0), u64::from(wire.last_bytes));
    }

    #[test]
    fn all_but_the_last_segment_move_nothing(origin in supers()) {
        let mut frame = origin.frame();
        for _ in 2..frame.wire().segments {
            let end = frame.bytes().as_ptr_range().end;
            frame.split_front(1);
            prop_assert_eq!(frame.bytes().as_ptr_range().end, end);
        }
    }

    #[test]
    fn no_bytes_break_it(bytes in vec(any::<u8>(), 0..300)) {
        fuzzing::packet(&bytes);
    }

    #[test]
    fn no_damaged_super_packet_breaks_it(
        origin in supers(),
        damage in vec((0..80usize, any::<u8>()), 0..4),
        kept in 0.0..1.0f64,
        choice in any::<[u8; 8]>(),
    ) {
        let mut bytes = origin.frame_bytes();
        damage.iter().for_each(|(offset, value)| {
            if let Some(byte) = bytes.get_mut(*offset) {
                *byte = *value;
            }
        });
        if kept > 0.5 {
            bytes.truncate(VNET.max((bytes.len() as f64 * kept) as usize));
        }
        fuzzing::packet(&[&choice[..], &bytes].concat());
    }
}
