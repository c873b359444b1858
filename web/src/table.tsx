// SPDX-License-Identifier: MIT OR Apache-2.0
// All flows, sorted and filtered. However many there are, only the rows that are seen are drawn.

import { useMemo, useRef, useState } from "preact/hooks";
import type { JSX } from "preact";
import type { FindingName, FlowRow } from "./api";
import { useAim, useHeldOrder } from "./hold";
import { useSize } from "./hooks";
import { parsePrefix, show } from "./prefix";
import { COLUMNS, filtered, NO_FILTER, sorted, type Column, type Filter, type Order } from "./rows";
import type { Store } from "./store";

/** Height of a row, px; the style sheet has the same. */
const ROW_PX = 32;

/** Rows drawn above and below what is seen, so that scrolling shows no gap. */
const MARGIN_ROWS = 8;

/** Kept while a flow is looked at. */
let kept: { filter: Filter; order: Order } = { filter: NO_FILTER, order: { key: "goodput", isDown: true } };

export function TablePage({ store }: { store: Store }): JSX.Element {
  const [filter, setFilter] = useState(kept.filter);
  const rows = filtered(store.rows.values(), filter);
  kept = { ...kept, filter };
  return (
    <>
      <Filters all={[...store.rows.values()]} filter={filter} setFilter={setFilter} shown={rows.length} />
      {store.rows.size === 0 && store.connection.state === "live" && <FirstRun />}
      <FlowTable rows={rows} choice={JSON.stringify(filter)} isFull />
    </>
  );
}

