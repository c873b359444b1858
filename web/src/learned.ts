// SPDX-License-Identifier: MIT OR Apache-2.0
// What was learned of paths: which of them a table shows, its columns, and what their settings say.

import type { LearnedPath, PathEvidence, PathState } from "./api";
import { numbers, words, type Column, type Ordered } from "./columns";
import { bytes, digits, duration, milliseconds, percent, rate, times } from "./format";
import { date } from "./history";
import { addressOf, contains, parsePrefix } from "./prefix";

export interface PathFilter {
  /** A prefix of peers, or any part of what is shown in words. */
  text: string;
  state: PathState | "";
}

export const NO_PATH_FILTER: PathFilter = { text: "", state: "" };

/** As `fatpath paths` prints them. */
export const STATES: Record<PathState, string> = {
  tuned: "tuned",
  observed: "observed",
  as_host: "as host",
  quarantined: "quarantined",
};

/** A setting by its key of the policy file, without quotation marks; null where there is none. */
export function setting(path: LearnedPath, key: string): string | null {
  const line = path.settings.split("\n").find((one) => one.startsWith(`${key} = `));
  return line === undefined ? null : line.slice(key.length + 3).replaceAll('"', "");
}

/** The number of a setting, whose unit may follow it. */
function amount(path: LearnedPath, key: string): number | null {
  const value = parseFloat(setting(path, key) ?? "");
  return Number.isNaN(value) ? null : value;
}

/** The law, and the rate that it never exceeds. */
function law(path: LearnedPath): string {
  const pace_bps = amount(path, "pacing_rate");
  const most = pace_bps === null ? [] : [`at most ${rate(pace_bps)}`];
  return [setting(path, "congestion_control") ?? "–", ...most].join(", ");
}

/** Where something else than the path held flows back, it may carry more. */
export const learnedRate = (path: LearnedPath): string =>
  path.rate_bps === null ? "–" : `${path.rate_limit === null ? "" : "> "}${rate(path.rate_bps)}`;

/** With the time at which it is tuned again. */
export const stateOf = (path: LearnedPath): string =>
  path.quarantined_until === null ? STATES[path.state] : `${STATES[path.state]} until ${utc(path.quarantined_until)}`;

/** The host's clock and the browser's may differ. */
export const age_s = (time: string, now_ms = Date.now()): number => Math.max(0, (now_ms - Date.parse(time)) / 1000);

export const utc = (time: string): string => `${date(Date.parse(time) / 1000)} UTC`;

const COLUMNS: Column<LearnedPath>[] = [
  words("prefix", "Peers", "prefix of the peers", 1, (path) => path.prefix),
  words("local", "Here", "address of this host", 3, (path) => path.local),
  numbers("rtt", "RTT", "round-trip time without queues", 1, (path) => path.base_rtt_us, milliseconds),
  numbers("rate", "Rate", "bits a second; > where the path may carry more", 1, (path) => path.rate_bps, (_, path) =>
    learnedRate(path),
  ),
  words("loss", "Loss", "when segments are lost", 2, (path) => path.loss?.replaceAll("_", " ") ?? "–"),
  numbers("resent", "Resent", "share of the segments that was sent again", 3, (path) => path.retransmitted_share, percent),
  words("state", "State", "whether flows get what was chosen for the path", 1, stateOf),
  numbers("gain", "Gain", "rate of flows with learned settings, as a multiple of that of others", 2, (path) => path.gain, times),
  words("law", "Law", "congestion-control law that flows get", 2, law),
  numbers("send", "To send", "buffer that flows get to send", 3, (path) => amount(path, "send_buffer"), bytes),
  numbers("receive", "To receive", "buffer that flows get to receive", 3, (path) => amount(path, "receive_buffer"), bytes),
  numbers("start", "Start", "rate at which flows start", 3, (path) => amount(path, "initial_rate"), rate),
  numbers("flows", "Flows", "flows that told something", 2, (path) => path.flows, String),
  numbers("seen", "Seen", "since a flow was last seen", 2, (path) => age_s(path.seen), duration),
  words("why", "Why", "the reason that counts most", 3, (path) => path.reasons[0] ?? "–"),
];

/** A host's two addresses reach the same peers by two paths. */
export const LEARNED: Ordered<LearnedPath> = {
  columns: COLUMNS,
  identity: (path) => `${path.prefix},${path.local}`,
  isOver: () => false,
};

/** What one flow told, as far as it could. */
export const EVIDENCE: Column<PathEvidence>[] = [
  words("began", "Began", "when the flow began", 1, (flow) => utc(flow.began)),
  numbers("bytes", "Moved", "bytes acknowledged or received", 1, (flow) => flow.bytes, bytes),
  numbers("min_rtt", "Least RTT", "least round-trip time", 1, (flow) => flow.min_rtt_us, milliseconds),
  numbers("rtt", "Mean RTT", "mean round-trip time", 1, (flow) => flow.mean_rtt_us, milliseconds),
  numbers("rate", "Rate", "best rate in a window of a second and ten round trips", 1, (flow) => flow.rate_bps, rate),
  words("limit", "Held back by", "in a quarter of its time or more", 1, (flow) => flow.limit?.replaceAll("_", " ") ?? "–"),
  words("loss", "Loss", "what losses it had", 1, (flow) => flow.loss?.replaceAll("_", " ") ?? "–"),
  numbers("resent", "Resent", "segments that were sent again", 1, (flow) => flow.retransmitted_pkts, (count, flow) =>
    `${count} of ${flow.sent_pkts}`,
  ),
  words("settings", "Settings", "what gave the flow its settings", 1, (flow) => (flow.is_tuned ? "learned" : "others")),
];

export function filteredPaths(paths: LearnedPath[], filter: PathFilter): LearnedPath[] {
  const isNear = textMatcher(filter.text);
  return paths.filter((path) => (!filter.state || path.state === filter.state) && isNear(path));
}

function textMatcher(text: string): (path: LearnedPath) => boolean {
  const wanted = text.trim().toLowerCase();
  const prefix = parsePrefix(wanted);
  if (wanted === "") return () => true;
  if (!prefix) return (path) => inWords(path).some((part) => part.toLowerCase().includes(wanted));
  return (path) => [path.prefix, path.local].some((end) => {
    const other = parsePrefix(end);
    return other !== null && (contains(prefix, other) || contains(other, prefix));
  });
}

const inWords = (path: LearnedPath): string[] => [
  path.prefix,
  path.local,
  path.settings,
  path.loss ?? "",
  STATES[path.state],
  ...path.reasons,
];

/** Whether a flow with these two ends goes over the path. */
export function isOnPath(path: LearnedPath, local: string, remote: string): boolean {
  return isIn(path.local, local) && isIn(path.prefix, remote);
}

function isIn(prefix: string, socket: string): boolean {
  const [wanted, end] = [parsePrefix(prefix), parsePrefix(addressOf(socket))];
  return wanted !== null && end !== null && contains(wanted, end);
}

/** What flows get, in a line. */
export function settingsInWords(path: LearnedPath): string {
  const numbered = NUMBERED.flatMap(([key, what, show]) => {
    const value = amount(path, key);
    return value === null ? [] : [`${what} ${show(value)}`];
  });
  return [...(setting(path, "congestion_control") === null ? [] : [law(path)]), ...numbered].join(", ");
}

const NUMBERED: [key: string, what: string, show: (value: number) => string][] = [
  ["send_buffer", "send buffer", bytes],
  ["receive_buffer", "receive buffer", bytes],
  ["initial_rate", "start at", rate],
  ["initial_ssthresh", "slow start up to", (packets) => `${digits(packets)} packets`],
];
