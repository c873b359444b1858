// SPDX-License-Identifier: MIT OR Apache-2.0
import type { FlowRow } from "../src/api";

/** A flow for tests. */
export function row(cookie: number, more: Partial<FlowRow> = {}): FlowRow {
  return {
    cookie,
    local: "192.0.2.1:40000",
    remote: `10.0.0.${cookie}:443`,
    rule: null,
    law: "cubic",
    is_passive: false,
    is_rude: false,
    has_ended: false,
    elapsed_s: 1,
    goodput_bps: 0,
    received_bps: 0,
    average_bps: 0,
    retransmitted_share: 0,
    srtt_us: 1000,
    min_rtt_us: null,
    cwnd_pkts: 10,
    in_flight_pkts: 0,
    limited_by: "idle",
    findings: [],
    ...more,
  };
}
