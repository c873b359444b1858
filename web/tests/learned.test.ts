// SPDX-License-Identifier: MIT OR Apache-2.0
import { expect, test } from "vitest";
import type { LearnedPath } from "../src/api";
import { sorted } from "../src/columns";
import {
  age_s,
  filteredPaths,
  isOnPath,
  LEARNED,
  learnedRate,
  NO_PATH_FILTER,
  setting,
  settingsInWords,
  stateOf,
  type PathFilter,
} from "../src/learned";
import { learned } from "./learned_path";

const prefixes = (paths: LearnedPath[]): string[] => paths.map((path) => path.prefix);

/** As the daemon writes them: keys of the policy file. */
const SETTINGS = 'send_buffer = 4194304\ninitial_rate = "50000000bit"\npacing_rate = "95000000bit"\ncongestion_control = "fp_cubic"\n';

/** What the row of a path says, by the column's key. */
function cells(path: LearnedPath): Record<string, string> {
  return Object.fromEntries(LEARNED.columns.map((column) => [column.key, column.text(path)]));
}

test("a row tells what flows get", () => {
  const path = learned("10.0.0.0/24", { settings: SETTINGS, state: "tuned", gain: 3.42 });
  expect(cells(path)).toMatchObject({
    law: "fp_cubic, at most 95 Mb/s",
    send: "4.19 MB",
    receive: "–",
    start: "50 Mb/s",
    rtt: "100 ms",
    state: "tuned",
    gain: "×3.42",
  });
  expect(cells(learned("10.0.0.0/24"))).toMatchObject({ law: "–", send: "–", start: "–", gain: "–", state: "as host" });
  expect(setting(path, "initial_rate")).toBe("50000000bit");
  expect(setting(path, "rate"), "the end of a key is no key").toBeNull();
  expect(settingsInWords(learned("10.0.0.0/24"))).toBe("");
  expect(settingsInWords(path)).toBe("fp_cubic, at most 95 Mb/s, send buffer 4.19 MB, start at 50 Mb/s");
});

test("a rate that is a bound says so, and one that is unknown stands lowest", () => {
  const bound = learned("10.0.1.0/24", { rate_limit: "own_buffer" });
  const unknown = learned("10.0.2.0/24", { rate_bps: null, rate_doubt: null });
  expect([bound, unknown].map(learnedRate)).toEqual(["> 100 Mb/s", "–"]);
  const faster = learned("10.0.3.0/24", { rate_bps: 2e8 });
  const order = { key: "rate", isDown: true };
  expect(prefixes(sorted([unknown, bound, faster], LEARNED, order))).toEqual(["10.0.3.0/24", "10.0.1.0/24", "10.0.2.0/24"]);
});

test("a path that is left alone says until when", () => {
  const until = "2026-11-24T11:30:00.000Z";
  expect(stateOf(learned("10.0.0.0/24", { state: "quarantined", quarantined_until: until }))).toBe(
    "quarantined until 2026-11-24 11:30 UTC",
  );
});

test("filters by prefix, words and state", () => {
  const paths = [
    learned("10.0.0.0/24", { settings: SETTINGS, state: "tuned" }),
    learned("10.0.9.0/24", { reasons: ["taken back: 6.00 % of the segments were sent again"], state: "quarantined" }),
    learned("2001:db8:7::/48", { local: "2001:db8::1", loss: "random" }),
  ];
  const by = (filter: Partial<PathFilter>): string[] => prefixes(filteredPaths(paths, { ...NO_PATH_FILTER, ...filter }));
  expect(by({})).toHaveLength(3);
  expect(by({ text: "10.0.0.0/8" })).toEqual(["10.0.0.0/24", "10.0.9.0/24"]);
  expect(by({ text: "10.0.9.77" }), "an address within").toEqual(["10.0.9.0/24"]);
  expect(by({ text: "2001:db8:7:1::/64" }), "a longer prefix").toEqual(["2001:db8:7::/48"]);
  expect(by({ text: "192.0.2.1" }), "the own end").toEqual(["10.0.0.0/24", "10.0.9.0/24"]);
  expect(by({ text: "FP_CUBIC" })).toEqual(["10.0.0.0/24"]);
  expect(by({ text: "taken back" })).toEqual(["10.0.9.0/24"]);
  expect(by({ text: "random" })).toEqual(["2001:db8:7::/48"]);
  expect(by({ state: "tuned" })).toEqual(["10.0.0.0/24"]);
  expect(by({ state: "tuned", text: "10.0.9.0/24" })).toEqual([]);
});

test("sorts by every column; prefixes by their numbers", () => {
  const paths = ["10.0.10.0/24", "10.0.9.0/24"].map((prefix) => learned(prefix));
  for (const { key } of LEARNED.columns) expect(sorted(paths, LEARNED, { key, isDown: true })).toHaveLength(2);
  expect(prefixes(sorted(paths, LEARNED, { key: "prefix", isDown: false }))).toEqual(["10.0.9.0/24", "10.0.10.0/24"]);
});

test("a flow is on the path to its peer from its own address", () => {
  const path = learned("10.0.0.0/24");
  expect(isOnPath(path, "192.0.2.1:40000", "10.0.0.9:443")).toBe(true);
  expect(isOnPath(path, "192.0.2.2:40000", "10.0.0.9:443")).toBe(false);
  expect(isOnPath(path, "192.0.2.1:40000", "10.0.1.9:443")).toBe(false);
  expect(isOnPath(path, "[::ffff:192.0.2.1]:40000", "[::ffff:10.0.0.9]:443"), "a socket of IPv6").toBe(true);
});

test("an age is never less than nothing, whatever the browser's clock says", () => {
  const path = learned("10.0.0.0/24");
  expect(age_s(path.seen, Date.parse(path.seen) + 1500)).toBe(1.5);
  expect(age_s(path.seen, Date.parse(path.seen) - 1500)).toBe(0);
});
