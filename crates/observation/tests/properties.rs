// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whatever is recorded is read back; whatever the bytes, reading ends without a panic.
#![allow(clippy::unwrap_used)] // Clippy does not see that the functions beside the tests are theirs.

use std::net::{IpAddr, SocketAddr};

use fatpath_link::{Count, Flow};
use fatpath_observation::{
    DirectionName, FlowRecord, Header, MAX_FLOWS, ReadError, Record, Recorder, read,
};
use proptest::prelude::*;

const DIRECTIONS: usize = 3;

fn header(per_flow: bool) -> Header {
    let name = |number| DirectionName {
        link: format!("link {number}"),
        from: "a \"quoted\" host".into(),
        to: "ä".into(),
    };
    Header {
        interval_ns: 1_000_000,
        begun_unix_ns: u64::MAX,
        directions: (0..DIRECTIONS).map(name).collect(),
        per_flow,
    }
}

fn counts() -> impl Strategy<Value = Count> {
    let number = || (any::<u64>(), 0..64).prop_map(|(value, shift)| value >> shift);
    (number(), number(), any::<bool>()).prop_map(|(packets, bytes, some)| match some {
        true => Count { packets, bytes },
        false => Count::default(),
    })
}

fn flows() -> impl Strategy<Value = Flow> {
    // Few, so that some come again.
    let address = || {
        (any::<bool>(), 0..3u8, 0..3u16).prop_map(|(v6, host, port)| {
            let ip = match v6 {
                true => IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, host.into()]),
                false => IpAddr::from([10, 0, 0, host]),
            };
            (ip, port)
        })
    };
    (address(), address(), any::<u8>()).prop_map(|(source, destination, protocol)| {
        let destination_ip = match source.0.is_ipv4() == destination.0.is_ipv4() {
            true => destination.0,
            false => source.0,
        };
        Flow {
            source: SocketAddr::new(source.0, source.1),
            destination: SocketAddr::new(destination_ip, destination.1),
            protocol,
        }
    })
}

fn flow_records() -> impl Strategy<Value = FlowRecord> {
    (flows(), counts(), counts()).prop_map(|(flow, arrived, left)| FlowRecord {
        flow,
        arrived,
        left,
    })
}

/// A record, and how many intervals after the last one of its direction.
fn records(per_flow: bool) -> impl Strategy<Value = (Record, u64)> {
    let flows_at_most = if per_flow { 5 } else { 1 };
    (
        0..DIRECTIONS,
        prop::collection::vec(counts(), 11),
        any::<u64>().prop_map(|peak| peak >> (peak % 64)),
        prop::collection::vec(flow_records(), 0..flows_at_most),
        prop_oneof![Just(0), 0..1_000_000u64],
    )
        .prop_map(
            |(direction, counts, peak_queue_bytes, mut flows, left_out)| {
                // A flow is in a record once.
                let mut seen = vec![];
                flows.retain(|one: &FlowRecord| {
                    let is_new = !seen.contains(&one.flow);
                    seen.push(one.flow);
                    is_new
                });
                let record = Record {
                    direction,
                    interval: 0,
                    arrived: counts[0],
                    left: counts[1],
                    peak_queue_bytes,
                    dropped: [counts[2], counts[3], counts[4], counts[5], counts[9]],
                    marked: counts[6],
                    duplicated: counts[7],
                    corrupted: counts[8],
                    fragmented: counts[10],
                    flows,
                };
                (record, left_out)
            },
        )
}

/// A file, and the records in it.
fn files() -> impl Strategy<Value = (Header, Vec<Record>, Vec<u8>)> {
    any::<bool>()
        .prop_flat_map(|per_flow| {
            let list = prop::collection::vec((records(per_flow), prop::bool::weighted(0.2)), 0..40);
            (Just(per_flow), list)
        })
        .prop_map(|(per_flow, list)| {
            let header = header(per_flow);
            let (mut recorder, mut bytes) = Recorder::new(&header);
            let mut next_intervals = [0; DIRECTIONS];
            let mut written = vec![];
            for ((mut record, left_out), block_ends) in list {
                let next = &mut next_intervals[record.direction];
                record.interval = *next + left_out;
                *next = record.interval + 1;
                recorder.record(&record);
                written.push(record);
                if block_ends {
                    bytes.extend(recorder.take_block().unwrap());
                }
            }
            bytes.extend(recorder.take_block().unwrap_or_default());
            (header, written, bytes)
        })
}

