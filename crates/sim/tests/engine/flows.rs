// SPDX-License-Identifier: MIT OR Apache-2.0
//! A flow from its handshake to its end.

use fatpath_link::{CellSpec, LossSpec};
use fatpath_sim::{Buffer, Spec};

use crate::support::*;

/// 10 MB at 100 Mb/s.
fn transfer(cells: impl Into<Vec<CellSpec>>) -> Spec {
    let mut cells = cells.into();
    cells.push(CellSpec::rate(100_000_000, None));
    let mut spec = path(20 * MS_NS, cells, 60 * S_NS);
    spec.flows = vec![bulk(Some(10_000_000))];
    spec
}

#[test]
fn a_bulk_flow_delivers_its_bytes_once_and_ends() {
    let spec = transfer([]);
    let outcome = outcome(&spec);
    let flow = &outcome.flows[0];
    assert_eq!(flow.delivered_bytes, 10_000_000);
    assert_eq!(
        (flow.completions.count, flow.completions.bytes),
        (1, 10_000_000)
    );
    assert_eq!((flow.connections, flow.retransmits), (1, 0));
    assert_eq!(outcome.delivered_packets, 10_000_000u64.div_ceil(1448));
    // 0.83 s of bits, the handshake, some round trips of slow start, and the last ACK.
    let least_ns = 828 * MS_NS + 60 * MS_NS;
    assert!(
        (least_ns..least_ns + 100 * MS_NS).contains(&flow.duration_ns),
        "{flow:?}"
    );
    assert!(outcome.ended_ns < 60 * S_NS && !outcome.stopped);
}

#[test]
fn what_gets_lost_is_delivered_once_all_the_same() {
    let spec = transfer([CellSpec::loss(0.01)]);
    let outcome = outcome(&spec);
    assert_eq!(outcome.flows[0].delivered_bytes, 10_000_000);
    assert!(outcome.flows[0].retransmits > 30, "{:?}", outcome.flows[0]);
    assert!(outcome.links[0][0].cells[0].dropped_total().packets > 30);
}

/// The SYN is the first packet there.
#[test]
fn a_lost_syn_costs_a_second() {
    let lost = CellSpec::Loss(LossSpec::Periodic {
        every: 1_000_000,
        first: 1,
    });
    let [with, without] = [vec![lost], vec![]].map(|cells| outcome(&transfer(cells)));
    let [with, without] = [with, without].map(|outcome| outcome.flows[0].duration_ns);
    assert_eq!(with - without, S_NS);
}

#[test]
fn a_stopped_flow_ends_there() {
    let mut spec = path(20 * MS_NS, [CellSpec::rate(10_000_000, None)], 5 * S_NS);
    spec.flows = vec![bulk(None)];
    spec.flows[0].start_ns = S_NS;
    spec.flows[0].stop_ns = Some(3 * S_NS);
    spec.flows[0].tcp.receive_buffer = Buffer::Fixed(50_000);
    spec.sample_every_ns = Some(100 * MS_NS);
    let outcome = outcome(&spec);
    let flow = &outcome.flows[0];
    assert_eq!(flow.duration_ns, 2 * S_NS);
    // What is under way then is nobody's.
    assert_eq!(outcome.ended_ns, 3 * S_NS);
    assert!(outcome.links[0][0].held.packets > 0);
    let times: Vec<_> = flow.samples.iter().map(|sample| sample.at_ns).collect();
    assert_eq!(
        (times[0], times[19], times.len()),
        (S_NS, 29 * S_NS / 10, 20)
    );
    assert!(
        flow.samples
            .is_sorted_by_key(|sample| sample.delivered_bytes)
    );
    assert!(flow.samples[10].in_flight_pkts > 0 && flow.samples[10].srtt_us >= 20_000);
    assert_eq!(outcome.links[0][0].samples.len(), 30);
}

/// iperf3 -t: the SYN's second is not the program's.
#[test]
fn a_program_s_time_counts_from_the_establishment() {
    let lost = CellSpec::Loss(LossSpec::Periodic {
        every: 1_000_000,
        first: 1,
    });
    let mut spec = path(
        20 * MS_NS,
        [lost, CellSpec::rate(10_000_000, None)],
        9 * S_NS,
    );
    spec.flows = vec![bulk(None), bulk(None), bulk(None)];
    spec.flows[1].start_ns = 500 * MS_NS;
    for flow in &mut spec.flows {
        flow.lasts_ns = Some(2 * S_NS);
    }
    spec.flows[2].stop_ns = Some(S_NS);
    let outcome = outcome(&spec);
    // One's SYN is lost, the other's stands in a queue.
    for (flow, least_ns) in [(0, S_NS), (1, 50 * MS_NS)] {
        let (flow, spec) = (&outcome.flows[flow], &spec.flows[flow]);
        let opening_ns = flow.established_ns.unwrap() - spec.start_ns;
        assert!(opening_ns > least_ns, "{opening_ns}");
        assert_eq!(flow.duration_ns, opening_ns + 2 * S_NS);
        assert!(flow.delivered_bytes > 0);
    }
    assert_eq!(outcome.flows[2].duration_ns, S_NS);
}

#[test]
fn a_caller_can_stop_it() {
    let mut spec = transfer([]);
    spec.flows[0].source = fatpath_sim::Source::Bulk {
        bytes: None,
        again: false,
    };
    let mut reports = 0;
    let outcome = fatpath_sim::run(&spec, |progress| {
        reports += 1;
        assert!(progress.now_ns <= progress.end_ns);
        match reports {
            3 => std::ops::ControlFlow::Break(()),
            _ => std::ops::ControlFlow::Continue(()),
        }
    });
    let outcome = outcome.unwrap();
    assert!(outcome.stopped && outcome.ended_ns < spec.end_ns && reports == 3);
    assert_eq!(outcome.flows[0].duration_ns, outcome.ended_ns);
}
