// SPDX-License-Identifier: MIT OR Apache-2.0
// Nothing may bar people with a screen reader, nor those who see colours differently.

import axe from "axe-core";
import type { Page } from "playwright-core";
import { expect } from "vitest";

/** Rules of WCAG 2.1 A and AA, contrast among them. */
export async function expectAccessible(page: Page): Promise<void> {
  await page.evaluate(axe.source);
  const found = await page.evaluate(async () => {
    const { axe } = window as unknown as { axe: typeof import("axe-core") };
    const results = await axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] });
    return results.violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 120)).join(" | ")}`);
  });
  expect(found).toEqual([]);
}
