// SPDX-License-Identifier: MIT OR Apache-2.0
//! One flow of each kind.

use fatpath_link::CellSpec;
use fatpath_sim::Source;

use crate::support::*;

#[test]
fn a_bulk_flow_delivers_its_bytes_once() {
    let mut spec = path(20 * MS_NS, [CellSpec::rate(100_000_000, None)], 60 * S_NS);
    spec.flows = vec![bulk(Some(10_000_000))];
    let outcome = outcome(&spec);
    assert_eq!(outcome.flows[0].delivered_bytes, 10_000_000);
    assert_eq!(outcome.flows[0].completions.count, 1);
    assert_eq!(outcome.links[0][0].counters.dropped_total().packets, 0);
}

#[test]
fn datagrams_leave_at_their_rate() {
    let mut spec = path(20 * MS_NS, [CellSpec::loss(0.1)], 10 * S_NS);
    spec.flows = vec![flow(Source::ConstantRate {
        rate_bps: 8_000_000,
        payload_bytes: 972,
    })];
    let outcome = outcome(&spec);
    let datagrams = outcome.flows[0].datagrams.unwrap();
    // One a millisecond, at 0 and at the end too.
    assert_eq!(datagrams.sent, 10_001);
    assert!(
        (datagrams.lost as f64 / 10_000.0 - 0.1).abs() < 0.01,
        "{datagrams:?}"
    );
}