/** Nothing was seen yet: what is to be expected, and how to get there. */
function FirstRun(): JSX.Element {
  return (
    <section class="first" aria-label="No flow yet">
      <p>
        No flow was seen yet. Each TCP connection of this host appears here about a second after it carries data, whether it is
        tuned or not.
      </p>
      <ul>
        <li>
          <code>fatpath try HOST</code> says what a path is like and what TCP makes of it;{" "}
          <code>fatpath policy suggest HOST</code> prints a rule for it.
        </li>
        <li>
          <code>[auto]</code> in the policy lets the daemon learn paths; <code>fatpath doctor</code> says what is in the way.
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

interface ChoiceProps {
  title: string;
  names: string[];
  chosen: string;
  choose: (name: string) => void;
}

function Choice({ title, names, chosen, choose }: ChoiceProps): JSX.Element {
  // What is chosen stays a choice when its last flow has gone.
  const all = chosen && !names.includes(chosen) ? [...names, chosen] : names;
  return (
    <select aria-label={title} value={chosen} onChange={(event) => choose(event.currentTarget.value)}>
      <option value="">{title}</option>
      {all.map((name) => (
        <option key={name}>{name}</option>
      ))}
    </select>
  );
}

interface TableProps {
  rows: FlowRow[];
  /** What the user chose these rows by. */
  choice: string;
  /** It takes what is left of the window. */
  isFull?: boolean;
}

export function FlowTable({ rows, choice, isFull = false }: TableProps): JSX.Element {
  const [order, setOrder] = useState(kept.order);
  const [active, setActive] = useState<number | null>(null);
  const [top_px, setTop] = useState(0);
  const frame = useRef<HTMLDivElement>(null);
  const { height } = useSize(frame);
  const inOrder = useMemo(() => sorted(rows, order), [rows, order]);
  const all = useHeldOrder(inOrder, useAim(frame), `${choice} ${order.key} ${order.isDown}`);
  const first = Math.max(0, Math.floor(top_px / ROW_PX) - MARGIN_ROWS);
  const last = Math.min(all.length, Math.ceil((top_px + height) / ROW_PX) + MARGIN_ROWS);
  const sort = (column: Column): void => {
    const isDown = order.key === column.key ? !order.isDown : column.isNumber;
    kept = { ...kept, order: { key: column.key, isDown } };
    setOrder(kept.order);
  };
  const move = (event: KeyboardEvent): void => {
    const at = all.findIndex((row) => row.cookie === active);
    if (event.key === "Enter" && at >= 0) open(all[at]);
    const next = target(event.key, at, Math.floor(height / ROW_PX), all.length);
    if (next === null || all.length === 0) return;
    event.preventDefault();
    setActive(all[next]?.cookie ?? null);
    reveal(frame.current, next);
  };
  return (
    <div class={`scroll ${isFull ? "full" : ""}`} ref={frame} onScroll={(event) => setTop(event.currentTarget.scrollTop)}>
      <table
        role="grid"
        aria-label="Flows"
        aria-rowcount={all.length + 1}
        tabIndex={0}
        aria-activedescendant={active === null ? undefined : `flow-${active}`}
        onKeyDown={move}
      >
        <thead>
          <tr aria-rowindex={1}>
            {COLUMNS.map((column) => (
              <Heading key={column.key} column={column} order={order} sort={sort} />
            ))}
          </tr>
        </thead>
        <tbody>
          <Space rows={first} />
          {all.slice(first, last).map((row, i) => (
            <Row key={row.cookie} row={row} index={first + i} isActive={row.cookie === active} />
          ))}
          <Space rows={all.length - last} />
        </tbody>
      </table>
      {all.length === 0 && <p class="empty">No flow is shown.</p>}
    </div>
  );
}

/** The row that a key leads to; null: the key is none of the table's. */
function target(key: string, at: number, page: number, count: number): number | null {
  const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -count, End: count };
  const step = steps[key];
  return step === undefined ? null : Math.min(Math.max(at + step, 0), count - 1);
}

function reveal(frame: HTMLElement | null, index: number): void {
  if (!frame) return;
  const head_px = ROW_PX;
  const top = index * ROW_PX;
  const visible_px = frame.clientHeight - head_px - ROW_PX;
  if (top < frame.scrollTop) frame.scrollTop = top;
  else if (top > frame.scrollTop + visible_px) frame.scrollTop = top - visible_px;
}

function open(row: FlowRow | undefined): void {
  if (row) location.hash = `#/flow/${row.cookie}`;
}

interface HeadingProps {
  column: Column;
  order: Order;
  sort: (column: Column) => void;
}

function Heading({ column, order, sort }: HeadingProps): JSX.Element {
  const isChosen = order.key === column.key;
  const direction = order.isDown ? "descending" : "ascending";
  return (
    <th role="columnheader" scope="col" class={cell(column)} aria-sort={isChosen ? direction : "none"}>
      <button type="button" title={column.says} onClick={() => sort(column)}>
        {column.title}
        <span aria-hidden="true">{isChosen ? (order.isDown ? " ↓" : " ↑") : ""}</span>
      </button>
    </th>
  );
}

const cell = (column: Column): string =>
  `rank-${column.rank} ${column.isNumber && column.key !== "findings" ? "number" : ""}`;

/** Stands for rows that are not drawn. */
function Space({ rows }: { rows: number }): JSX.Element | null {
  if (rows <= 0) return null;
  return <tr aria-hidden="true" class="space" style={{ height: `${rows * ROW_PX}px` }} />;
}

function Row({ row, index, isActive }: { row: FlowRow; index: number; isActive: boolean }): JSX.Element {
  return (
    <tr
      id={`flow-${row.cookie}`}
      class={`${isActive ? "active" : ""} ${row.has_ended ? "ended" : ""}`}
      aria-rowindex={index + 2}
      aria-selected={isActive}
      onClick={() => open(row)}
    >
      {COLUMNS.map((column) => (
        <td key={column.key} role="gridcell" class={cell(column)}>
          {column.key === "findings" ? <Badges findings={row.findings} /> : content(column, row)}
        </td>
      ))}
    </tr>
  );
}

/** The peer is a link, for those who open it in another tab. */
function content(column: Column, row: FlowRow): JSX.Element | string {
  if (column.key !== "remote") return column.text(row);
  return (
    <a href={`#/flow/${row.cookie}`} tabIndex={-1} onClick={(event) => event.stopPropagation()}>
      {row.remote}
    </a>
  );
}

export function Badges({ findings }: { findings: FindingName[] }): JSX.Element {
  return (
    <>
      {findings.map((finding) => (
        <span key={finding.id} class={`badge ${finding.severity}`} title={finding.title}>
          {finding.id.replace(/^FP-/, "")}
        </span>
      ))}
    </>
  );
}