/// All that can be read, and how it ended.
fn read_all(bytes: &[u8]) -> (Vec<Record>, Option<ReadError>) {
    let (_, records) = match read(bytes) {
        Ok(begun) => begun,
        Err(error) => return (vec![], Some(error)),
    };
    let mut whole = vec![];
    for record in records {
        match record {
            Ok(record) => whole.push(record),
            Err(error) => return (whole, Some(error)),
        }
    }
    (whole, None)
}

proptest! {
    #[test]
    fn what_is_recorded_is_read((header, written, bytes) in files()) {
        let (read_header, _) = read(&bytes[..]).unwrap();
        prop_assert_eq!(read_header, header);
        let (records, error) = read_all(&bytes);
        prop_assert!(error.is_none(), "{error:?}");
        prop_assert_eq!(records, written);
    }

    #[test]
    fn a_file_that_is_cut_short_is_read_up_to_there(
        (_, written, bytes) in files(),
        share in 0.0..1.0,
    ) {
        let cut = (bytes.len() as f64 * share) as usize;
        let (records, error) = read_all(&bytes[..cut]);
        prop_assert!(written.starts_with(&records));
        prop_assert!(matches!(error, None | Some(ReadError::Cut | ReadError::NotOne)));
    }

    #[test]
    fn a_damaged_file_is_no_harm(
        (_, _, mut bytes) in files(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
    ) {
        for (index, byte) in damage {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        read_all(&bytes);
    }

    #[test]
    fn no_bytes_are_any_harm(tail in prop::collection::vec(any::<u8>(), 0..200), blocks in any::<bool>()) {
        let (_, mut bytes) = Recorder::new(&header(true));
        if blocks {
            bytes.extend((tail.len() as u32).to_le_bytes());
        }
        bytes.extend(&tail);
        read_all(&bytes);
        read_all(&tail);
    }
}

/// Records with flows, several blocks, a left-out interval.
#[test]
fn the_seed_of_the_fuzzer_is_a_whole_file() {
    let seed = include_bytes!("../../../fuzz/seeds/observation/two_blocks");
    let (records, error) = read_all(seed);
    assert!(error.is_none(), "{error:?}");
    assert!(records.iter().any(|record| !record.flows.is_empty()));
}

#[test]
fn lengths_that_nothing_stands_behind_cost_nothing() {
    let (_, mut bytes) = Recorder::new(&header(false));
    let begun = bytes.len();
    bytes.extend((16u32 << 20).to_le_bytes());
    assert!(matches!(read_all(&bytes).1, Some(ReadError::Cut)));
    bytes.truncate(begun);
    bytes.extend(u32::MAX.to_le_bytes());
    assert!(matches!(read_all(&bytes).1, Some(ReadError::Damaged(_))));
}

/// The first record has all flows at once, the second one more: it counts in the totals only.
#[test]
fn flows_beyond_the_most_are_not_listed() {
    let (mut recorder, mut bytes) = Recorder::new(&header(true));
    let flow = |number: usize| FlowRecord {
        flow: Flow {
            source: SocketAddr::from(([10, 0, (number >> 16) as u8, 1], number as u16)),
            destination: SocketAddr::from(([10, 0, 0, 2], 80)),
            protocol: 6,
        },
        arrived: Count {
            packets: 1 << 40,
            bytes: 1 << 50,
        },
        left: Count::default(),
    };
    let of = |interval, flows| Record {
        interval,
        peak_queue_bytes: 1,
        flows,
        ..Record::default()
    };
    let full = of(0, (0..MAX_FLOWS).map(flow).collect());
    recorder.record(&full);
    bytes.extend(recorder.take_full_block().unwrap());
    recorder.record(&of(1, vec![flow(1), flow(MAX_FLOWS)]));
    bytes.extend(recorder.take_block().unwrap());
    let (records, error) = read_all(&bytes);
    assert!(error.is_none(), "{error:?}");
    assert!(records == [full, of(1, vec![flow(1)])]);
}

/// Of a block of 16 MiB, each flow of 5 bytes would take some 100 in memory.
#[test]
fn a_record_of_more_flows_than_there_are_is_refused() {
    let (_, mut bytes) = Recorder::new(&header(true));
    // Direction 0, the next interval, no totals; then 2^14 flows, with no flow entered.
    let record = [1, 0, 0, 0, 0x80, 0x80, 1];
    bytes.extend((record.len() as u32).to_le_bytes());
    bytes.extend(record);
    let (_, error) = read_all(&bytes);
    assert!(error.unwrap().to_string().contains("more flows"));
}
