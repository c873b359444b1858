// SPDX-License-Identifier: MIT OR Apache-2.0
// Hosts that test one another: how to begin, by the daemon, and a mesh that this file makes.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import type { MeshGrid, MeshPair } from "../src/api";
import { expectAccessible } from "./accessible";
import { open } from "./browser";

const HOSTS = ["dtn1", "dtn2", "dtn3"];

function pair(from: string, to: string, has: Partial<MeshPair>): MeshPair {
  return { from, to, start_us: 1_795_392_001_000_000, value: null, unit: null, note: null, ...has };
}

const FAILED = "no answer from <b>dtn3</b>";

const MESH: MeshGrid = {
  mesh: "core",
  tool: "ping",
  hosts: HOSTS,
  pairs: [
    pair("dtn1", "dtn2", { value: 10.25, unit: "ms" }),
    pair("dtn1", "dtn3", { note: { level: "error", message: FAILED } }),
    pair("dtn2", "dtn1", { value: 10.5, unit: "ms" }),
    pair("dtn2", "dtn3", { note: { level: "info", message: "flows said enough" } }),
    pair("dtn3", "dtn1", { start_us: null }),
    pair("dtn3", "dtn2", { value: 99.123456, unit: "ms" }),
  ],
};

/** What is in the table, row by row. */
async function cells(page: Page): Promise<string[][]> {
  const rows = page.getByRole("table", { name: "core: ping" }).locator("tbody tr");
  const texts = (await rows.all()).map((row) => row.locator("th, td").allInnerTexts());
  return Promise.all(texts);
}

test("without a mesh the page says how to begin, with one it has all pairs", async () => {
  const { page, breaches } = await open();
  await page.getByRole("link", { name: "mesh", exact: true }).click();
  const help = page.getByRole("region", { name: "No mesh" });
  await help.getByText("[[mesh]]").first().waitFor();
  await expectAccessible(page);
  await page.keyboard.press("Escape");
  await page.getByRole("grid", { name: "Flows" }).waitFor();

  await page.route("**/v1/measure/mesh", (route) => route.fulfill({ json: [MESH] }));
  await page.keyboard.press("m");
  await page.getByRole("heading", { level: 2, name: "core: ping" }).waitFor();
  expect(await help.count()).toBe(0);
  const head = page.getByRole("columnheader");
  expect(await head.allInnerTexts()).toEqual(["From, to", ...HOSTS]);
  expect(await cells(page)).toEqual([
    ["dtn1", "", "10.25 ms", "failed"],
    ["dtn2", "10.5 ms", "", "left out"],
    ["dtn3", "–", "99.12 ms", ""],
  ]);
  const missing = page.getByRole("list", { name: "Without a result" }).getByRole("listitem");
  expect(await missing.allInnerTexts()).toEqual([`dtn1 to dtn3: ${FAILED}`, "dtn2 to dtn3: flows said enough"]);
  expect(await page.getByRole("cell", { name: "10.25 ms" }).getAttribute("title")).toContain("2026-11-23 00:00");
  await expectAccessible(page);
  await page.setViewportSize({ width: 320, height: 640 });
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  expect(overflow, "the table scrolls by itself").toBeLessThanOrEqual(0);
  await expectAccessible(page);
  expect(breaches).toEqual([]);
});
