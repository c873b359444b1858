// SPDX-License-Identifier: MIT OR Apache-2.0
// A real browser on the page of a real daemon, and what must hold on every page: no request to outside, no
// breach of the security policy, no error in the console, nothing that bars people with a screen reader.

import { chromium, type Browser, type Page } from "playwright-core";
import { afterAll, beforeAll } from "vitest";

/** Set by tests/page.rs, which runs the daemon and the transfer. */
export function given(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: tests/page.rs runs these tests`);
  return value;
}

export const ADDRESS = given("FATPATH_PAGE");
export const ORIGIN = new URL(ADDRESS).origin;

let browser: Browser;

beforeAll(async () => {
  const executablePath = process.env.FATPATH_CHROMIUM ?? "/usr/bin/chromium";
  // Chromium has no sandbox for root.
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
});

afterAll(() => browser.close());

interface Opened {
  page: Page;
  /** What should not have happened so far. */
  breaches: string[];
}

type Look = { width: number; height: number; colorScheme?: "light" | "dark" };

export async function open(look: Look = { width: 1360, height: 900 }, address = ADDRESS): Promise<Opened> {
  const { width, height, colorScheme = "light" } = look;
  const context = await browser.newContext({ viewport: { width, height }, colorScheme });
  const page = await context.newPage();
  const breaches: string[] = [];
  page.on("console", (said) => {
    if (said.type() === "error" || said.type() === "warning") breaches.push(said.text());
  });
  page.on("pageerror", (error) => breaches.push(String(error)));
  page.on("dialog", (dialog) => void dialog.dismiss().then(() => breaches.push(`dialog ${dialog.message()}`)));
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== ORIGIN) breaches.push(`asked ${request.url()}`);
  });
  await page.goto(address);
  return { page, breaches };
}

/** For the README: make screenshots. */
export async function shoot(page: Page, name: string): Promise<void> {
  const directory = process.env.FATPATH_SCREENSHOTS;
  if (directory) await page.screenshot({ path: `${directory}/${name}.png` });
}
