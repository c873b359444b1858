// SPDX-License-Identifier: MIT OR Apache-2.0
// All flows, sorted and filtered.

import { useState } from "preact/hooks";
import type { JSX } from "preact";
import type { FindingName, FlowRow } from "./api";
import { Choice } from "./choice";
import { WhyLink } from "./findings";
import { Grid, type Kind } from "./grid";
import { parsePrefix, show } from "./prefix";
import { filtered, FLOWS, isOfPage, NO_FILTER, type Filter } from "./rows";
import type { Store } from "./store";

/** Kept while a flow is looked at. */
let kept: Filter = NO_FILTER;

export function TablePage({ store }: { store: Store }): JSX.Element {
  const [filter, setFilter] = useState(kept);
  const all = [...store.rows.values()];
  const rows = filtered(all, filter);
  const isFirst = store.connection.state === "live" && all.every((row) => isOfPage(row, location.port));
  kept = filter;
  return (
    <>
      <Filters all={all} filter={filter} setFilter={setFilter} shown={rows.length} />
      {isFirst && <FirstRun isAlone={all.length === 0} />}
      <FlowTable rows={rows} choice={JSON.stringify(filter)} isFull />
    </>
  );
}

/** Nothing was seen yet, unless what reads this page: what is to be expected, and how to get there. */
function FirstRun({ isAlone }: { isAlone: boolean }): JSX.Element {
  return (
    <section class="first" aria-label="No flow yet">
      <p>
        No flow was seen yet{!isAlone && " but those of this page"}. Each TCP connection of this host appears here about a second after it carries data, whether it is
        tuned or not.
      </p>
      <ul>
        <li>
          <code>fatpath try HOST</code> says what a path is like and what TCP makes of it;{" "}
          <code>fatpath policy suggest HOST</code> prints a rule for it.
        </li>
        <li>
          <code>[auto]</code> in the policy lets the daemon <a href="#/paths">learn paths</a>;{" "}
          <code>fatpath doctor</code> says what is in the way.
        </li>
      </ul>
    </section>
  );
}

interface FiltersProps {
  all: FlowRow[];
  filter: Filter;
  setFilter: (filter: Filter) => void;
  shown: number;
}

function Filters({ all, filter, setFilter, shown }: FiltersProps): JSX.Element {
  const rules = names(all.map((row) => row.rule));
  const findings = names(all.flatMap((row) => row.findings.map((finding) => finding.id)));
  const prefix = parsePrefix(filter.text);
  return (
    <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
      <input
        id="filter"
        type="search"
        aria-label="Prefix, or part of an address or rule"
        placeholder="Prefix, address, rule ( / )"
        value={filter.text}
        onInput={(event) => setFilter({ ...filter, text: event.currentTarget.value })}
      />
      <Choice title="every rule" names={rules} chosen={filter.rule} choose={(rule) => setFilter({ ...filter, rule })} />
      <Choice
        title="every finding"
        names={findings}
        chosen={filter.finding}
        choose={(finding) => setFilter({ ...filter, finding })}
      />
      <label>
        <input
          type="checkbox"
          checked={filter.ended}
          onChange={(event) => setFilter({ ...filter, ended: event.currentTarget.checked })}
        />{" "}
        ended
      </label>
      {prefix && <a href={`#/path/${show(prefix)}`}>path {show(prefix)}</a>}
      <output aria-live="off">
        {shown} of {all.length} flows
      </output>
    </form>
  );
}

const names = (all: (string | null)[]): string[] =>
  [...new Set(all.filter((name): name is string => name !== null))].sort();

const KIND: Kind<FlowRow> = {
  ...FLOWS,
  name: "flow",
  title: "Flows",
  none: "No flow is shown.",
  order: { key: "goodput", isDown: true },
  href: (row) => `#/flow/${row.cookie}`,
  drawn: { findings: (row) => <Badges findings={row.findings} /> },
};

interface TableProps {
  rows: FlowRow[];
  choice: string;
  isFull?: boolean;
}

export function FlowTable(props: TableProps): JSX.Element {
  return <Grid kind={KIND} {...props} />;
}

function Badges({ findings }: { findings: FindingName[] }): JSX.Element {
  return (
    <>
      {findings.map((finding) => (
        <WhyLink key={finding.id} id={finding.id} look={`badge ${finding.severity}`} title={finding.title} isInRow>
          {finding.id.replace(/^FP-/, "")}
        </WhyLink>
      ))}
    </>
  );
}
