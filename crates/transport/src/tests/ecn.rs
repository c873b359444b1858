// SPDX-License-Identifier: MIT OR Apache-2.0
//! A queue that marks, and paths that clear or mangle the ECN field.

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
    let mut transfer = Transfer::new(spec, &[BYTES], ways());
    transfer.mangle = mangle;
    transfer.run(60_000 * MS);
    transfer.check_complete();
    transfer
}

fn capable(transfer: &Transfer) -> usize {
    let data = transfer.log.iter().filter(|datagram| datagram.has_data);
    data.filter(|datagram| datagram.ecn == Ecn::Capable).count()
}

/// Marks take the place of losses: the law answers to them, and nothing is sent again.
#[test]
fn a_queue_that_marks_loses_nothing() {
    for law in ["reno", "cubic", "bbr"] {
        let mut spec = spec(Law::named(law).unwrap());
        let marked = moved(&spec, |ecn| ecn);
        let figures = marked.sender.figures();
        assert_eq!(figures.retransmits, 0, "{law}");
        assert!(marked.sender.marked_pkts() > 20, "{law}");
        assert_eq!(capable(&marked) as u64, figures.sent_pkts, "{law}");
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

/// Where what is capable is lost, the first timeout ends its use.
#[test]
fn a_path_that_loses_what_is_capable_is_passed_without() {
    let spec = Spec::default();
    let mut transfer = Transfer::new(&spec, &[100_000], ways());
    transfer.loses_capable = true;
    transfer.run(60_000 * MS);
    transfer.check_complete();
    assert_eq!(transfer.sender.ecn(), Ecn::NotCapable);
    assert!(capable(&transfer) <= 20, "{}", capable(&transfer));
}
