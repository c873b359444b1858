// SPDX-License-Identifier: MIT OR Apache-2.0
// One live plot. The cursors of plots of the same time move together, and events are marked on all of them.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useEffect, useRef, useState } from "preact/hooks";
import type { JSX } from "preact";
import { date } from "./history";
import { useSize } from "./hooks";
import type { Columns, Drawn, LineStyle, Mark } from "./plots";
import { colour } from "./theme";

const HEIGHT_PX = 180;

/** Room for "1.23 Gb/s" beside the axis, px. */
const AXIS_PX = 76;

/** Seconds of a flow's life, or since 1970. */
type Time = "elapsed" | "date";

interface PlotProps {
  plot: Drawn;
  columns: Columns;
  marks: Mark[];
  time: Time;
}

export function Plot({ plot, columns, marks, time }: PlotProps): JSX.Element {
  const frame = useRef<HTMLDivElement>(null);
  const drawn = useRef<uPlot | null>(null);
  const latest = useRef(marks);
  const { width } = useSize(frame);
  const theme = useTheme();
  latest.current = marks;
  useEffect(() => {
    if (!frame.current || width === 0) return undefined;
    const made = new uPlot(options(plot, width, latest, time), columns as uPlot.AlignedData, frame.current);
    drawn.current = made;
    return () => made.destroy();
  }, [width, theme, plot, time]);
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
function summary(plot: Drawn, columns: Columns): string {
  const now = plot.lines.map((line, i) => {
    const last = columns[i + 1]?.at(-1);
    return `${line.title} ${last === null || last === undefined ? "unknown" : plot.show(last)}`;
  });
  return `${plot.title}: now ${now.join(", ")}`;
}

function options(plot: Drawn, width: number, marks: { current: Mark[] }, time: Time): uPlot.Options {
  const isDate = time === "date";
  const shown = (t_s: number): string => (isDate ? date(t_s) : `${t_s.toFixed(2)} s`);
  const axis = { stroke: colour("dim"), grid: { stroke: colour("grid"), width: 1 }, ticks: { show: false } };
  return {
    width,
    height: HEIGHT_PX,
    tzDate: (t_s) => uPlot.tzDate(new Date(t_s * 1000), "Etc/UTC"),
    cursor: { sync: { key: time }, points: { size: 5 } },
    scales: { x: { time: isDate }, y: { range: (_, __, most) => [0, most > 0 ? 1.05 * most : 1] } },
    axes: [
      { ...axis, size: isDate ? 44 : 28, ...(!isDate && { values: (_, ticks) => ticks.map((tick) => `${tick} s`) }) },
      { ...axis, size: AXIS_PX, values: (_, ticks) => ticks.map((tick) => plot.show(tick)) },
    ],
    series: [
      { label: "time", value: (_, t_s) => (t_s === null ? "–" : shown(t_s)) },
      ...plot.lines.map((line) => series(plot, line, isDate)),
    ],
    hooks: { draw: [(drawn) => drawMarks(drawn, marks.current)] },
  };
}

/** Between dates there may be days without a flow: each value is a point, too. */
function series(plot: Drawn, line: LineStyle, hasPoints: boolean): uPlot.Series {
  const bars = line.isBars ? uPlot.paths.bars?.({ size: [0.9, 6] }) : undefined;
  return {
    label: line.title,
    stroke: colour(line.colour),
    width: 1.5,
    points: { show: hasPoints && !line.isBars, size: 4 },
    spanGaps: true,
    value: (_, value) => (value === null ? "–" : plot.show(value)),
    ...(line.isDashed && { dash: [6, 4] }),
    ...(bars && { paths: bars, fill: colour(line.colour) }),
  };
}

function drawMarks(drawn: uPlot, marks: Mark[]): void {
  const { ctx, bbox } = drawn;
  const { min, max } = drawn.scales.x ?? {};
  if (min == null || max == null) return;
  ctx.save();
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([2 * devicePixelRatio, 2 * devicePixelRatio]);
  for (const mark of marks) {
    if (mark.t_s < min || mark.t_s > max) continue;
    const x = drawn.valToPos(mark.t_s, "x", true);
    ctx.strokeStyle = colour(mark.colour);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}
