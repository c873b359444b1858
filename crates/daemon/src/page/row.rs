// SPDX-License-Identifier: MIT OR Apache-2.0
//! A flow as a row of a table: what changes often is sent often, so it is small. All of a flow is at
//! `/v1/instruments/flows/{cookie}`.

use fatpath_estats::{FlowView, LimitedBy, Severity};
use serde::Serialize;
use std::net::SocketAddr;

/// One row; the fields are those of `FlowView`'s parts.
#[derive(Serialize)]
pub(crate) struct FlowRow<'v> {
    cookie: u64,
    local: SocketAddr,
    remote: SocketAddr,
    rule: Option<&'v str>,
    law: &'v str,
    is_passive: bool,
    is_rude: bool,
    has_ended: bool,
    elapsed_s: f64,
    goodput_bps: f64,
    received_bps: f64,
    average_bps: f64,
    retransmitted_share: f64,
    srtt_us: u32,
    min_rtt_us: Option<u32>,
    cwnd_pkts: u32,
    in_flight_pkts: u32,
    limited_by: LimitedBy,
    findings: Vec<FindingName<'v>>,
}

/// A finding without its evidence.
#[derive(Serialize)]
struct FindingName<'v> {
    id: &'v str,
    title: &'v str,
    severity: Severity,
}

impl<'v> From<&'v FlowView> for FlowRow<'v> {
    fn from(view: &'v FlowView) -> FlowRow<'v> {
        let FlowView {
            flow,
            sample,
            rates,
            ..
        } = view;
        let findings = view.findings.iter().map(|finding| FindingName {
            id: &finding.id,
            title: &finding.title,
            severity: finding.severity,
        });
        FlowRow {
            cookie: flow.cookie,
            local: flow.local,
            remote: flow.remote,
            rule: view.rule.as_deref(),
            law: &sample.law,
            is_passive: flow.is_passive,
            is_rude: sample.is_rude,
            has_ended: view.has_ended,
            elapsed_s: sample.elapsed_s(),
            goodput_bps: rates.goodput_bps,
            received_bps: rates.received_bps,
            average_bps: rates.average_bps,
            retransmitted_share: rates.retransmitted_share,
            srtt_us: sample.srtt_us,
            min_rtt_us: sample.min_rtt_us,
            cwnd_pkts: sample.cwnd_pkts,
            in_flight_pkts: sample.in_flight_pkts(),
            limited_by: sample.limited_by,
            findings: findings.collect(),
        }
    }
}
