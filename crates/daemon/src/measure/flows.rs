// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the instruments say of the flows of a test, by the names of RFC 4898.

use crate::instruments::Instruments;
use fatpath_api::{Flow, FlowSummary, FlowView, TestFlow};
use fatpath_estats::variables;
use fatpath_kernel::netns_here;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The other end may close a flow a while after the test's program has ended.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
const LOOKS_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// Sums up the flows of a test that began at `since_ns` (CLOCK_MONOTONIC) and has ended; waits until they have ended, too.
pub(super) fn sum_up(flows: &mut [TestFlow], instruments: &Instruments, since_ns: u64) {
    if flows.is_empty() {
        return;
    }
    let Ok(netns) = netns_here() else { return };
    let until = Instant::now() + ENDS_WITHIN;
    loop {
        let views = views(flows, instruments, netns, since_ns);
        for flow in flows.iter_mut() {
            let view = views.iter().find(|view| has_ends(&view.flow, flow));
            flow.summary = view.map(summary);
        }
        if flows.iter().all(has_ended) || Instant::now() >= until {
            return;
        }
        std::thread::sleep(LOOKS_AGAIN_AFTER);
    }
}

/// An earlier flow may have had the same ends.
fn views(
    flows: &[TestFlow],
    instruments: &Instruments,
    netns: u32,
    since_ns: u64,
) -> Vec<FlowView> {
    let is_of_test =
        |flow: &Flow| flow.netns == netns && flows.iter().any(|of_test| has_ends(flow, of_test));
    let mut views = instruments.views_where(is_of_test);
    views.retain(|view| view.sample.begin_ns >= since_ns);
    views
}

fn has_ends(flow: &Flow, of_test: &TestFlow) -> bool {
    is_same(flow.local, of_test.local) && is_same(flow.remote, of_test.remote)
}

fn is_same(a: SocketAddr, b: SocketAddr) -> bool {
    (a.ip().to_canonical(), a.port()) == (b.ip().to_canonical(), b.port())
}

fn has_ended(flow: &TestFlow) -> bool {
    let summary = flow.summary.as_ref();
    summary.is_some_and(|summary| summary.has_ended)
}

fn summary(view: &FlowView) -> FlowSummary {
    let sample = &view.sample;
    let of_rfc = variables::all();
    let values =
        of_rfc.filter_map(|variable| Some((variable.name.to_owned(), variable.of(sample)?)));
    FlowSummary {
        rule: view.rule.clone(),
        law: sample.law.to_string(),
        has_ended: view.has_ended,
        variables: values.filter(|(_, value)| value.is_finite()).collect(),
    }
}
