// SPDX-License-Identifier: MIT OR Apache-2.0
//! Everything arrives exactly once, whatever the link does.

use fatpath_cc::Law;
use fatpath_link::{CellSpec, ChainSpec, CorruptSpec, DuplicateSpec, LossSpec, ReorderSpec};
use fatpath_tcp::{Detection, Growth, WindowReduction};
use proptest::prelude::*;

use super::super::{Cipher, Refused, Spec};
use super::transfer::{Datagram, MS, RTT, Transfer};

/// Shares of datagrams that are lost, reordered, doubled and damaged.
pub type Harm = (f64, f64, f64, f64);

pub fn way(rate_bps: u64, (loss, reorder, duplicate, corrupt): Harm, seed: u64) -> ChainSpec {
    let cells = vec![
        CellSpec::rate(rate_bps, Some(250_000)),
        CellSpec::Loss(LossSpec::Independent { probability: loss }),
        CellSpec::Duplicate(DuplicateSpec {
            probability: duplicate,
        }),
        CellSpec::Corrupt(CorruptSpec {
            probability: corrupt,
        }),
        CellSpec::delay(RTT / 2),
        CellSpec::Reorder(ReorderSpec {
            probability: reorder,
            displacement_packets: 10,
            hold_limit_ns: 2 * MS,
        }),
    ];
    ChainSpec { cells, seed }
}

fn ways(harm: Harm, seed: u64) -> [ChainSpec; 2] {
    [
        way(100_000_000, harm, seed),
        way(100_000_000, harm, seed + 1),
    ]
}

pub fn spec(law: Law) -> Spec {
    let mut spec = Spec::default();
    spec.tcp.law = law;
    // A path that loses a fifth may be silent for longer than anybody would wait.
    spec.silence_ns = u64::MAX;
    spec
}

/// One large object, many small ones, and empty ones among them.
fn sizes() -> Vec<usize> {
    let small = (0..200).map(|n| n * 7 % 900);
    [400_000].into_iter().chain(small).collect()
}

#[test]
fn a_clean_path_carries_it_without_a_retransmission() {
    let mut transfer = Transfer::new(&spec(Law::RENO), &sizes(), ways((0.0, 0.0, 0.0, 0.0), 1));
    transfer.run(60_000 * MS);
    transfer.check_complete();
    assert_eq!(transfer.sender.figures().retransmits, 0);
    assert_eq!(transfer.sender.poll_timeout(), None);
    assert_eq!(transfer.refused, []);
}

#[test]
fn all_laws_bring_everything_once_over_a_bad_path() {
    for name in ["reno", "aimd", "scalable", "highspeed", "cubic", "bbr"] {
        let law = Law::named(name).unwrap();
        let mut transfer = Transfer::new(&spec(law), &sizes(), ways((0.02, 0.02, 0.02, 0.01), 3));
        transfer.run(600_000 * MS);
        transfer.check_complete();
        assert!(transfer.sender.figures().retransmits > 0, "{name}");
        for why in [Refused::Forged, Refused::Replayed] {
            assert!(transfer.refused.contains(&why), "{name}: {why}");
        }
        let others = |why: &&Refused| {
            !matches!(
                why,
                Refused::Forged | Refused::Replayed | Refused::Unknown | Refused::Foreign
            )
        };
        assert_eq!(transfer.refused.iter().find(others), None, "{name}");
    }
}

/// Many small files share datagrams: 114 bytes each, of 1412.
#[test]
fn small_objects_share_datagrams() {
    let mut transfer = Transfer::new(
        &spec(Law::RENO),
        &[100; 1000],
        ways((0.0, 0.0, 0.0, 0.0), 1),
    );
    transfer.run(60_000 * MS);
    transfer.check_complete();
    let sent = transfer.sender.figures().sent_pkts;
    assert!(sent <= (1000 * 114u64).div_ceil(1412) + 1, "{sent}");
    let longest = transfer
        .log
        .iter()
        .map(|datagram| datagram.payload.len())
        .max();
    assert_eq!(longest, Some(1452));
}

