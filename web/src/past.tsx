// SPDX-License-Identifier: MIT OR Apache-2.0
// What was archived of a path: its flows by minute or hour, with tests, tunings and findings marked.

import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { ArchivedEvent, PathHistory } from "./api";
import { Explained } from "./findings";
import { columns, date, HISTORY_PLOTS, marks, SPANS, told, what, type Span } from "./history";
import { usePolled } from "./hooks";
import { Plot } from "./plot";

/** The archive is read from the disk: seldom, ms. */
const INTERVAL_MS = 60_000;

const DAY_US = 86_400e6;

/** Latest events that are listed; the plots mark all. */
const LISTED_EVENTS = 20;

export function Past({ prefix }: { prefix: string }): JSX.Element {
  const [span, setSpan] = useState<Span>(SPANS[0]);
  const since_us = useMemo(() => Math.floor(Date.now() * 1000 - span.days * DAY_US), [span]);
  const asked = `/v1/archive/path?prefix=${encodeURIComponent(prefix)}&by=${span.by}&since_us=${since_us}`;
  const { value, problem } = usePolled<PathHistory>(asked, INTERVAL_MS);
  return (
    <section aria-label="History">
      <h2>History</h2>
      <label>
        Time{" "}
        <select
          value={span.title}
          onChange={(event) => {
            const title = event.currentTarget.value;
            setSpan(SPANS.find((one) => one.title === title) ?? SPANS[0]);
          }}
        >
          {SPANS.map(({ title }) => (
            <option key={title}>{title}</option>
          ))}
        </select>
      </label>
      {problem && <p class="problem" role="alert">{problem}</p>}
      {value && <Shown history={value} />}
    </section>
  );
}

function Shown({ history }: { history: PathHistory }): JSX.Element {
  const all = useMemo(() => HISTORY_PLOTS.map((plot) => columns(plot, history)), [history]);
  const marked = useMemo(() => marks(history), [history]);
  if (history.intervals.length === 0 && history.events.length === 0) {
    return (
      <p class="empty">
        Nothing was archived of this path in this time. The policy’s section <code>[archive]</code> says what is kept.
      </p>
    );
  }
  return (
    <>
      {history.intervals.length > 0 && (
        <div class="plots">
          {HISTORY_PLOTS.map((plot, i) => (
            <Plot key={plot.title} plot={plot} columns={all[i] ?? [[]]} marks={marked} time="date" />
          ))}
        </div>
      )}
      <Events events={history.events} />
    </>
  );
}

function Events({ events }: { events: ArchivedEvent[] }): JSX.Element {
  const latest = events.slice(-LISTED_EVENTS).reverse();
  return (
    <table class="events" aria-label="What happened on the path">
      <thead>
        <tr>
          <th scope="col">Time, UTC</th>
          <th scope="col">Event</th>
          <th scope="col">What happened</th>
        </tr>
      </thead>
      <tbody>
        {latest.map((event) => (
          <tr key={`${event.host} ${event.boot} ${event.sequence}`}>
            <td>{date(event.time_us / 1e6)}</td>
            <td>
              <i class={`mark ${what(event)}`} /> {what(event)}
            </td>
            <td>
              <Explained text={told(event)} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
