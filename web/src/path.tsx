// SPDX-License-Identifier: MIT OR Apache-2.0
// A path: the flows to one prefix together, their distribution, what is found on them, what was learned and what
// was archived.

import type { JSX } from "preact";
import type { Finding, FlowRow, Why } from "./api";
import { quantile } from "./distribution";
import { FactList } from "./facts";
import { Findings } from "./findings";
import { milliseconds, rate } from "./format";
import { Histogram } from "./histogram";
import { usePolled } from "./hooks";
import { Known } from "./known";
import { Past } from "./past";
import { addressOf, contains, parsePrefix } from "./prefix";
import { throughput } from "./rows";
import type { Store } from "./store";
import { FlowTable } from "./table";

/** The diagnosis of all flows of a path costs more than a row: it is asked for seldom, ms. */
const INTERVAL_MS = 2000;

export function PathPage({ prefix, store }: { prefix: string; store: Store }): JSX.Element {
  const wanted = parsePrefix(prefix);
  if (!wanted) return <p class="problem" role="alert">{prefix} is no prefix.</p>;
  const ends = (row: FlowRow): boolean => {
    const end = parsePrefix(addressOf(row.remote));
    return end !== null && contains(wanted, end);
  };
  const rows = [...store.rows.values()].filter(ends);
  return (
    <article>
      <nav>
        <a href="#/">← all flows</a> · <a href="#/paths">learned paths</a>
      </nav>
      <h1>Path {prefix}</h1>
      <PathFacts rows={rows} />
      <section class="plots" aria-label="Distribution of the flows">
        <Histogram title="Smoothed RTT" values={rows.map((row) => row.srtt_us)} show={milliseconds} />
        <Histogram title="Average rate" values={rows.map((row) => row.average_bps)} show={rate} />
      </section>
      <PathFindings prefix={prefix} />
      <Known prefix={prefix} rows={rows} />
      <Past prefix={prefix} />
      <section aria-label="Flows">
        <h2>Flows</h2>
        <FlowTable rows={rows} choice={prefix} />
      </section>
    </article>
  );
}

function PathFacts({ rows }: { rows: FlowRow[] }): JSX.Element {
  const live = rows.filter((row) => !row.has_ended);
  const least = rows.flatMap((row) => (row.min_rtt_us === null ? [] : [row.min_rtt_us]));
  const facts: [string, string][] = [
    ["Flows", `${live.length} live, ${rows.length - live.length} ended`],
    ["Goodput together", rate(live.reduce((sum, row) => sum + throughput(row), 0))],
    ["Least RTT", least.length > 0 ? milliseconds(quantile(least, 0)) : "–"],
  ];
  return <FactList facts={facts} />;
}

function PathFindings({ prefix }: { prefix: string }): JSX.Element {
  const { value, problem } = usePolled<Why[]>(`/v1/instruments/why?prefix=${encodeURIComponent(prefix)}`, INTERVAL_MS);
  const { findings, flows } = together(value ?? []);
  return (
    <section aria-label="Why it is slow">
      <h2>Findings</h2>
      {problem && <p class="problem" role="alert">{problem}</p>}
      {value && <Findings findings={findings} flows={flows} />}
    </section>
  );
}

/** Each finding once, as the flow has it that would gain most, with the number of its flows. */
function together(all: Why[]): { findings: Finding[]; flows: Map<string, number> } {
  const worst = new Map<string, Finding>();
  const flows = new Map<string, number>();
  for (const finding of all.flatMap((why) => why.findings)) {
    flows.set(finding.id, (flows.get(finding.id) ?? 0) + 1);
    const known = worst.get(finding.id);
    if (!known || (finding.gain ?? 0) > (known.gain ?? 0)) worst.set(finding.id, finding);
  }
  const findings = [...worst.values()].sort((a, b) => (flows.get(b.id) ?? 0) - (flows.get(a.id) ?? 0));
  return { findings, flows };
}
