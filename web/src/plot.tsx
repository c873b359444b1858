// SPDX-License-Identifier: MIT OR Apache-2.0
// One live plot. The cursors of a flow's plots move together, and events are marked on all of them.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useEffect, useRef, useState } from "preact/hooks";
import type { JSX } from "preact";
import type { EventKind, FlowEvent } from "./api";
import { useSize } from "./hooks";
import type { Columns, Line, PlotOf } from "./plots";
import { colour } from "./theme";

const HEIGHT_PX = 180;

/** Room for "1.23 Gb/s" beside the axis, px. */
const AXIS_PX = 76;

/** Events whose marks would hide the line are marked in the list alone. */
const MARKED: Record<EventKind, string | null> = {
  begin: null,
  tuned: "mark-tuned",
  congestion: "mark-congestion",
  timeout: "mark-timeout",
  retransmission: null,
  finding: "mark-finding",
  end: "mark-end",
};

interface PlotProps {
  plot: PlotOf;
  columns: Columns;
  events: FlowEvent[];
}

export function Plot({ plot, columns, events }: PlotProps): JSX.Element {
  const frame = useRef<HTMLDivElement>(null);
  const drawn = useRef<uPlot | null>(null);
  const marks = useRef(events);
  const { width } = useSize(frame);
  const theme = useTheme();
  marks.current = events;
  useEffect(() => {
    if (!frame.current || width === 0) return undefined;
    const made = new uPlot(options(plot, width, marks), columns as uPlot.AlignedData, frame.current);
    drawn.current = made;
    return () => made.destroy();
  }, [width, theme, plot]);
  useEffect(() => drawn.current?.setData(columns as uPlot.AlignedData), [columns]);
  return (
    <figure role="img" aria-label={summary(plot, columns)}>
      <figcaption>{plot.title}</figcaption>
      <div class="canvas" ref={frame} aria-hidden="true" />
    </figure>
  );
}

/** Changes when the colours do. */
function useTheme(): number {
  const [count, setCount] = useState(0);
  useEffect(() => {
    const changed = (): void => setCount((last) => last + 1);
    const system = matchMedia("(prefers-color-scheme: dark)");
    addEventListener("fatpath-theme", changed);
    system.addEventListener("change", changed);
    return () => {
      removeEventListener("fatpath-theme", changed);
      system.removeEventListener("change", changed);
    };
  }, []);
  return count;
}

/** For those who do not see the lines. */
function summary(plot: PlotOf, columns: Columns): string {
  const now = plot.lines.map((line, i) => {
    const last = columns[i + 1]?.at(-1);
    return `${line.title} ${last === null || last === undefined ? "unknown" : plot.show(last)}`;
  });
  return `${plot.title}: now ${now.join(", ")}`;
}

function options(plot: PlotOf, width: number, marks: { current: FlowEvent[] }): uPlot.Options {
  const axis = { stroke: colour("dim"), grid: { stroke: colour("grid"), width: 1 }, ticks: { show: false } };
  return {
    width,
    height: HEIGHT_PX,
    cursor: { sync: { key: "flow" }, points: { size: 5 } },
    scales: { x: { time: false }, y: { range: (_, __, most) => [0, most > 0 ? 1.05 * most : 1] } },
    axes: [
      { ...axis, size: 28, values: (_, ticks) => ticks.map((tick) => `${tick} s`) },
      { ...axis, size: AXIS_PX, values: (_, ticks) => ticks.map((tick) => plot.show(tick)) },
    ],
    series: [
      { label: "time", value: (_, t_s) => (t_s === null ? "–" : `${t_s.toFixed(2)} s`) },
      ...plot.lines.map((line) => series(plot, line)),
    ],
    hooks: { draw: [(drawn) => drawMarks(drawn, marks.current)] },
  };
}

function series(plot: PlotOf, line: Line): uPlot.Series {
  const bars = line.isBars ? uPlot.paths.bars?.({ size: [0.9, 6] }) : undefined;
  return {
    label: line.title,
    stroke: colour(line.colour),
    width: 1.5,
    points: { show: false },
    spanGaps: true,
    value: (_, value) => (value === null ? "–" : plot.show(value)),
    ...(line.isDashed && { dash: [6, 4] }),
    ...(bars && { paths: bars, fill: colour(line.colour) }),
  };
}

function drawMarks(drawn: uPlot, events: FlowEvent[]): void {
  const { ctx, bbox } = drawn;
  const { min, max } = drawn.scales.x ?? {};
  if (min == null || max == null) return;
  ctx.save();
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([2 * devicePixelRatio, 2 * devicePixelRatio]);
  for (const event of events) {
    const name = MARKED[event.kind];
    if (name === null || event.t_s < min || event.t_s > max) continue;
    const x = drawn.valToPos(event.t_s, "x", true);
    ctx.strokeStyle = colour(name);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}
