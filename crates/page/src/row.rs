// SPDX-License-Identifier: MIT OR Apache-2.0
//! A flow as a row of the live stream.

use fatpath_api::{Finding, FindingName, FlowRow, FlowView};

pub(crate) fn row(view: FlowView) -> FlowRow {
    let in_flight_pkts = view.sample.in_flight_pkts();
    let elapsed_s = view.sample.elapsed_s();
    let FlowView {
        flow,
        rule,
        sample,
        rates,
        findings,
        has_ended,
        ..
    } = view;
    FlowRow {
        cookie: flow.cookie,
        local: flow.local,
        remote: flow.remote,
        rule,
        law: sample.law,
        is_passive: flow.is_passive,
        is_rude: sample.is_rude,
        has_ended,
        elapsed_s,
        goodput_bps: rates.goodput_bps,
        received_bps: rates.received_bps,
        average_bps: rates.average_bps,
        retransmitted_share: rates.retransmitted_share,
        srtt_us: sample.srtt_us,
        min_rtt_us: sample.min_rtt_us,
        cwnd_pkts: sample.cwnd_pkts,
        in_flight_pkts,
        limited_by: sample.limited_by,
        findings: findings.into_iter().map(name).collect(),
    }
}

fn name(finding: Finding) -> FindingName {
    FindingName {
        id: finding.id,
        title: finding.title,
        severity: finding.severity,
    }
}
