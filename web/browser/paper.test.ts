// SPDX-License-Identifier: MIT OR Apache-2.0
// The page on paper, and in the browser's bar of tabs.

import { expect, test } from "vitest";
import { row } from "../tests/flow_row";
import { given, open } from "./browser";
import { serve } from "./stream";

test("on paper there are rows, and nothing to click", async () => {
  const { page } = await open();
  await serve(page, [row(1)]);
  const link = page.getByRole("link", { name: "10.0.0.1:443" });
  await link.waitFor();
  expect(await page.getByRole("searchbox").isVisible()).toBe(true);
  await page.emulateMedia({ media: "print" });
  expect(await page.getByRole("searchbox").isVisible()).toBe(false);
  expect(await link.isVisible()).toBe(true);
});

test("a flow is on paper from its head to its last event, dark on white, whatever was chosen for the screen", async () => {
  const { page } = await open({ width: 1360, height: 600 });
  await page.getByLabel("Colours").selectOption("dark");
  await page.getByRole("link", { name: given("FATPATH_PEER"), exact: true }).first().click();
  await page.getByRole("region", { name: "Events" }).waitFor();
  const cut = (): Promise<number> =>
    page.locator("main").evaluate((main) => (getComputedStyle(main).overflowY === "visible" ? 0 : main.scrollHeight - main.clientHeight));
  expect(await cut(), "on the screen it scrolls").toBeGreaterThan(0);
  expect(await page.getByRole("region", { name: "Packets" }).isVisible()).toBe(true);
  await page.emulateMedia({ media: "print" });
  expect(await cut()).toBe(0);
  expect(await page.evaluate(() => document.documentElement.scrollHeight - innerHeight)).toBeGreaterThan(0);
  expect(await page.getByRole("region", { name: "Packets" }).isVisible()).toBe(false);
  expect(await page.evaluate(() => getComputedStyle(document.body).color)).toBe("rgb(27, 31, 35)");
});

test("the tab has an icon of the page's own", async () => {
  const { page } = await open();
  const href = await page.locator("link[rel=icon]").getAttribute("href");
  const isImage = await page.evaluate(async (href) => {
    const answer = await fetch(href);
    return answer.ok && answer.headers.get("content-type");
  }, href ?? "");
  expect(isImage).toBe("image/svg+xml");
});
