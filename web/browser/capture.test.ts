// SPDX-License-Identifier: MIT OR Apache-2.0
// A flow's packets, captured by the page's button.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { expect, test } from "vitest";
import { expectAccessible } from "./accessible";
import { given, open } from "./browser";

/** The receiving end of a flow of the daemon's own host. */
const CAPTURED = given("FATPATH_CAPTURED");

/** The part of the flow's page that captures. */
async function openCaptured(page: Page): Promise<Locator> {
  await page.getByRole("searchbox").fill(CAPTURED);
  await page.getByRole("link", { name: CAPTURED }).first().click();
  return page.getByRole("region", { name: "Packets" });
}

test("a flow is captured, and its plots are a file that a browser draws", async () => {
  const { page, breaches } = await open();
  const packets = await openCaptured(page);
  await packets.getByRole("button", { name: "Capture 10 s" }).click();
  await packets.getByRole("button", { name: "capturing for 10 s …" }).waitFor();
  const save = packets.getByRole("link", { name: "Save the plots" });
  await save.waitFor({ timeout: 60_000 });
  await expectAccessible(page);
  const saved = page.waitForEvent("download");
  await save.click();
  const file = await saved;
  expect(file.suggestedFilename()).toMatch(/^fatpath-flow-\d+\.html$/);
  const kept = join(await mkdtemp(join(tmpdir(), "fatpath-")), file.suggestedFilename());
  await file.saveAs(kept);
  const plots = await page.context().newPage();
  await plots.goto(`file://${kept}`);
  await plots.waitForFunction(() => document.body.dataset.openMs !== undefined);
  await plots.getByText(CAPTURED).first().waitFor();
  await rm(dirname(kept), { recursive: true });
  expect(breaches).toEqual([]);
});

test("a capture that lacks something says so beside its plots", async () => {
  const { page, breaches } = await open();
  const warning = "the capture ended after 3 s: the file reached its bound of 16 MiB (--size)";
  const headers = { "content-type": "text/html", "fatpath-warning": warning };
  await page.route("**/capture?*", (route) => route.fulfill({ headers, body: "<!doctype html>" }));
  const packets = await openCaptured(page);
  await packets.getByRole("button", { name: "Capture 10 s" }).click();
  await packets.getByRole("link", { name: "Save the plots" }).waitFor();
  await packets.getByText(warning).waitFor();
  await expectAccessible(page);
  expect(breaches).toEqual([]);
});
