// SPDX-License-Identifier: MIT OR Apache-2.0
// Hosts that all test one another: a table of all pairs, with the newest result of each.

import type { JSX } from "preact";
import type { MeshGrid, MeshPair } from "./api";
import { date } from "./history";
import { usePolled } from "./hooks";

/** The archive is read for it, ms. */
const INTERVAL_MS = 10_000;

export function MeshPage(): JSX.Element {
  const { value, problem } = usePolled<MeshGrid[]>("/v1/measure/mesh", INTERVAL_MS);
  return (
    <>
      <h1>Hosts that test one another</h1>
      {problem && <p class="problem" role="alert">{problem}</p>}
      {value?.length === 0 && <HowToBegin />}
      {value?.map((grid) => (
        <Pairs key={grid.mesh} grid={grid} />
      ))}
    </>
  );
}

function HowToBegin(): JSX.Element {
  return (
    <section class="first" aria-label="No mesh">
      <p>
        A <code>[[mesh]]</code> in <code>/etc/fatpath/measure.toml</code>, the same file on all its hosts, has each of them test
        each other one. docs/measure.md says how.
      </p>
      <pre>{'[[mesh]]\nname = "core"\nhosts = ["dtn1", "dtn2", "dtn3"]\ntool = "ping"\nevery = "10s"\nduration = "1s"'}</pre>
    </section>
  );
}

function Pairs({ grid }: { grid: MeshGrid }): JSX.Element {
  const name = `${grid.mesh}: ${grid.tool}`;
  const pairs = new Map(grid.pairs.map((pair) => [JSON.stringify([pair.from, pair.to]), pair]));
  return (
    <section aria-label={name}>
      <h2>{name}</h2>
      <div class="wide" role="region" aria-label={`Pairs of ${grid.mesh}`} tabIndex={0}>
        <table class="mesh" aria-label={name}>
          <thead>
            <tr>
              <th scope="col">From, to</th>
              {grid.hosts.map((host) => (
                <th scope="col" key={host}>
                  {host}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {grid.hosts.map((from) => (
              <tr key={from}>
                <th scope="row">{from}</th>
                {grid.hosts.map((to) => (
                  <Cell key={to} pair={pairs.get(JSON.stringify([from, to]))} />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <Missing pairs={grid.pairs} />
    </section>
  );
}

/** None: of a host to itself. */
function Cell({ pair }: { pair: MeshPair | undefined }): JSX.Element {
  if (!pair) return <td />;
  const when = typeof pair.start_us === "number" ? `${date(pair.start_us / 1e6)} UTC` : "";
  return (
    <td class={state(pair)} title={[when, pair.note?.message].filter(Boolean).join(": ")}>
      {shown(pair)}
    </td>
  );
}

function state({ note }: MeshPair): string {
  if (!note) return "";
  return note.level === "error" ? "problem" : "warning";
}

function shown({ value, unit, note }: MeshPair): string {
  if (typeof value === "number") return `${Number(value.toPrecision(4))} ${unit ?? ""}`;
  if (note) return note.level === "error" ? "failed" : "left out";
  return "–";
}

/** Why there is no result: a title is not there for who has no pointer. */
function Missing({ pairs }: { pairs: MeshPair[] }): JSX.Element | null {
  const missing = pairs.filter(({ note }) => note);
  if (missing.length === 0) return null;
  return (
    <ul aria-label="Without a result">
      {missing.map((pair) => (
        <li key={`${pair.from} ${pair.to}`} class={state(pair)}>
          {pair.from} to {pair.to}: {pair.note?.message}
        </li>
      ))}
    </ul>
  );
}
