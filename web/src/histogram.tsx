// SPDX-License-Identifier: MIT OR Apache-2.0
// How a quantity is distributed over flows: bars of equal width on a logarithmic axis, and three quantiles.

import type { JSX } from "preact";
import { bins, quantile } from "./distribution";

interface HistogramProps {
  title: string;
  values: number[];
  show: (value: number) => string;
}

const WIDTH = 320;
const HEIGHT = 90;

export function Histogram({ title, values, show }: HistogramProps): JSX.Element {
  const positive = values.filter((value) => value > 0);
  if (positive.length === 0) {
    return (
      <figure>
        <figcaption>{title}</figcaption>
        <p class="empty">No flow has one yet.</p>
      </figure>
    );
  }
  const text = [0.1, 0.5, 0.9].map((q) => `${q * 100} %: ${show(quantile(positive, q))}`).join(" · ");
  return (
    <figure role="img" aria-label={`${title} of ${positive.length} flows: ${text}`}>
      <figcaption>{title}</figcaption>
      <Bars values={positive} show={show} />
      <p class="quantiles">{text}</p>
    </figure>
  );
}

function Bars({ values, show }: { values: number[]; show: (value: number) => string }): JSX.Element {
  const all = bins(values);
  const most = Math.max(...all.map((bin) => bin.count));
  const width = WIDTH / all.length;
  return (
    <>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" class="histogram">
        {all.map((bin, i) => (
          <rect
            key={i}
            x={i * width + 1}
            width={width - 2}
            y={HEIGHT * (1 - bin.count / most)}
            height={(HEIGHT * bin.count) / most}
          >
            <title>{`${show(bin.from)} to ${show(bin.to)}: ${bin.count}`}</title>
          </rect>
        ))}
      </svg>
      <div class="ends">
        <span>{show(all[0]?.from ?? 0)}</span>
        <span>{show(all.at(-1)?.to ?? 0)}</span>
      </div>
    </>
  );
}
