// SPDX-License-Identifier: MIT OR Apache-2.0
import { expect, test } from "vitest";
import { inPlace } from "../src/hold";
import { FLOWS } from "../src/rows";
import { row } from "./flow_row";

test("rows keep their places while their values change", () => {
  const shown = [row(3, { goodput_bps: 30 }), row(1, { goodput_bps: 20 }), row(2, { goodput_bps: 10 })];
  const now = [row(2, { goodput_bps: 99 }), row(1, { goodput_bps: 50 }), row(3, { goodput_bps: 1 })];
  const held = inPlace(shown, now, FLOWS.identity);
  expect(held.map((one) => one.cookie)).toEqual([3, 1, 2]);
  expect(held.map((one) => one.goodput_bps)).toEqual([1, 50, 99]);
});

test("a row that went keeps its place, and new rows come last", () => {
  const held = inPlace([row(1), row(2)], [row(4), row(2), row(3)], FLOWS.identity);
  expect(held.map((one) => one.cookie)).toEqual([1, 2, 4, 3]);
});
