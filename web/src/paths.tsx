// SPDX-License-Identifier: MIT OR Apache-2.0
// All learned paths, sorted and filtered.

import { useMemo, useRef, useState } from "preact/hooks";
import type { JSX } from "preact";
import type { LearnedPath, LearnedPaths, PathState } from "./api";
import { Choice } from "./choice";
import { digits } from "./format";
import { Grid, type Kind } from "./grid";
import { usePolled, type Polled } from "./hooks";
import { filteredPaths, LEARNED, NO_PATH_FILTER, STATES, stateOf, type PathFilter } from "./learned";
import { parsePrefix, show } from "./prefix";

/** What is learned changes when flows tell something, not with every packet, ms. */
export const LEARNED_INTERVAL_MS = 5000;

/** Most paths that are asked for at once: about 1 MB. */
const MOST_PATHS = 2000;

/** Kept while a path is looked at. */
let kept: PathFilter = NO_PATH_FILTER;

export function PathsPage(): JSX.Element {
  const [filter, setFilter] = useState(kept);
  kept = filter;
  const { value, problem } = useLearned(filter.text);
  const rows = useMemo(() => filteredPaths(value?.paths ?? [], filter), [value, filter]);
  const isFirst = value !== null && value.known === 0;
  return (
    <>
      <h1>Learned paths</h1>
      {problem && <p class="problem" role="alert">{problem}</p>}
      {value && <p class="mode">{MODES[value.mode]}</p>}
      {isFirst && <Nothing isOff={value.mode === "off"} />}
      {!isFirst && <Filters filter={filter} setFilter={setFilter} shown={rows.length} known={value?.known ?? null} />}
      {value && !isFirst && <PathTable rows={rows} choice={JSON.stringify(filter)} isFull />}
    </>
  );
}

/**
 * All paths, or those seen last where there are more than are asked for at once: of these a prefix that is looked for
 * is asked for by itself. The last answer stays until the next one is here.
 */
function useLearned(text: string): Polled<LearnedPaths> {
  const last = useRef<LearnedPaths | null>(null);
  const prefix = (last.current?.known ?? 0) > MOST_PATHS ? parsePrefix(text) : null;
  const wanted = prefix ? `&prefix=${encodeURIComponent(show(prefix))}` : "";
  const polled = usePolled<LearnedPaths>(`/v1/paths?limit=${MOST_PATHS}${wanted}`, LEARNED_INTERVAL_MS);
  if (polled.value) last.current = polled.value;
  return { ...polled, value: last.current };
}

const MODES: Record<string, string> = {
  off: "Mode off: no path is learned.",
  observe: "Mode observe: the table shows what flows would get; they have the host’s settings.",
  tune: "Mode tune: flows that no rule of the policy matches get what was chosen for their path.",
};

/** Nothing is known: what is to be expected, and how to get there. */
function Nothing({ isOff }: { isOff: boolean }): JSX.Element {
  if (isOff) return <HowToTurnOn />;
  return (
    <section class="first" aria-label="No path yet">
      <p>
        No path was learned yet. A flow tells of its path once it has moved 64 KiB; of the path’s rate, once it has lasted
        some seconds.
      </p>
    </section>
  );
}

function HowToTurnOn(): JSX.Element {
  return (
    <section class="first" aria-label="How to turn it on">
      <p>
        With a section <code>[auto]</code> in its policy the daemon learns the round-trip time, rate and losses of each long
        path from the flows that use it, and chooses buffers, law and start for the flows that come next. To begin with,
        let it observe: nothing is tuned, and this table tells what it would do.
      </p>
      <pre>{'[archive]\n\n[auto]\nmode = "observe"'}</pre>
      <p>
        <code>[archive]</code> keeps what was learned over a restart. Write both into the policy file and apply it with{" "}
        <code>fatpath policy apply</code>; <code>mode = "tune"</code> gives flows what was chosen. docs/auto.md says what it
        does, what it takes back, and what it never does.
      </p>
    </section>
  );
}

interface FiltersProps {
  filter: PathFilter;
  setFilter: (filter: PathFilter) => void;
  shown: number;
  /** Null before the first answer. */
  known: number | null;
}

function Filters({ filter, setFilter, shown, known }: FiltersProps): JSX.Element {
  const states = Object.keys(STATES) as PathState[];
  const choose = (name: string): void =>
    setFilter({ ...filter, state: states.find((state) => STATES[state] === name) ?? "" });
  return (
    <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
      <input
        id="filter"
        type="search"
        aria-label="Prefix, or part of an address, setting or reason"
        placeholder="Prefix, setting, reason ( / )"
        value={filter.text}
        onInput={(event) => setFilter({ ...filter, text: event.currentTarget.value })}
      />
      <Choice title="every state" names={Object.values(STATES)} chosen={filter.state && STATES[filter.state]} choose={choose} />
      <output aria-live="off">
        {known !== null && `${shown} of ${digits(known)} paths`}
        {known !== null && known > MOST_PATHS && `: the ${MOST_PATHS} seen last, or those of a prefix`}
      </output>
    </form>
  );
}

const KIND: Kind<LearnedPath> = {
  ...LEARNED,
  name: "path",
  title: "Learned paths",
  none: "No path is shown.",
  order: { key: "seen", isDown: false },
  href: (path) => `#/path/${path.prefix}`,
  drawn: {
    state: (path) => <StateBadge path={path} />,
    why: (path) => (
      <span class="cut" title={path.reasons.join("\n")}>
        {path.reasons[0]}
      </span>
    ),
  },
};

interface TableProps {
  rows: LearnedPath[];
  choice: string;
  isFull?: boolean;
}

export function PathTable(props: TableProps): JSX.Element {
  return <Grid kind={KIND} {...props} />;
}

const SEVERITIES: Record<PathState, string> = { tuned: "info", observed: "", as_host: "", quarantined: "warning" };

export function StateBadge({ path }: { path: LearnedPath }): JSX.Element {
  return <span class={`badge ${SEVERITIES[path.state]}`}>{stateOf(path)}</span>;
}
