// SPDX-License-Identifier: MIT OR Apache-2.0
// Which flows the table shows, its columns, and their order.

import type { FlowRow, LimitedBy } from "./api";
import { numbers, words, type Column, type Ordered } from "./columns";
import { digits, duration, milliseconds, percent, rate } from "./format";
import { addressOf, contains, parsePrefix } from "./prefix";

export interface Filter {
  /** A prefix, or any part of an address or a rule's name. */
  text: string;
  rule: string;
  finding: string;
  ended: boolean;
}

export const NO_FILTER: Filter = { text: "", rule: "", finding: "", ended: true };

export const LIMITS: Record<LimitedBy, string> = {
  idle: "nothing to send",
  network: "network",
  receiver: "receiver",
  send_buffer: "send buffer",
};

/** Both directions: what the peer acknowledged, or what came in. */
export const throughput = (row: FlowRow): number => Math.max(row.goodput_bps, row.received_bps);

const SEVERITIES = ["info", "warning", "problem"];

/** Gravest finding first, then how many. */
const gravity = (row: FlowRow): number =>
  row.findings.reduce((most, finding) => Math.max(most, 1 + SEVERITIES.indexOf(finding.severity)), 0) * 100 +
  row.findings.length;

export const COLUMNS: Column<FlowRow>[] = [
  words("remote", "Peer", "address and port of the peer", 1, (row) => row.remote),
  words("local", "Here", "address and port of this host", 3, (row) => row.local),
  words("rule", "Rule", "rule of the policy", 2, (row) => row.rule ?? "–"),
  words("law", "Law", "congestion-control law", 3, (row) => (row.is_rude ? "rude" : row.law)),
  numbers("goodput", "Goodput", "bytes acknowledged or received, bits a second", 1, throughput, rate),
  numbers("rtt", "RTT", "smoothed round-trip time", 1, (row) => row.srtt_us, milliseconds),
  numbers("min_rtt", "min RTT", "least round-trip time", 3, (row) => row.min_rtt_us, milliseconds),
  numbers("cwnd", "cwnd", "congestion window, packets", 2, (row) => row.cwnd_pkts, digits),
  numbers("in_flight", "In flight", "packets in flight", 3, (row) => row.in_flight_pkts, digits),
  numbers("retransmitted", "Resent", "share of the bytes that was retransmitted", 2, (row) => row.retransmitted_share, percent),
  words("limited_by", "Held by", "what holds the sender back now", 2, (row) =>
    row.has_ended ? "ended" : LIMITS[row.limited_by],
  ),
  numbers("age", "Age", "since fatpath first saw the flow", 3, (row) => row.elapsed_s, duration),
  {
    key: "findings",
    title: "Findings",
    says: "why it is slow",
    value: gravity,
    text: (row) => row.findings.map((finding) => finding.id).join(" "),
    isNumber: true,
    rank: 1,
  },
];

export function filtered(rows: Iterable<FlowRow>, filter: Filter): FlowRow[] {
  const isNear = textMatcher(filter.text);
  const kept: FlowRow[] = [];
  for (const row of rows) {
    if (filter.rule && row.rule !== filter.rule) continue;
    if (filter.finding && !row.findings.some((finding) => finding.id === filter.finding)) continue;
    if (!filter.ended && row.has_ended) continue;
    if (isNear(row)) kept.push(row);
  }
  return kept;
}

function textMatcher(text: string): (row: FlowRow) => boolean {
  const wanted = text.trim().toLowerCase();
  const prefix = parsePrefix(wanted);
  if (wanted === "") return () => true;
  if (!prefix) {
    return (row) => [row.remote, row.local, row.rule ?? ""].some((part) => part.toLowerCase().includes(wanted));
  }
  return (row) => {
    const ends = [row.remote, row.local].map((socket) => parsePrefix(addressOf(socket)));
    return ends.some((end) => end !== null && contains(prefix, end));
  };
}

const LOOPBACK = ["127.0.0.0/8", "::1/128"].map(parsePrefix);

function isLoopback(socket: string): boolean {
  const end = parsePrefix(addressOf(socket));
  return end !== null && LOOPBACK.some((prefix) => prefix !== null && contains(prefix, end));
}

/** A connection by which a browser reads the page, which is served over loopback at this port. */
export function isOfPage(row: FlowRow, port: string): boolean {
  const ends = [row.local, row.remote];
  return ends.some((end) => end.endsWith(`:${port}`)) && ends.every(isLoopback);
}

/** Flows that ended stand below those that live: a host's many short connections would push them off the screen. */
export const FLOWS: Ordered<FlowRow> = { columns: COLUMNS, identity: (row) => row.cookie, isOver: (row) => row.has_ended };
