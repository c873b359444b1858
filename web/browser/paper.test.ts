// SPDX-License-Identifier: MIT OR Apache-2.0
// The page on paper, and in the browser's bar of tabs.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { row } from "../tests/flow_row";
import { open } from "./browser";

/** A stream that has these rows, and no more. */
async function serve(page: Page, rows: unknown[]): Promise<void> {
  const body = `event: reset\ndata: {}\n\nevent: flows\ndata: ${JSON.stringify(rows)}\n\n`;
  await page.route("**/v1/instruments/live", (route) => route.fulfill({ contentType: "text/event-stream", body }));
  await page.reload();
}

test("on paper there are rows, and nothing to click", async () => {
  const { page } = await open();
  await serve(page, [row(1, {})]);
  const link = page.getByRole("link", { name: "10.0.0.1:443" });
  await link.waitFor();
  expect(await page.getByRole("searchbox").isVisible()).toBe(true);
  await page.emulateMedia({ media: "print" });
  expect(await page.getByRole("searchbox").isVisible()).toBe(false);
  expect(await link.isVisible()).toBe(true);
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
