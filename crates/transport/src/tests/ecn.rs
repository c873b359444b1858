// SPDX-License-Identifier: MIT OR Apache-2.0
//! A queue that marks, and paths that clear or mangle the ECN field.

use std::cell::Cell;
use std::rc::Rc;

use fatpath_cc::Law;
use fatpath_link::{CellSpec, ChainSpec, Ecn, QueueSpec, RateSpec, Service};

use super::super::Spec;
use super::delivery::spec;
use super::transfer::{MS, RTT, Transfer};

const BYTES: usize = 6_000_000;

/// 50 Mb/s, of which a round trip holds 125 kB, with a queue of four times as much that marks above a tenth of it.
fn ways() -> [ChainSpec; 2] {
    let queue = QueueSpec {
        limit_bytes: Some(500_000),
        mark_above_bytes: Some(50_000),
        ..QueueSpec::default()
    };
    let rate = RateSpec {
        service: Service::Constant {
            rate_bps: 50_000_000,
        },
        queue,
        overhead_bytes: 0,
    };
    let there = ChainSpec::of([CellSpec::Rate(rate), CellSpec::delay(RTT / 2)]);
    [there, ChainSpec::of([CellSpec::delay(RTT / 2)])]
}

fn moved(spec: &Spec, mangle: fn(Ecn) -> Ecn) -> Transfer {
    moved_in(spec, mangle).0
}

/// The transfer, and the mean of the smoothed round trip at all arrivals, microseconds.
fn moved_in(spec: &Spec, mangle: fn(Ecn) -> Ecn) -> (Transfer, u64) {
    let mut transfer = Transfer::new(spec, &[BYTES], ways());
    transfer.mangle = mangle;
    let sum = Rc::new(Cell::new((0, 0)));
    let seen = sum.clone();
    transfer.attack = Box::new(move |_, _, sender, _| {
        let (sum_us, arrivals) = seen.get();
        seen.set((sum_us + u64::from(sender.figures().srtt_us), arrivals + 1));
    });
    transfer.run(60_000 * MS);
    transfer.check_complete();
    let (sum_us, arrivals) = sum.get();
    (transfer, sum_us / arrivals)
}

fn without_marks(ecn: Ecn) -> Ecn {
    match ecn {
        Ecn::Marked => Ecn::Capable,
        other => other,
    }
}

fn capable(transfer: &Transfer) -> usize {
    let data = transfer.log.iter().filter(|datagram| datagram.has_data);
    data.filter(|datagram| datagram.ecn == Ecn::Capable).count()
}

/// Marks take the place of losses: the law answers to them with a shorter queue, and nothing is sent again.
#[test]
fn a_queue_that_marks_loses_nothing() {
    for law in ["reno", "cubic", "bbr"] {
        let mut spec = spec(Law::named(law).unwrap());
        let (marked, rtt_us) = moved_in(&spec, |ecn| ecn);
        let figures = marked.sender.figures();
        assert_eq!(figures.retransmits, 0, "{law}");
        assert!(marked.sender.marked_pkts() > 20, "{law}");
        assert_eq!(capable(&marked) as u64, figures.sent_pkts, "{law}");
        let (_, unmarked_rtt_us) = moved_in(&spec, without_marks);
        let queue_us = [rtt_us, unmarked_rtt_us].map(|rtt_us| rtt_us - RTT / 1000);
        assert!(5 * queue_us[0] < 4 * queue_us[1], "{law}: {queue_us:?}");
        spec.tcp.ecn = false;
        let lost = moved(&spec, |ecn| ecn);
        assert_eq!((lost.sender.marked_pkts(), capable(&lost)), (0, 0));
        let is_window_law = law != "bbr";
        if is_window_law {
            assert!(figures.congestion_events > 1, "{law}");
            assert!(lost.sender.figures().retransmits > 0, "{law}");
        }
    }
}

/// Where the path clears the field, or says that all met congestion, it is soon left alone, and the law not misled.
#[test]
fn a_path_that_changes_the_field_ends_its_use() {
    let mangled: [fn(Ecn) -> Ecn; 2] = [|_| Ecn::NotCapable, |_| Ecn::Marked];
    for (mangle, most_events) in mangled.into_iter().zip([0, 1]) {
        let mut spec = spec(Law::RENO);
        spec.window_bytes = 100_000; // so that the queue is not what reduces the window
        let transfer = moved(&spec, mangle);
        assert_eq!(transfer.sender.ecn(), Ecn::NotCapable);
        let (capable, figures) = (capable(&transfer), transfer.sender.figures());
        assert!((10..100).contains(&capable), "{capable}");
        assert!(figures.congestion_events <= most_events, "{figures:?}");
    }
}

/// Where what is capable is lost, the first timeout ends its use, the second one where few datagrams had left.
#[test]
fn a_path_that_loses_what_is_capable_is_passed_without() {
    for (bytes, most_capable) in [(100_000, 20), (4000, 6)] {
        let mut transfer = Transfer::new(&Spec::default(), &[bytes], ways());
        transfer.loses_capable = true;
        transfer.run(60_000 * MS);
        transfer.check_complete();
        assert_eq!(transfer.sender.ecn(), Ecn::NotCapable);
        let capable = capable(&transfer);
        assert!(capable <= most_capable, "{capable}");
    }
}

/// It may begin to lose them when they were known to arrive.
#[test]
fn a_path_that_loses_what_is_capable_later_is_passed_without() {
    let mut transfer = Transfer::new(&spec(Law::RENO), &[BYTES], ways());
    transfer.run(500 * MS);
    assert_eq!(transfer.sender.ecn(), Ecn::Capable);
    transfer.loses_capable = true;
    transfer.run(60_000 * MS);
    transfer.check_complete();
    assert_eq!(transfer.sender.ecn(), Ecn::NotCapable);
}

/// Nothing speaks against ECN where the only datagram that is on its way is lost, with or without it.
#[test]
fn a_timeout_of_one_loss_leaves_it_on() {
    let mut spec = spec(Law::RENO);
    spec.tcp.tail_loss_probe = false;
    spec.tcp.drops = vec![0];
    let mut transfer = Transfer::new(&spec, &[1000], ways());
    transfer.run(60_000 * MS);
    transfer.check_complete();
    assert_eq!(transfer.sender.figures().timeouts, 1);
    assert_eq!(transfer.sender.ecn(), Ecn::Capable);
}
