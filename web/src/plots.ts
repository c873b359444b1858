// SPDX-License-Identifier: MIT OR Apache-2.0
// What a flow's plots show.

import type { Point } from "./api";
import { digits, milliseconds, rate } from "./format";

export type Columns = (number | null)[][];

export interface LineStyle {
  title: string;
  /** A colour of the style sheet. */
  colour: string;
  isBars?: boolean;
  isDashed?: boolean;
}

/** What a plot looks like. */
export interface Drawn {
  title: string;
  lines: LineStyle[];
  show: (value: number) => string;
}

/** What happened at a time of a plot. */
export interface Mark {
  t_s: number;
  /** A colour of the style sheet. */
  colour: string;
}

export interface Line extends LineStyle {
  value: (point: Point) => number | null;
}

export interface PlotOf extends Drawn {
  lines: Line[];
  /** First the times, s, then each line. */
  columns: (points: Point[]) => Columns;
}

function plot(title: string, show: (value: number) => string, lines: Line[]): PlotOf {
  const columns = (points: Point[]): Columns => [
    points.map((point) => point.t_s),
    ...lines.map((line) => points.map(line.value)),
  ];
  return { title, lines, show, columns };
}

export const PLOTS: PlotOf[] = [
  plot("Window, packets", digits, [
    { title: "cwnd", colour: "line-1", value: (point) => point.cwnd_pkts },
    { title: "ssthresh", colour: "line-2", value: (point) => point.ssthresh_pkts, isDashed: true },
    { title: "in flight", colour: "line-3", value: (point) => point.in_flight_pkts },
  ]),
  plot("Round-trip time", milliseconds, [
    { title: "RTT", colour: "line-3", value: (point) => point.rtt_us },
    { title: "smoothed", colour: "line-1", value: (point) => point.srtt_us },
  ]),
  plot("Rate", rate, [
    { title: "rate", colour: "line-1", value: (point) => point.rate_bps },
    { title: "average", colour: "line-2", value: (point) => point.average_bps, isDashed: true },
  ]),
  plot("Retransmissions, packets", digits, [
    { title: "resent", colour: "line-4", value: (point) => point.retransmitted_pkts, isBars: true },
  ]),
];