/// Lost segments leave after all else: the datagram that takes their place has no runs, and nothing is left out.
#[test]
fn what_is_lost_may_leave_last() {
    let mut spec = spec(Law::RENO);
    (spec.lost_last, spec.tcp.drops) = (true, vec![20, 25, 25]);
    let mut transfer = Transfer::new(&spec, &[300_000], ways((0.0, 0.0, 0.0, 0.0), 1));
    transfer.run(60_000 * MS);
    transfer.check_complete();
    let run_bytes = 1452 - usize::from(Spec::OVERHEAD_BYTES);
    let lost = [20, 25].map(|segment| segment * run_bytes);
    let last: Vec<_> = transfer.order.iter().rev().take(2).rev().copied().collect();
    assert_eq!(last, lost);
    let is_bare = |datagram: &&Datagram| datagram.has_data && datagram.payload.len() == 40;
    assert_eq!(transfer.log.iter().filter(is_bare).count(), 2);
}

proptest! {
    /// Whatever is lost: all arrives, and what is taken out is given again.
    #[test]
    fn what_leaves_last_is_not_forgotten(seed in 0u64..1000, loss in 0.0..0.2, takes in any::<bool>()) {
        let mut spec = spec(Law::RENO);
        spec.lost_last = true;
        let mut transfer = Transfer::new(&spec, &sizes(), ways((loss, 0.01, 0.01, 0.0), seed));
        transfer.takes_lost = takes;
        // A timeout may be backed off to two minutes (RFC 6298, 5.5), and others follow it.
        transfer.run(6_000_000 * MS);
        transfer.check_all_there();
    }
}

/// Seed 004: "configured to drop packet 20".
#[test]
fn a_segment_of_the_drop_list_never_leaves_the_first_time() {
    let mut spec = spec(Law::RENO);
    spec.tcp.drops = vec![19, 19];
    let mut transfer = Transfer::new(&spec, &[300_000], ways((0.0, 0.0, 0.0, 0.0), 1));
    transfer.run(60_000 * MS);
    transfer.check_complete();
    let figures = transfer.sender.figures();
    assert_eq!(figures.retransmits, 2);
    let arrived = transfer.receiver.figures().arrived_pkts;
    assert_eq!(figures.sent_pkts, arrived + 2);
}

/// The one echo that differs from TCP's is exact: a round trip is measured as it was.
#[test]
fn the_round_trip_is_that_of_the_path() {
    let mut transfer = Transfer::new(
        &spec(Law::RENO),
        &[3_000_000],
        ways((0.01, 0.0, 0.0, 0.0), 5),
    );
    transfer.run(60_000 * MS);
    let least_us = u64::from(transfer.sender.figures().min_rtt_us) * 1000;
    assert!((RTT..RTT + MS).contains(&least_us), "{least_us}");
    assert!(transfer.sender.ack_delay_us() <= 40_000);
}

pub fn harm() -> impl Strategy<Value = Harm> {
    (0.0..0.2, 0.0..0.2, 0.0..0.2, 0.0..0.1)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn everything_arrives_once(
        there in harm(),
        back in harm(),
        seed in any::<u64>(),
        sizes in prop::collection::vec(0usize..30_000, 0..12),
        law in prop::sample::select(vec!["reno", "cubic", "bbr"]),
        detection in prop::sample::select(vec![Detection::Rack, Detection::Sack, Detection::Fack, Detection::NewReno, Detection::Reno]),
        reduction in prop::sample::select(vec![WindowReduction::Prr, WindowReduction::AtOnce, WindowReduction::Rampdown]),
        growth in prop::sample::select(vec![Growth::Segments, Growth::Acks, Growth::AppropriateBytes]),
        cipher in prop::sample::select(vec![Cipher::Aes128Gcm, Cipher::ChaCha20Poly1305]),
        datagram_bytes in 512u16..3000,
        sack_blocks in 1u8..=16,
        window_datagrams in 2u64..100,
        drops in prop::collection::vec(0u64..40, 0..6),
    ) {
        let mut spec = spec(Law::named(law).unwrap());
        (spec.tcp.detection, spec.tcp.reduction, spec.tcp.growth) = (detection, reduction, growth);
        (spec.cipher, spec.datagram_bytes, spec.tcp.sack_blocks) = (cipher, datagram_bytes, sack_blocks);
        spec.tcp.drops = drops;
        spec.window_bytes = window_datagrams * u64::from(datagram_bytes);
        let links = [way(50_000_000, there, seed), way(50_000_000, back, !seed)];
        let mut transfer = Transfer::new(&spec, &sizes, links);
        transfer.run(36_000_000 * MS);
        transfer.check_complete();
    }
}
