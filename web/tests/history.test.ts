// SPDX-License-Identifier: MIT OR Apache-2.0
import { expect, test } from "vitest";
import type { ArchivedEvent, PathHistory } from "../src/api";
import { columns, date, HISTORY_PLOTS, marks, told } from "../src/history";

const event = (kind: string, name: string, more: Partial<ArchivedEvent> = {}): ArchivedEvent => ({
  time: "2026-11-23T00:00:01.000Z",
  time_us: 1_795_392_001_000_000,
  host: "h",
  boot: "b",
  sequence: 1,
  kind,
  name,
  peer: null,
  rule: null,
  value: null,
  weight: 1,
  body: {},
  ...more,
});

const summary = (p50: number) => ({ n: 3, sum_ln: 0, sum_ln2: 0, p10: p50 / 2, p50, p90: null });

const HISTORY: PathHistory = {
  intervals: [
    { begin: "2026-11-23T00:00:00.000Z", measures: { goodput_bps: summary(8e6) } },
    { begin: "2026-11-23T03:00:00.000Z", measures: { srtt_us: summary(900) } },
  ],
  events: [
    event("decision", "policy.applied", { body: { file: "/etc/fatpath/policy.toml" } }),
    event("event", "finding", { body: { attributes: { finding: { id: "FP-RWND", title: "window" } } } }),
    event("test", "test.ping", { value: 1234, body: { test: "far", message: 7 } }),
    event("path", "path.estimate", { value: 5e6 }),
    event("event", "loss", { body: null }),
  ],
};

test("each line has the values of its measure, and nothing where there is none", () => {
  const [goodput, rtt, , flows] = HISTORY_PLOTS.map((plot) => columns(plot, HISTORY));
  const times = [1_795_392_000, 1_795_402_800];
  expect(goodput).toEqual([times, [null, null], [8e6, null], [4e6, null]]);
  expect(rtt).toEqual([times, [null, 900], [null, null]]);
  expect(flows).toEqual([times, [3, null]]);
});

test("tests, tunings and findings are marked; all are told", () => {
  expect(marks(HISTORY).map((mark) => mark.colour)).toEqual(["mark-tuned", "mark-finding", "mark-test"]);
  expect(marks(HISTORY)[0]?.t_s).toBe(1_795_392_001);
  expect(HISTORY.events.map(told)).toEqual([
    "policy.applied: /etc/fatpath/policy.toml",
    "FP-RWND: window",
    "test.ping, far, 1.23 k",
    "path.estimate: 5 Mb/s",
    "loss",
  ]);
  expect(date(1_795_392_001)).toBe("2026-11-23 00:00");
});
