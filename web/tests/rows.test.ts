// SPDX-License-Identifier: MIT OR Apache-2.0
import { expect, test } from "vitest";
import type { FlowRow } from "../src/api";
import { sorted as inOrder, type Order } from "../src/columns";
import { bins, quantile } from "../src/distribution";
import { digits, duration, milliseconds, rate } from "../src/format";
import { filtered, FLOWS, isOfPage, NO_FILTER } from "../src/rows";
import { Store } from "../src/store";
import { row } from "./flow_row";

const sorted = (rows: FlowRow[], order: Order): FlowRow[] => inOrder(rows, FLOWS, order);
const cookies = (rows: FlowRow[]): number[] => rows.map((one) => one.cookie);
const finding = (severity: "info" | "warning" | "problem") => ({ id: "FP-X", title: "x", severity });

test("filters by prefix, text, rule, finding and life", () => {
  const rows = [
    row(1, { rule: "cern" }),
    row(2, { findings: [finding("info")], has_ended: true }),
    row(3, { remote: "[2001:db8::3]:443", local: "[2001:db8::1]:5" }),
  ];
  const by = (filter: Partial<typeof NO_FILTER>): number[] => cookies(filtered(rows, { ...NO_FILTER, ...filter }));
  expect(by({})).toEqual([1, 2, 3]);
  expect(by({ text: "10.0.0.0/31" })).toEqual([1]);
  expect(by({ text: "192.0.2.0/24" })).toEqual([1, 2]);
  expect(by({ text: " 2001:DB8::/32 " })).toEqual([3]);
  expect(by({ text: "10.0.0.2" })).toEqual([2]);
  expect(by({ text: "CER" })).toEqual([1]);
  expect(by({ rule: "cern" })).toEqual([1]);
  expect(by({ finding: "FP-X" })).toEqual([2]);
  expect(by({ ended: false })).toEqual([1, 3]);
});

test("sorts by every column, both ways, and leaves equal rows in the order of their age", () => {
  const rows = [row(3, { goodput_bps: 5 }), row(1, { received_bps: 9 }), row(2, { goodput_bps: 5 })];
  expect(cookies(sorted(rows, { key: "goodput", isDown: true }))).toEqual([1, 2, 3]);
  expect(cookies(sorted(rows, { key: "goodput", isDown: false }))).toEqual([2, 3, 1]);
  const addresses = [row(10), row(9), row(100)];
  expect(cookies(sorted(addresses, { key: "remote", isDown: false }))).toEqual([9, 10, 100]);
  const graver = [row(1, { findings: [finding("info"), finding("info")] }), row(2, { findings: [finding("problem")] }), row(3)];
  expect(cookies(sorted(graver, { key: "findings", isDown: true }))).toEqual([2, 1, 3]);
  for (const column of FLOWS.columns) expect(sorted(rows, { key: column.key, isDown: true })).toHaveLength(3);
});

test("flows that ended stand below those that live, in every order", () => {
  const rows = [row(1, { goodput_bps: 9, has_ended: true }), row(2, { goodput_bps: 1 }), row(3, { goodput_bps: 5 })];
  expect(cookies(sorted(rows, { key: "goodput", isDown: true }))).toEqual([3, 2, 1]);
  expect(cookies(sorted(rows, { key: "goodput", isDown: false }))).toEqual([2, 3, 1]);
});

test("what reads the page is told from other flows", () => {
  const isOf = (local: string, remote: string): boolean => isOfPage(row(1, { local, remote }), "7070");
  expect(isOf("127.0.0.1:7070", "127.0.0.1:40000")).toBe(true);
  expect(isOf("[::1]:40000", "[::1]:7070")).toBe(true);
  expect(isOf("127.0.0.1:17070", "127.0.0.1:40000")).toBe(false);
  expect(isOf("10.0.0.1:7070", "10.0.0.2:40000")).toBe(false);
});

test("20,000 rows are sorted", () => {
  const rows = Array.from({ length: 20_000 }, (_, i) => row(i, { goodput_bps: (i * 7919) % 20_011 }));
  const order = sorted(rows, { key: "goodput", isDown: true });
  expect(order[0]?.goodput_bps).toBe(20_010);
});

test("numbers have three digits and their unit", () => {
  expect(rate(0)).toBe("0 b/s");
  expect(rate(999.4)).toBe("999 b/s");
  expect(rate(999.6)).toBe("1 kb/s");
  expect(rate(930_400_000)).toBe("930 Mb/s");
  expect(rate(1_234_567_890)).toBe("1.23 Gb/s");
  expect(milliseconds(100_340)).toBe("100 ms");
  expect(milliseconds(37)).toBe("0.037 ms");
  expect(milliseconds(null)).toBe("–");
  expect(digits(NaN)).toBe("–");
  expect(digits(123_456)).toBe("123456");
  expect([duration(0.25), duration(59.9), duration(61), duration(3_725)]).toEqual(["0.25 s", "59.9 s", "01:01", "01:02:05"]);
});

test("a distribution counts every value once, at the ends too", () => {
  const values = [1, 1, 10, 100, 1000];
  const all = bins(values);
  expect(all.reduce((sum, bin) => sum + bin.count, 0)).toBe(values.length);
  expect([all[0]?.from, all[0]?.count]).toEqual([1, 2]);
  expect(all.at(-1)?.to).toBeCloseTo(2000);
  expect(bins([23_000, 24_000]).map((bin) => bin.count).reduce((sum, count) => sum + count)).toBe(2);
  expect(bins([0.3, 0.31])[0]?.from).toBeCloseTo(0.2);
  expect(bins([5, 5]).reduce((sum, bin) => sum + bin.count, 0)).toBe(2);
  expect(bins([])).toEqual([]);
  expect([quantile(values, 0), quantile(values, 0.5), quantile(values, 0.9)]).toEqual([1, 10, 1000]);
});

test("the store follows what the stream says", () => {
  const store = new Store();
  const say = (event: string, data: unknown): void => store.apply({ event, data: JSON.stringify(data) });
  say("flows", [row(1), row(2)]);
  say("flows", [row(1, { cwnd_pkts: 99 })]);
  expect(store.rows.get(1)?.cwnd_pkts).toBe(99);
  say("gone", [2, 7]);
  expect([...store.rows.keys()]).toEqual([1]);
  say("lost", { lost: 3 });
  expect(store.lost).toEqual({ lost: 3 });
  say("late", { ms: 1500 });
  expect(store.late_ms).toBe(1500);
  say("reset", {});
  expect(store.rows.size).toBe(0);
  say("event of a later daemon", {});
});
