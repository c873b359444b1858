// SPDX-License-Identifier: MIT OR Apache-2.0
// The columns of a table, and the order of its rows.

export interface Column<Row> {
  key: string;
  title: string;
  /** The full words, for a title that is short. */
  says: string;
  value: (row: Row) => number | string;
  text: (row: Row) => string;
  isNumber: boolean;
  /** 1: on every screen, 2: not on a telephone, 3: only on a wide one. */
  rank: Rank;
}

export type Rank = 1 | 2 | 3;

export interface Order {
  key: string;
  isDown: boolean;
}

/** What names a row, for as long as it is shown. */
export type Identity<Row> = (row: Row) => number | string;

/** What the order of rows rests on. */
export interface Ordered<Row> {
  columns: Column<Row>[];
  identity: Identity<Row>;
  /** Such rows stand below the others, in every order. */
  isOver: (row: Row) => boolean;
}

export function words<Row>(key: string, title: string, says: string, rank: Rank, text: (row: Row) => string): Column<Row> {
  return { key, title, says, value: text, text, isNumber: false, rank };
}

/** What has no value is shown as a dash, and stands below 0. */
export function numbers<Row>(
  key: string,
  title: string,
  says: string,
  rank: Rank,
  value: (row: Row) => number | null,
  show: (value: number, row: Row) => string,
): Column<Row> {
  const text = (row: Row): string => {
    const known = value(row);
    return known === null ? "–" : show(known, row);
  };
  return { key, title, says, value: (row) => value(row) ?? -1, text, isNumber: true, rank };
}

/** Equal rows stand by their identity, so that the table does not flicker. */
export function sorted<Row>(rows: Row[], { columns, identity, isOver }: Ordered<Row>, order: Order): Row[] {
  const column = columns.find((candidate) => candidate.key === order.key);
  if (!column) return rows;
  const sign = order.isDown ? -1 : 1;
  const keyed = rows.map((row) => ({ row, isOver: Number(isOver(row)), key: column.value(row), identity: identity(row) }));
  keyed.sort((a, b) => a.isOver - b.isOver || sign * compare(a.key, b.key) || compare(a.identity, b.identity));
  return keyed.map(({ row }) => row);
}

/** 10.0.0.9 stands before 10.0.0.10. */
const collator = new Intl.Collator("en", { numeric: true });

function compare(a: number | string, b: number | string): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return collator.compare(String(a), String(b));
}
