// SPDX-License-Identifier: MIT OR Apache-2.0
// The order of the table's rows, on a stream that this file makes: two flows that overtake each other.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { row } from "../tests/flow_row";
import { open } from "./browser";
import { frame } from "./stream";

/** Each answer is one look: who was faster is slower now. */
async function serveRace(page: Page): Promise<void> {
  let looks = 0;
  await page.route("**/v1/instruments/live", (route) => {
    looks += 1;
    const rate = (cookie: number): number => 1e6 * (10 + (cookie === 1 ? looks % 2 : (looks + 1) % 2)) + looks;
    const rows = [1, 2].map((cookie) => row(cookie, { goodput_bps: rate(cookie), cwnd_pkts: 100 + looks }));
    const body = (looks === 1 ? frame("reset", {}) : "") + frame("flows", rows);
    return route.fulfill({ contentType: "text/event-stream", body });
  });
  await page.reload();
  await page.getByRole("link", { name: "10.0.0.1:443" }).waitFor();
}

const order = (page: Page): Promise<string> =>
  page.locator("tbody tr td:first-child").allInnerTexts().then((texts) => texts.join(" "));

/** The order at each of the next changes of the values. */
async function orders(page: Page, changes: number): Promise<Set<string>> {
  const values = (): Promise<string> => page.locator("tbody").innerText();
  const seen = new Set([await order(page)]);
  let before = await values();
  for (let change = 0; change < changes; change += 1) {
    await expect.poll(values, { timeout: 20_000 }).not.toBe(before);
    before = await values();
    seen.add(await order(page));
  }
  return seen;
}

test("rows keep their places under the pointer, and are sorted again when it leaves", async () => {
  const { page } = await open();
  await serveRace(page);
  await page.mouse.move(1, 1);
  expect((await orders(page, 4)).size, "they overtake each other").toBe(2);
  await page.locator("tbody tr").first().hover();
  expect((await orders(page, 4)).size).toBe(1);
  await page.mouse.move(1, 1);
  expect((await orders(page, 4)).size).toBe(2);
});

test("rows keep their places while the keyboard is in the table", async () => {
  const { page } = await open();
  await serveRace(page);
  await page.mouse.move(1, 1);
  await page.getByRole("grid").focus();
  await page.keyboard.press("ArrowDown");
  expect((await orders(page, 4)).size).toBe(1);
  await page.getByRole("searchbox").focus();
  expect((await orders(page, 4)).size).toBe(2);
});
