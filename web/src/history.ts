// SPDX-License-Identifier: MIT OR Apache-2.0
// The history of a path as columns of plots, marks on them and rows of a list.

import type { ArchivedEvent, PathHistory } from "./api";
import { digits, milliseconds, percent, rate, si } from "./format";
import type { Columns, Drawn, LineStyle, Mark } from "./plots";

/** How far back, and how long an interval is. */
export interface Span {
  title: string;
  days: number;
  by: "minute" | "hour";
}

export const SPANS: [Span, ...Span[]] = [
  { title: "7 days", days: 7, by: "hour" },
  { title: "1 day", days: 1, by: "minute" },
  { title: "30 days", days: 30, by: "hour" },
  { title: "400 days", days: 400, by: "hour" },
];

type Measure = "goodput_bps" | "srtt_us" | "min_rtt_us" | "retransmitted_share";
type Part = "n" | "p10" | "p50" | "p90";

interface HistoryLine extends LineStyle {
  measure: Measure;
  part: Part;
}

export interface HistoryPlot extends Drawn {
  lines: HistoryLine[];
}

const line = (title: string, colour: string, measure: Measure, part: Part, more: Partial<LineStyle> = {}): HistoryLine => ({
  title,
  colour,
  measure,
  part,
  ...more,
});

export const HISTORY_PLOTS: HistoryPlot[] = [
  {
    title: "Goodput of flows",
    show: rate,
    lines: [
      line("90 %", "line-3", "goodput_bps", "p90", { isDashed: true }),
      line("median", "line-1", "goodput_bps", "p50"),
      line("10 %", "line-2", "goodput_bps", "p10", { isDashed: true }),
    ],
  },
  {
    title: "Round-trip time",
    show: milliseconds,
    lines: [line("smoothed, median", "line-1", "srtt_us", "p50"), line("least, 10 %", "line-3", "min_rtt_us", "p10")],
  },
  {
    title: "Retransmitted",
    show: percent,
    lines: [
      line("90 %", "line-4", "retransmitted_share", "p90", { isDashed: true }),
      line("median", "line-1", "retransmitted_share", "p50"),
    ],
  },
  { title: "Flows that ended", show: digits, lines: [line("flows", "line-1", "goodput_bps", "n", { isBars: true })] },
];

/** First the times, seconds since 1970, then each line. */
export function columns(plot: HistoryPlot, history: PathHistory): Columns {
  const { intervals } = history;
  const times = intervals.map((interval) => Date.parse(interval.begin) / 1000);
  const value = ({ measure, part }: HistoryLine): (number | null)[] =>
    intervals.map((interval) => interval.measures[measure]?.[part] ?? null);
  return [times, ...plot.lines.map(value)];
}

export type What = "test" | "finding" | "tuned" | "estimate" | "other";

export function what(event: ArchivedEvent): What {
  if (event.kind === "test") return "test";
  if (event.kind === "decision") return "tuned";
  if (event.kind === "path") return "estimate";
  return event.name === "finding" ? "finding" : "other";
}

/** Estimates come with nearly every interval: they are listed, not marked. */
const MARKED: Record<What, string | null> = {
  test: "mark-test",
  finding: "mark-finding",
  tuned: "mark-tuned",
  estimate: null,
  other: null,
};

export function marks(history: PathHistory): Mark[] {
  return history.events.flatMap((event) => {
    const colour = MARKED[what(event)];
    return colour === null ? [] : [{ t_s: event.time_us / 1e6, colour }];
  });
}

/** What an event says, in a line. */
export function told(event: ArchivedEvent): string {
  const at = (name: string): string => text(event.body, name);
  switch (what(event)) {
    case "finding":
      return `${at("attributes.finding.id")}: ${at("attributes.finding.title")}`;
    case "test":
      return [event.name, at("test"), event.value === null ? "no result" : si(event.value, ""), at("message")].filter(Boolean).join(", ");
    case "estimate":
      return event.value === null ? event.name : `${event.name}: ${rate(event.value)}`;
    default:
      return [event.name, at("file")].filter(Boolean).join(": ");
  }
}

/** A text within the body, by the names that lead to it; none where it is not. */
function text(body: unknown, names: string): string {
  const found = names.split(".").reduce<unknown>((at, name) => {
    return typeof at === "object" && at !== null ? (at as Record<string, unknown>)[name] : undefined;
  }, body);
  return typeof found === "string" ? found : "";
}

/** 2026-11-23 10:15, UTC. */
export const date = (t_s: number): string => new Date(t_s * 1000).toISOString().slice(0, 16).replace("T", " ");
