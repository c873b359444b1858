// SPDX-License-Identifier: MIT OR Apache-2.0
// What was learned of paths: of the transfer's path by the daemon, and of thousands that this file makes.

import type { Locator, Page } from "playwright-core";
import { expect, test } from "vitest";
import type { LearnedPath } from "../src/api";
import { contains, parsePrefix } from "../src/prefix";
import { learned } from "../tests/learned_path";
import { expectAccessible } from "./accessible";
import { given, open, shoot } from "./browser";

const PEER = given("FATPATH_PEER");
const ADDRESS_OF_PEER = PEER.slice(0, PEER.lastIndexOf(":"));

const table = (page: Page): Locator => page.getByRole("grid", { name: "Learned paths" });

const isToPeer = (prefix: string | null): boolean => {
  const [wanted, peer] = [parsePrefix(prefix ?? ""), parsePrefix(ADDRESS_OF_PEER)];
  return wanted !== null && peer !== null && contains(wanted, peer);
};

/** Lets the daemon's answer be this. */
async function answer(page: Page, mode: string, paths: LearnedPath[], known = paths.length): Promise<void> {
  await page.route("**/v1/paths?*", (route) => route.fulfill({ json: { mode, known, paths } }));
}

test("the path of a transfer is learned, and the flow's page and the path's say what", async () => {
  const { page, breaches } = await open();
  await page.getByRole("grid", { name: "Flows" }).waitFor();
  await page.keyboard.press("p");
  await page.getByRole("heading", { level: 1, name: "Learned paths" }).waitFor();
  await page.getByText("Mode observe").waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type(ADDRESS_OF_PEER);
  const link = table(page).getByRole("link");
  await expect.poll(() => link.count().then((count) => count > 0)).toBe(true);
  expect(isToPeer(await link.first().textContent())).toBe(true);
  await table(page).getByRole("row").nth(1).getByText(/[kM]b\/s/).waitFor();
  await page.setViewportSize({ width: 1360, height: 300 });
  await shoot(page, "page-paths");
  await table(page).focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");

  // Both ends of the lab are this host's: each has its own.
  const known = page.getByRole("region", { name: "What was learned" }).getByRole("article").first();
  await known.getByText(/^Rate limited by/).waitFor();
  const [base_ms] = /[\d.]+(?= ms)/.exec(await known.getByText(/^Base RTT/).locator("..").innerText()) ?? [];
  expect(Number(base_ms), "the lab's delay, both ways").toBeGreaterThanOrEqual(20);
  expect(Number(base_ms)).toBeLessThan(30);
  await known.getByRole("listitem").first().waitFor();
  await known.getByText("What these flows told").click();
  const evidence = known.getByRole("region", { name: /^Flows from / });
  await evidence.getByRole("cell", { name: /^[\d.]+ [kMG]B$/ }).first().waitFor();
  await page.getByRole("region", { name: "History" }).waitFor();
  await expectAccessible(page);
  await page.keyboard.press("Escape");
  await table(page).waitFor();
  await page.keyboard.press("Escape");

  const flows = page.getByRole("grid", { name: "Flows" });
  await flows.getByRole("link", { name: PEER, exact: true }).first().click();
  await page.getByText(/^Its path .* is known for a rate of .* loss: /).getByRole("link").click();
  await page.getByRole("heading", { level: 1, name: /^Path / }).waitFor();
  expect(breaches).toEqual([]);
});

const TUNED = 'send_buffer = 33554432\ninitial_rate = "400000000bit"\ncongestion_control = "fp_bbr"\n';

