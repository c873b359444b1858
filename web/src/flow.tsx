// SPDX-License-Identifier: MIT OR Apache-2.0
// One flow: what it is, why it is slow, and its plots with what happened marked on the time axis.

import { useEffect, useMemo, useState } from "preact/hooks";
import type { JSX } from "preact";
import { request, type EventKind, type FlowDetail, type FlowEvent, type FlowView } from "./api";
import { FactList } from "./facts";
import { Explained, Findings, ShareBar } from "./findings";
import { bytes, digits, duration, milliseconds, percent, rate, si } from "./format";
import { usePolled } from "./hooks";
import { KnownOfFlow } from "./known";
import { Plot } from "./plot";
import { pathOf } from "./prefix";
import { PLOTS, type Mark } from "./plots";

/** Between two answers, ms. */
const INTERVAL_MS = 500;

/** Latest events that are listed; the plots mark all. */
const LISTED_EVENTS = 12;

export function FlowPage({ cookie }: { cookie: string }): JSX.Element {
  const { value, problem } = usePolled<FlowDetail>(`/v1/instruments/flows/${cookie}`, INTERVAL_MS);
  return (
    <article>
      <nav>
        <a href="#/">← all flows</a>
        {value && <> · <PathLink view={value.view} /></>}
      </nav>
      {problem && <p class="problem" role="alert">{problem}</p>}
      {value && <Flow detail={value} />}
    </article>
  );
}

function PathLink({ view }: { view: FlowView }): JSX.Element {
  const path = pathOf(view.flow.remote);
  return <a href={`#/path/${path}`}>path {path}</a>;
}

function Flow({ detail }: { detail: FlowDetail }): JSX.Element {
  const { view, points, events } = detail;
  const columns = useMemo(() => PLOTS.map((plot) => plot.columns(points)), [points]);
  const marks = useMemo(() => events.flatMap(mark), [events]);
  return (
    <>
      <h1>
        {view.flow.local} <span aria-label="to">→</span> {view.flow.remote}
        {view.has_ended && <span class="badge">ended</span>}
      </h1>
      <Facts view={view} />
      <KnownOfFlow view={view} />
      <section aria-label="Why it is slow">
        <h2>Findings</h2>
        <ShareBar shares={view.shares} />
        <Findings findings={view.findings} />
      </section>
      <section class="plots" aria-label="Plots">
        {PLOTS.map((plot, i) => (
          <Plot key={plot.title} plot={plot} columns={columns[i] ?? [[]]} marks={marks} time="elapsed" />
        ))}
      </section>
      <Events events={events} />
      <Capture cookie={String(view.flow.cookie)} hasEnded={view.has_ended} />
    </>
  );
}

/** As long as a capture takes, s. */
const CAPTURE_S = 10;

type Captured =
  | { state: "none" | "running" }
  | { state: "done"; url: string; warning: string | null }
  | { state: "failed"; reason: string };

/** Each packet of the next seconds, as a file that any browser draws. A flow may end meanwhile. */
function Capture({ cookie, hasEnded }: { cookie: string; hasEnded: boolean }): JSX.Element | null {
  const [captured, setCaptured] = useState<Captured>({ state: "none" });
  const left = useMemo(() => new AbortController(), []);
  useEffect(() => () => left.abort(), []);
  useEffect(() => () => void (captured.state === "done" && URL.revokeObjectURL(captured.url)), [captured]);
  const capture = async (): Promise<void> => {
    setCaptured({ state: "running" });
    const asked = `/v1/instruments/flows/${cookie}/capture?seconds=${CAPTURE_S}`;
    try {
      const answer = await request(asked, left.signal);
      const url = URL.createObjectURL(await answer.blob());
      setCaptured({ state: "done", url, warning: answer.headers.get("fatpath-warning") });
    } catch (error) {
      setCaptured({ state: "failed", reason: error instanceof Error ? error.message : String(error) });
    }
  };
  if (hasEnded && captured.state === "none") return null;
  return (
    <section class="packets" aria-label="Packets">
      <h2>Packets</h2>
      <p>
        <button type="button" disabled={captured.state === "running" || hasEnded} onClick={() => void capture()}>
          {captured.state === "running" ? `capturing for ${CAPTURE_S} s …` : `Capture ${CAPTURE_S} s`}
        </button>{" "}
        headers only, drawn as time-sequence graph, windows, round trips and goodput
      </p>
      {captured.state === "done" && (
        <p>
          <a href={captured.url} download={`fatpath-flow-${cookie}.html`}>
            Save the plots
          </a>{" "}
          and open the file: it needs no network
        </p>
      )}
      {captured.state === "done" && captured.warning !== null && <p class="note">{captured.warning}</p>}
      {captured.state === "failed" && <p class="problem" role="alert">{captured.reason}</p>}
    </section>
  );
}

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

