// SPDX-License-Identifier: MIT OR Apache-2.0
// What was learned of the paths to one prefix, and of the path of one flow.

import { useState } from "preact/hooks";
import type { JSX } from "preact";
import type { FlowRow, FlowView, LearnedPath, LearnedPaths } from "./api";
import { FactList } from "./facts";
import { digits, duration, milliseconds, percent, times } from "./format";
import { usePolled, type Polled } from "./hooks";
import { age_s, EVIDENCE, isOnPath, LEARNED, learnedRate, settingsInWords, utc } from "./learned";
import { LEARNED_INTERVAL_MS, PathTable, StateBadge } from "./paths";
import { addressOf } from "./prefix";

/** More of them are a table. */
const MOST_IN_FULL = 4;

/** How the names of the daemon's own rules begin. */
const LEARNED_RULES = "auto-";

/** A kind of loss that flows did not show so far. */
const UNTOLD = "cannot be told yet";

/** Of a page's prefix; `rows` are the flows to it. */
export function Known({ prefix, rows }: { prefix: string; rows: FlowRow[] }): JSX.Element {
  const { value, problem } = useLearnedOf(prefix);
  return (
    <section aria-label="What was learned">
      <h2>Learned</h2>
      {problem && <p class="problem" role="alert">{problem}</p>}
      {value?.paths.length === 0 && <Unknown isOff={value.mode === "off"} />}
      {value && value.paths.length > MOST_IN_FULL && <PathTable rows={value.paths} choice={prefix} />}
      {value && value.paths.length <= MOST_IN_FULL && value.paths.map((path) => <InFull key={path.local} path={path} rows={rows} />)}
    </section>
  );
}

const useLearnedOf = (prefix: string, evidence = false): Polled<LearnedPaths> =>
  usePolled<LearnedPaths>(`/v1/paths?prefix=${encodeURIComponent(prefix)}&evidence=${evidence}`, LEARNED_INTERVAL_MS);

/** Of a flow's path, in a line. */
export function KnownOfFlow({ view }: { view: FlowView }): JSX.Element | null {
  const { local, remote } = view.flow;
  const { value } = useLearnedOf(addressOf(remote));
  const path = value?.paths.find((one) => isOnPath(one, local, remote));
  if (!path) return null;
  const hasOwnRule = path.settings !== "" && view.rule !== null && !view.rule.startsWith(LEARNED_RULES);
  const why = [settingsInWords(path), path.reasons[0]].filter(Boolean).join(": ");
  return (
    <p class="known">
      Its path <a href={`#/path/${path.prefix}`}>{path.prefix}</a> is known for a rate of {learnedRate(path)}, loss:{" "}
      {path.loss?.replaceAll("_", " ") ?? UNTOLD}. <StateBadge path={path} /> {why}
      {hasOwnRule && ` (the flow has the policy’s rule ${view.rule} instead)`}
    </p>
  );
}

function Unknown({ isOff }: { isOff: boolean }): JSX.Element {
  return (
    <p class="empty">
      {isOff ? "Paths are not learned" : "Nothing was learned of it yet"}: see <a href="#/paths">learned paths</a>.
    </p>
  );
}

function InFull({ path, rows }: { path: LearnedPath; rows: FlowRow[] }): JSX.Element {
  const live = rows.filter((row) => !row.has_ended && isOnPath(path, row.local, row.remote));
  return (
    <article class={`learned ${path.state}`}>
      <h3>
        {path.prefix} <span class="from">from {path.local}</span> <StateBadge path={path} />
      </h3>
      <FactList facts={facts(path, live.length)} />
      <h4>{TITLES[path.state]}</h4>
      {path.settings && <pre>{path.settings.trimEnd()}</pre>}
      <ul>
        {path.reasons.map((reason) => (
          <li key={reason}>{reason}</li>
        ))}
      </ul>
      {path.settings && (
        <p class="hint">
          <code>fatpath paths pin {path.prefix}</code> prints rules that keep this.
        </p>
      )}
      <Evidence path={path} />
    </article>
  );
}

/** It is asked for once somebody wants to see it. */
function Evidence({ path }: { path: LearnedPath }): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>What these flows told</summary>
      {isOpen && <Details path={path} />}
    </details>
  );
}

/** The latest flow first. */
function Details({ path }: { path: LearnedPath }): JSX.Element {
  const { value, problem } = useLearnedOf(path.prefix, true);
  const flows = value?.paths.find((one) => LEARNED.identity(one) === LEARNED.identity(path))?.told_by ?? [];
  return (
    <>
      {problem && <p class="problem" role="alert">{problem}</p>}
      <div class="scroll" role="region" aria-label={`Flows from ${path.local} that told of the path`} tabIndex={0}>
        <table class="events">
          <thead>
            <tr>
              {EVIDENCE.map(({ key, title, says, isNumber }) => (
                <th key={key} scope="col" title={says} class={isNumber ? "number" : ""}>
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {[...flows].reverse().map((flow, i) => (
              <tr key={`${flow.began} ${i}`}>
                {EVIDENCE.map(({ key, text, isNumber }) => (
                  <td key={key} class={isNumber ? "number" : ""}>
                    {text(flow)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

const TITLES: Record<LearnedPath["state"], string> = {
  tuned: "Flows get",
  observed: "Flows would get",
  as_host: "Flows have the host’s settings",
  quarantined: "Flows have the host’s settings for a time; then they get",
};

function facts(path: LearnedPath, live: number): [string, string][] {
  const doubt = (share: number | null): string => (share === null ? "" : ` ± ${Math.ceil(100 * share)} %`);
  const limit = path.rate_limit === null ? "nothing but the path" : path.rate_limit.replaceAll("_", " ");
  return [
    ["Base RTT", milliseconds(path.base_rtt_us) + doubt(path.base_rtt_doubt)],
    ["RTT with queues", milliseconds(path.high_rtt_us)],
    ["Rate", learnedRate(path) + doubt(path.rate_doubt)],
    ["Rate limited by", path.rate_bps === null ? "–" : limit],
    ["Loss", path.loss?.replaceAll("_", " ") ?? UNTOLD],
    ["Resent", percent(path.retransmitted_share)],
    ["Gain by learned settings", path.gain === null ? "–" : times(path.gain)],
    ["Rests on", `${path.evidence} of ${digits(path.flows)} flows`],
    ["Became another path", path.epochs === 0 ? "never" : `${path.epochs} ×`],
    ["Last seen", `${duration(age_s(path.seen))} ago, ${utc(path.seen)}`],
    ["Flows now", `${live} live`],
  ];
}