/** As many as a busy host knows, of which each tenth is left alone. */
const many = (count: number): LearnedPath[] =>
  Array.from({ length: count }, (_, i) =>
    learned(`10.${Math.floor(i / 256)}.${i % 256}.0/24`, {
      base_rtt_us: 1000 * (5 + (i % 200)),
      rate_bps: 1e6 * (1 + ((i * 7919) % 1009)),
      rate_limit: i % 3 === 0 ? "own_buffer" : null,
      loss: (["none", "queue", "random", "policed"] as const)[i % 4] ?? null,
      settings: TUNED,
      ...(i % 10 === 0
        ? {
            state: "quarantined",
            quarantined_until: "2026-11-24T11:30:00.000Z",
            reasons: ["taken back: 6.00 % of the segments were sent again, 0.10 % before"],
          }
        : { state: "tuned", gain: 4.2, reasons: ["fp_bbr: segments are lost although no long queue delays them"] }),
    }),
  );

test("of thousands of paths those that are seen are drawn, sorted and filtered", async () => {
  const { page, breaches } = await open();
  await answer(page, "tune", many(1900));
  await page.getByRole("link", { name: "paths", exact: true }).click();
  await page.getByText("Mode tune").waitFor();
  await page.getByText("1900 of 1900 paths").waitFor();
  const rows = table(page).locator("tbody tr:not(.space)");
  await expect.poll(() => rows.count()).toBeGreaterThan(10);
  expect(await rows.count()).toBeLessThan(100);
  await table(page).focus();
  await page.keyboard.press("End");
  await table(page).locator("tr[aria-rowindex='1901']").waitFor();

  await page.keyboard.press("Home");
  const rate = page.getByRole("columnheader", { name: "Rate" });
  await rate.getByRole("button").click();
  expect(await rate.getAttribute("aria-sort")).toBe("descending");
  await rows.first().getByText("1.01 Gb/s").waitFor();

  await page.getByLabel("every state").selectOption("quarantined");
  await page.getByText("190 of 1900 paths").waitFor();
  await rows.first().getByText("quarantined until 2026-11-24 11:30 UTC").waitFor();
  await page.getByRole("searchbox").fill("10.0.0.0/16");
  await page.getByText("26 of 1900 paths").waitFor();
  await page.getByRole("searchbox").fill("taken back");
  await page.getByText("190 of 1900 paths").waitFor();
  await expectAccessible(page);

  const [first] = many(1);
  await answer(page, "tune", first ? [first] : [], 1900);
  await rows.first().click();
  const known = page.getByRole("region", { name: "What was learned" });
  await known.getByText("for a time").waitFor();
  await known.getByText("initial_rate = ").waitFor();
  await known.getByText(/^taken back: 6/).waitFor();
  await known.getByText("fatpath paths pin 10.").waitFor();
  await expectAccessible(page);
  expect(breaches).toEqual([]);
});

test("of more paths than are asked for at once, those of a prefix are asked for", async () => {
  const { page } = await open();
  await answer(page, "observe", many(2000), 65_536);
  await page.getByRole("link", { name: "paths", exact: true }).click();
  await page.getByText("2000 of 65536 paths: the 2000 seen last").waitFor();
  const asked = page.waitForRequest((request) => new URL(request.url()).searchParams.get("prefix") === "10.9.0.0/16");
  await page.getByRole("searchbox").fill("10.9.0.0/16");
  await asked;
});

/** Leaves the table and comes back, which asks the daemon at once. */
async function again(page: Page): Promise<void> {
  await page.keyboard.press("Escape");
  await page.getByRole("grid", { name: "Flows" }).waitFor();
  await page.keyboard.press("p");
}

test("where nothing is learned the page says how to begin, on dark and small screens too", async () => {
  const { page, breaches } = await open({ width: 375, height: 667, colorScheme: "dark" });
  await answer(page, "off", []);
  await page.getByRole("link", { name: "paths", exact: true }).click();
  await page.getByText("Mode off").waitFor();
  await page.getByText('mode = "observe"').waitFor();
  await expectAccessible(page);
  await answer(page, "tune", []);
  await again(page);
  await page.getByText("No path was learned yet.").waitFor();
  await answer(page, "tune", many(20));
  await again(page);
  await table(page).getByRole("row").nth(1).waitFor();
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  expect(overflow, "nothing is wider than the screen").toBeLessThanOrEqual(0);
  await expectAccessible(page);
  expect(breaches).toEqual([]);
});
