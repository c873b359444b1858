// SPDX-License-Identifier: MIT OR Apache-2.0
//! Small networks and flows for these tests.

use std::ops::ControlFlow;

use fatpath_link::{CellSpec, ChainSpec};
use fatpath_sim::{FlowSpec, LinkSpec, Outcome, Source, Spec, TcpSpec, run};

pub const MS_NS: u64 = 1_000_000;
pub const S_NS: u64 = 1_000 * MS_NS;

/// All of it.
pub fn outcome(spec: &Spec) -> Outcome {
    run(spec, |_| ControlFlow::Continue(())).expect("the spec is possible")
}

/// A link that takes what `cells` do there, and half of `rtt_ns` each way.
pub fn link(between: [usize; 2], rtt_ns: u64, cells: impl Into<Vec<CellSpec>>) -> LinkSpec {
    let back = ChainSpec::of([CellSpec::delay(rtt_ns / 2)]);
    let mut there = back.clone();
    there.cells.splice(0..0, cells.into());
    LinkSpec {
        between,
        mtu_bytes: 1_500,
        directions: [there, back],
    }
}

/// Hosts in a row, a link from each to the next.
pub fn row(links: Vec<LinkSpec>, end_ns: u64) -> Spec {
    let hosts = links.len() + 1;
    let route = |at: usize, to: usize| match at.cmp(&to) {
        std::cmp::Ordering::Less => Some((at, 0)),
        std::cmp::Ordering::Equal => None,
        std::cmp::Ordering::Greater => Some((at - 1, 1)),
    };
    let routes = (0..hosts).map(|at| (0..hosts).map(|to| route(at, to)).collect());
    Spec {
        hosts,
        links,
        routes: routes.collect(),
        changes: vec![],
        flows: vec![],
        end_ns,
        seed: 1,
        sample_every_ns: None,
    }
}

/// Two hosts and a link.
pub fn path(rtt_ns: u64, cells: impl Into<Vec<CellSpec>>, end_ns: u64) -> Spec {
    row(vec![link([0, 1], rtt_ns, cells)], end_ns)
}

pub fn flow(source: Source) -> FlowSpec {
    FlowSpec {
        from: 0,
        to: 1,
        start_ns: 0,
        stop_ns: None,
        lasts_ns: None,
        source,
        tcp: TcpSpec::default(),
        shared_rate: None,
        may_be_fragmented: false,
    }
}

pub fn bulk(bytes: Option<u64>) -> FlowSpec {
    flow(Source::Bulk {
        bytes,
        again: false,
    })
}
