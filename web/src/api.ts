// SPDX-License-Identifier: MIT OR Apache-2.0
// The daemon's API as the page uses it. The forms are those of /v1/openapi.json; what arrives is the
// daemon's own and is not checked again, but all of its text is shown as text.

export type Severity = "info" | "warning" | "problem";
export type LimitedBy = "idle" | "network" | "receiver" | "send_buffer";

export interface FindingName {
  id: string;
  title: string;
  severity: Severity;
}

/** One flow in the table. */
export interface FlowRow {
  cookie: number;
  local: string;
  remote: string;
  rule: string | null;
  law: string;
  is_passive: boolean;
  is_rude: boolean;
  has_ended: boolean;
  elapsed_s: number;
  goodput_bps: number;
  received_bps: number;
  average_bps: number;
  retransmitted_share: number;
  srtt_us: number;
  min_rtt_us: number | null;
  cwnd_pkts: number;
  in_flight_pkts: number;
  limited_by: LimitedBy;
  findings: FindingName[];
}

export interface Finding extends FindingName {
  evidence: { name: string; value: number; unit: string }[];
  gain: number | null;
  cure: string | null;
}

export interface Shares {
  application: number;
  send_buffer: number;
  receiver: number;
  timeout: number;
  network: number;
}

export interface Rates {
  goodput_bps: number;
  sent_bps: number;
  received_bps: number;
  retransmitted_share: number;
  average_bps: number;
}

export interface Flow {
  cookie: number;
  local: string;
  remote: string;
  is_passive: boolean;
  is_adopted: boolean;
}

/** The part of a sample that the page shows; the document has all of it. */
export interface Sample {
  law: string;
  ca_state: string;
  bytes_acked: number;
  bytes_received: number;
  segs_retrans: number;
  srtt_us: number;
  min_rtt_us: number | null;
  rto_us: number;
  mss_bytes: number;
  pmtu_bytes: number;
  cwnd_pkts: number;
  ssthresh_pkts: number | null;
  peer_window_bytes: number;
  send_buffer_bytes: number;
  receive_buffer_bytes: number;
  send_buffer_is_locked: boolean;
  receive_buffer_is_locked: boolean;
  timeouts: number;
  cong_signals: number;
  is_rude: boolean;
  now_ns: number;
  begin_ns: number;
}

export interface FlowView {
  flow: Flow;
  rule: string | null;
  sample: Sample;
  rates: Rates;
  shares: Shares;
  derived: Record<string, number>;
  findings: Finding[];
  has_ended: boolean;
}

export interface Point {
  t_s: number;
  cwnd_pkts: number;
  ssthresh_pkts: number | null;
  srtt_us: number;
  rtt_us: number | null;
  in_flight_pkts: number;
  rate_bps: number;
  average_bps: number;
  retransmitted_pkts: number;
}

export type EventKind =
  | "begin"
  | "tuned"
  | "congestion"
  | "timeout"
  | "retransmission"
  | "finding"
  | "end";

export interface FlowEvent {
  t_s: number;
  kind: EventKind;
  text: string;
}

export interface FlowDetail {
  view: FlowView;
  points: Point[];
  events: FlowEvent[];
}

export interface Why {
  flow: Flow;
  findings: Finding[];
  span_s: number;
}

/** An answer other than 200. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  const answer = await request(path, signal);
  return (await answer.json()) as T;
}

export async function request(path: string, signal?: AbortSignal): Promise<Response> {
  const token = sessionStorage.getItem(TOKEN);
  const headers: HeadersInit = token ? { authorization: `Bearer ${token}` } : {};
  const answer = await fetch(path, { headers, cache: "no-store", ...(signal && { signal }) });
  if (!answer.ok) {
    throw new Refused(answer.status, await reason(answer));
  }
  return answer;
}

async function reason(answer: Response): Promise<string> {
  try {
    return String(((await answer.json()) as { error: unknown }).error);
  } catch {
    return `the daemon answered ${answer.status}`;
  }
}

const TOKEN = "fatpath-token";

/** Takes the token out of the address, where it stood as #token=...: it must not stay in the history. */
export function takeToken(): void {
  const token = /^#token=([0-9a-f]+)$/.exec(location.hash)?.[1];
  if (token) {
    sessionStorage.setItem(TOKEN, token);
    history.replaceState(null, "", location.pathname);
  }
}

export function setToken(token: string): void {
  sessionStorage.setItem(TOKEN, token);
}
