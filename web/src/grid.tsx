// SPDX-License-Identifier: MIT OR Apache-2.0
// A table that is sorted by its heads and walked through by keys. However many rows it has, only those that are
// seen are drawn.

import { useMemo, useRef, useState } from "preact/hooks";
import type { JSX } from "preact";
import { sorted, type Column, type Order, type Ordered } from "./columns";
import { useAim, useHeldOrder } from "./hold";
import { useSize } from "./hooks";

/** Height of a row, px; the style sheet has the same. */
const ROW_PX = 32;

/** Rows drawn above and below what is seen, so that scrolling shows no gap. */
const MARGIN_ROWS = 8;

/** What the rows of a table are. */
export interface Kind<Row> extends Ordered<Row> {
  /** Of one row, as part of an element's identifier. */
  name: string;
  /** Of the table. */
  title: string;
  /** Said where there is no row. */
  none: string;
  /** Until the user chooses another. */
  order: Order;
  /** The address that a row leads to, by a link in its first column. */
  href: (row: Row) => string;
  /** Cells that are more than their column's text, by the column's key. */
  drawn: Record<string, (row: Row) => JSX.Element>;
}

/** The orders that were chosen, by the rows' name: kept while a row is looked at. */
const kept = new Map<string, Order>();

interface GridProps<Row> {
  kind: Kind<Row>;
  rows: Row[];
  /** What the user chose these rows by. */
  choice: string;
  /** It takes what is left of the window. */
  isFull?: boolean;
}

export function Grid<Row>({ kind, rows, choice, isFull = false }: GridProps<Row>): JSX.Element {
  const [order, setOrder] = useState(kept.get(kind.name) ?? kind.order);
  const [active, setActive] = useState<number | string | null>(null);
  const [top_px, setTop] = useState(0);
  const frame = useRef<HTMLDivElement>(null);
  const { height } = useSize(frame);
  const inOrder = useMemo(() => sorted(rows, kind, order), [rows, kind, order]);
  const all = useHeldOrder(inOrder, kind.identity, useAim(frame), `${choice} ${order.key} ${order.isDown}`);
  const first = Math.max(0, Math.floor(top_px / ROW_PX) - MARGIN_ROWS);
  const last = Math.min(all.length, Math.ceil((top_px + height) / ROW_PX) + MARGIN_ROWS);
  const drawn = all.slice(first, last);
  const isActive = (row: Row): boolean => kind.identity(row) === active;
  const sort = (column: Column<Row>): void => {
    const isDown = order.key === column.key ? !order.isDown : column.isNumber;
    kept.set(kind.name, { key: column.key, isDown });
    setOrder({ key: column.key, isDown });
  };
  const open = (row: Row | undefined): void => {
    if (row !== undefined) location.hash = kind.href(row);
  };
  const move = (event: KeyboardEvent): void => {
    const at = all.findIndex(isActive);
    if (event.key === "Enter" && at >= 0) open(all[at]);
    const next = target(event.key, at, Math.floor(height / ROW_PX), all.length);
    const row = next === null ? undefined : all[next];
    if (next === null || row === undefined) return;
    event.preventDefault();
    setActive(kind.identity(row));
    reveal(frame.current, next);
  };
  return (
    <div class={`scroll ${isFull ? "full" : ""}`} ref={frame} onScroll={(event) => setTop(event.currentTarget.scrollTop)}>
      <table
        role="grid"
        aria-label={kind.title}
        aria-rowcount={all.length + 1}
        tabIndex={0}
        aria-activedescendant={drawn.some(isActive) ? `${kind.name}-${active}` : undefined}
        onKeyDown={move}
      >
        <thead>
          <tr aria-rowindex={1}>
            {kind.columns.map((column) => (
              <Heading key={column.key} column={column} style={cell(kind, column)} order={order} sort={sort} />
            ))}
          </tr>
        </thead>
        <tbody>
          <Space rows={first} />
          {drawn.map((row, i) => (
            <Line key={kind.identity(row)} kind={kind} row={row} index={first + i} isActive={isActive(row)} open={open} />
          ))}
          <Space rows={all.length - last} />
        </tbody>
      </table>
      {all.length === 0 && <p class="empty">{kind.none}</p>}
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

interface HeadingProps<Row> {
  column: Column<Row>;
  style: string;
  order: Order;
  sort: (column: Column<Row>) => void;
}

function Heading<Row>({ column, style, order, sort }: HeadingProps<Row>): JSX.Element {
  const isChosen = order.key === column.key;
  const direction = order.isDown ? "descending" : "ascending";
  return (
    <th role="columnheader" scope="col" class={style} aria-sort={isChosen ? direction : "none"}>
      <button type="button" title={column.says} onClick={() => sort(column)}>
        {column.title}
        <span aria-hidden="true">{isChosen ? (order.isDown ? " ↓" : " ↑") : ""}</span>
      </button>
    </th>
  );
}

function cell<Row>(kind: Kind<Row>, column: Column<Row>): string {
  const isAligned = column.isNumber && !(column.key in kind.drawn);
  return `rank-${column.rank} ${isAligned ? "number" : ""}`;
}

/** Stands for rows that are not drawn. */
function Space({ rows }: { rows: number }): JSX.Element | null {
  if (rows <= 0) return null;
  return <tr aria-hidden="true" class="space" style={{ height: `${rows * ROW_PX}px` }} />;
}

interface LineProps<Row> {
  kind: Kind<Row>;
  row: Row;
  index: number;
  isActive: boolean;
  open: (row: Row) => void;
}

function Line<Row>({ kind, row, index, isActive, open }: LineProps<Row>): JSX.Element {
  return (
    <tr
      id={`${kind.name}-${kind.identity(row)}`}
      class={`${isActive ? "active" : ""} ${kind.isOver(row) ? "over" : ""}`}
      aria-rowindex={index + 2}
      aria-selected={isActive}
      onClick={() => open(row)}
    >
      {kind.columns.map((column, i) => (
        <td key={column.key} role="gridcell" class={cell(kind, column)}>
          {i === 0 ? <RowLink href={kind.href(row)} text={column.text(row)} /> : (kind.drawn[column.key] ?? column.text)(row)}
        </td>
      ))}
    </tr>
  );
}

/** For those who open it in another tab. */
function RowLink({ href, text }: { href: string; text: string }): JSX.Element {
  return (
    <a href={href} tabIndex={-1} onClick={(event) => event.stopPropagation()}>
      {text}
    </a>
  );
}