function mark({ kind, t_s }: FlowEvent): Mark[] {
  const colour = MARKED[kind];
  return colour === null ? [] : [{ t_s, colour }];
}

function Facts({ view }: { view: FlowView }): JSX.Element {
  const { sample, rates } = view;
  const segments = (count: number): string => `${digits(count)} ${count === 1 ? "segment" : "segments"}`;
  const lock = (isLocked: boolean): string => (isLocked ? " (set by the program)" : "");
  const facts: [string, string][] = [
    ["Rule", view.rule ?? "none"],
    ["Law", sample.is_rude ? `none: rude (${sample.law})` : sample.law],
    ["Opened", view.flow.is_adopted ? "before fatpath" : view.flow.is_passive ? "by the peer" : "here"],
    ["Age", duration((sample.now_ns - sample.begin_ns) / 1e9)],
    ["Goodput", rate(Math.max(rates.goodput_bps, rates.received_bps))],
    ["Average", rate(rates.average_bps)],
    ["Acknowledged", bytes(sample.bytes_acked)],
    ["Received", bytes(sample.bytes_received)],
    ["RTT", `${milliseconds(sample.srtt_us)}, least ${milliseconds(sample.min_rtt_us)}`],
    ["cwnd", `${digits(sample.cwnd_pkts)} packets`],
    ["Peer's window", bytes(sample.peer_window_bytes)],
    ["Send buffer", bytes(sample.send_buffer_bytes) + lock(sample.send_buffer_is_locked)],
    ["Receive buffer", bytes(sample.receive_buffer_bytes) + lock(sample.receive_buffer_is_locked)],
    ["MSS", bytes(sample.mss_bytes)],
    ["Resent", `${segments(sample.segs_retrans)}, now ${percent(rates.retransmitted_share)}`],
    ["Timeouts", digits(sample.timeouts)],
    ...Object.entries(view.derived).map(([name, value]): [string, string] => [name, si(value, "")]),
  ];
  return <FactList facts={facts} />;
}

export const EVENT_NAMES: Record<EventKind, string> = {
  begin: "begin",
  tuned: "tuned",
  congestion: "congestion",
  timeout: "timeout",
  retransmission: "retransmission",
  finding: "finding",
  end: "end",
};

function Events({ events }: { events: FlowEvent[] }): JSX.Element {
  const latest = events.slice(-LISTED_EVENTS).reverse();
  return (
    <section aria-label="Events">
      <h2>Events</h2>
      <table class="events">
        <thead>
          <tr>
            <th scope="col">Time</th>
            <th scope="col">Event</th>
            <th scope="col">What happened</th>
          </tr>
        </thead>
        <tbody>
          {latest.map((event, i) => (
            <tr key={`${event.t_s} ${i}`}>
              <td class="number">{duration(event.t_s)}</td>
              <td>
                <i class={`mark ${event.kind}`} /> {EVENT_NAMES[event.kind]}
              </td>
              <td>
                <Explained text={event.text} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
