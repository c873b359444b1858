// SPDX-License-Identifier: MIT OR Apache-2.0
// The page of a host on which nothing was seen yet.

import { expect, test } from "vitest";
import { row } from "../tests/flow_row";
import { expectAccessible } from "./accessible";
import { open } from "./browser";
import { serve } from "./stream";

test("where no flow was seen yet the page says what to expect and how to begin, until there is one", async () => {
  const { page, breaches } = await open();
  await serve(page, []);
  const help = page.getByRole("region", { name: "No flow yet" });
  await help.getByText("appears here about a second after it carries data").waitFor();
  for (const command of ["fatpath try HOST", "fatpath policy suggest HOST", "fatpath doctor"]) {
    expect(await help.getByText(command, { exact: true }).isVisible(), command).toBe(true);
  }
  await expectAccessible(page);
  await help.getByRole("link", { name: "learn paths" }).click();
  await page.getByRole("heading", { level: 1, name: "Learned paths" }).waitFor();
  await page.keyboard.press("Escape");
  await help.waitFor();
  await serve(page, [row(1)]);
  await page.getByRole("link", { name: "10.0.0.1:443" }).waitFor();
  expect(await help.isVisible()).toBe(false);
  expect(breaches).toEqual([]);
});

test("on a small dark screen the help is as wide as the screen", async () => {
  const { page, breaches } = await open({ width: 375, height: 667, colorScheme: "dark" });
  await serve(page, []);
  await page.getByRole("region", { name: "No flow yet" }).waitFor();
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  expect(overflow, "nothing is wider than the screen").toBeLessThanOrEqual(0);
  await expectAccessible(page);
  expect(breaches).toEqual([]);
});
