// SPDX-License-Identifier: MIT OR Apache-2.0
// The HTML file of a captured flow in a real browser: it opens and zooms in less than a second a step, asks nothing of any
// network, obeys its own policy, and shows names as text. tests/capture_page.rs writes the files.

import { readFile, writeFile } from "node:fs/promises";
import { chromium, type Browser, type Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectAccessible } from "../browser/accessible";

/** With this much a step feels like an answer. */
const STEP_MS = 1000;
/** The machine has other work: the best of so many counts, and for the opening the time of the processor. */
const TRIES = 2;

const [large, small] = [process.env.FATPATH_LARGE, process.env.FATPATH_SMALL];
if (!large || !small) throw new Error("tests/capture_page.rs runs these tests");

let browser: Browser;

beforeAll(async () => {
  const executablePath = process.env.FATPATH_CHROMIUM ?? "/usr/bin/chromium";
  // Chromium has no sandbox for root.
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
});

afterAll(() => browser.close());

/**
 * A page with all points. How long it took to the first picture, by the clock and of the processor (what ran until that was
 * asked, too), for a step at once, and until all points were there.
 */
async function opened(file: string) {
  const page = await browser.newPage({ viewport: { width: 1360, height: 1200 } });
  const breaches: string[] = [];
  // The browser's advice on reading pixels is for this test.
  const isFine = (said: string) => said.includes("willReadFrequently");
  page.on("console", (said) => void (said.type() === "log" || isFine(said.text()) || breaches.push(said.text())));
  page.on("pageerror", (error) => breaches.push(String(error)));
  page.on("dialog", (dialog) => void dialog.dismiss().then(() => breaches.push(`dialog ${dialog.message()}`)));
  page.on("request", (request) => void (request.url() === `file://${file}` || breaches.push(request.url())));
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const from = performance.now();
  // The first picture does not wait for the end of the file.
  await page.goto(`file://${file}`, { waitUntil: "commit" });
  await page.waitForFunction(() => document.body?.dataset.openMs !== undefined);
  const wallMs = performance.now() - from;
  const { metrics } = await session.send("Performance.getMetrics");
  const task = metrics.find((metric) => metric.name === "TaskDuration")!.value;
  const earlyMs = await zoomed(page);
  await page.waitForFunction(() => document.body.dataset.wholeMs !== undefined);
  const wholeMs = performance.now() - from;
  await step(page, "Home");
  return { page, breaches, tookMs: task * 1000, wallMs, earlyMs, wholeMs };
}

/** What part of time is shown, ns. */
const shown = (page: Page) => page.evaluate(() => Number(document.body.dataset.toNs) - Number(document.body.dataset.fromNs));
const draws = (page: Page) => page.evaluate(() => Number(document.body.dataset.draws));

/** From a key to its picture, ms. */
async function step(page: Page, key: string): Promise<number> {
  const before = await draws(page);
  const from = performance.now();
  await page.keyboard.press(key);
  await page.waitForFunction((count) => Number(document.body.dataset.draws) > count, before);
  return performance.now() - from;
}

/** From the key to the picture of half of the time; other pictures may come in between. */
async function zoomed(page: Page): Promise<number> {
  const before = await shown(page);
  const from = performance.now();
  await page.keyboard.press("+");
  await page.waitForFunction((width) => Number(document.body.dataset.toNs) - Number(document.body.dataset.fromNs) < width, before);
  return performance.now() - from;
}

test("two million segments open and zoom in less than a second a step, down to a microsecond", async () => {
  const opens = [];
  const walls = [];
  const wholes = [];
  const earlies = [];
  for (let n = 0; n < TRIES; n++) {
    const { page, breaches, tookMs, wallMs, earlyMs, wholeMs } = await opened(large);
    opens.push(tookMs);
    walls.push(wallMs);
    wholes.push(wholeMs);
    earlies.push(earlyMs);
    expect(breaches).toEqual([]);
    await page.close();
  }
  const { page, breaches } = await opened(large);
  const all = await shown(page);
  const steps: number[] = [];
  // Into the middle, where retransmissions are, and back.
  while ((await shown(page)) > 1000) steps.push(await step(page, "+"));
  expect(await shown(page)).toBe(1000);
  steps.push(await step(page, "ArrowRight"), await step(page, "Home"));
  expect(await shown(page)).toBe(all);
  let best = Infinity;
  for (let n = 0; n < TRIES; n++) {
    await step(page, "+");
    best = Math.min(best, await step(page, "Home"));
  }
  console.log(`opens: ${opens.map(Math.round)} ms of the processor, ${walls.map(Math.round)} ms by the clock; ${steps.length + TRIES} steps: at most ${Math.round(Math.max(...steps, ...earlies))} ms`);
  console.log(`all points are there after ${wholes.map(Math.round)} ms`);
  expect(Math.min(...opens)).toBeLessThan(STEP_MS);
  expect(Math.min(...earlies)).toBeLessThan(STEP_MS);
  expect(best).toBeLessThan(STEP_MS);
  expect(steps.filter((ms) => ms >= STEP_MS).length).toBeLessThanOrEqual(steps.length / 10);
  expect(breaches).toEqual([]);
});

test.each([large, small])("the overviews in %s are the pictures of all points, and are there before these", async (file) => {
  const page = await browser.newPage({ viewport: { width: 1360, height: 1200 } });
  // The first pictures are kept when they are made.
  await page.addInitScript(() => {
    const pictures = () => [...document.querySelectorAll("canvas")].map((canvas) => canvas.toDataURL());
    const seen = new MutationObserver(() => {
      if (document.body?.dataset.openMs === undefined) return;
      seen.disconnect();
      const isEarly = document.readyState === "loading" || document.getElementById("data-0") !== null;
      Object.assign(window, { first: { pictures: pictures(), isEarly } });
    });
    seen.observe(document, { attributes: true, subtree: true });
    Object.assign(window, { pictures });
  });
  await page.goto(`file://${file}`);
  await page.getByRole("status").getByText("all points are read").waitFor();
  // A picture of the points, not of the overview.
  await step(page, "Home");
  type Kept = { first: { pictures: string[]; isEarly: boolean }; pictures: () => string[] };
  const first = await page.evaluate(() => (window as unknown as Kept).first);
  expect(first.isEarly).toBe(true);
  const last = await page.evaluate(() => (window as unknown as Kept).pictures());
  expect(last.length).toBe(await page.locator("canvas").count());
  expect(Math.min(...last.map((picture) => picture.length))).toBeGreaterThan(5000);
  expect(last.map((picture, n) => picture === first.pictures[n])).toEqual(last.map(() => true));
  await page.close();
});

test("a file that is cut short shows its overview, and says so", async () => {
  const text = await readFile(large, "utf8");
  const cut = large.replace(".html", "-cut.html");
  await writeFile(cut, text.slice(0, text.length * 0.7));
  const { page, breaches } = await opened(cut);
  const said = await page.getByRole("status").textContent();
  expect(said).toContain("not all points can be read");
  expect(await page.locator("canvas").count()).toBeGreaterThan(2);
  expect(breaches).toEqual([]);
  await page.close();
});

test("what is drawn is what was captured, at every zoom", async () => {
  const { page, breaches } = await opened(large);
  const blue = () =>
    page.evaluate(() => {
      const canvas = document.querySelector("canvas")!;
      const { data } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height);
      let count = 0;
      // Of #0072b2, also where it is blended with white.
      for (let i = 0; i < data.length; i += 4) count += Number(data[i + 2]! > 150 && data[i + 2]! - data[i]! > 40);
      return count;
    });
  const legend = await page.locator(".legend").first().textContent();
  expect(legend).toContain("segment (2000001)");
  expect(legend).toContain("fast retransmission (1999)");
  // On the whole, retransmissions cover the segments.
  for (let n = 0; n < 12; n++) await step(page, "+");
  expect(await blue()).toBeGreaterThan(500);
  // Without the series nothing blue is left.
  await page.getByRole("checkbox", { name: /^segment/ }).click();
  await expect.poll(blue).toBeLessThan(100);
  expect(breaches).toEqual([]);
});

test("pointer: the wheel zooms where it stands, drag moves, shift and drag selects, double click shows all", async () => {
  const { page, breaches } = await opened(small);
  const canvas = page.locator("canvas").first();
  const box = (await canvas.boundingBox())!;
  const at = (share: number) => [box.x + 84 + (box.width - 84) * share, box.y + 60] as const;
  const all = await shown(page);
  await page.mouse.move(...at(0.5));
  await expect.poll(() => page.locator(".readout").first().textContent()).toContain("acknowledged up to here");
  await page.mouse.wheel(0, -100);
  await expect.poll(() => shown(page)).toBeLessThan(all * 0.8);
  const from = () => page.evaluate(() => Number(document.body.dataset.fromNs));
  const before = await from();
  await page.mouse.down();
  await page.mouse.move(...at(0.4));
  await page.mouse.up();
  await expect.poll(from).toBeGreaterThan(before);
  await page.mouse.dblclick(...at(0.5));
  await expect.poll(() => shown(page)).toBe(all);
  await page.keyboard.down("Shift");
  await page.mouse.move(...at(0.2));
  await page.mouse.down();
  await page.mouse.move(...at(0.3));
  await page.mouse.up();
  await page.keyboard.up("Shift");
  await expect.poll(async () => Math.round(((await shown(page)) / all) * 100)).toBe(10);
  expect(breaches).toEqual([]);
});

test("names are text, and the page is fit for people with a screen reader", async () => {
  const { page, breaches } = await opened(small);
  expect(await page.title()).toBe("<img src=x onerror=alert(1)>");
  expect(await page.locator("h1").textContent()).toBe("<img src=x onerror=alert(1)>");
  expect(await page.locator("img").count()).toBe(0);
  expect(await page.locator("main section").count()).toBe(2);
  const policy = page.locator("meta[http-equiv=Content-Security-Policy]");
  expect(await policy.getAttribute("content")).toContain("default-src 'none'");
  expect(breaches).toEqual([]);
  // axe is a script that the policy forbids, so it comes into a page that is past it.
  const context = await browser.newContext({ bypassCSP: true });
  const free = await context.newPage();
  await free.goto(`file://${small}`);
  await free.waitForFunction(() => document.body.dataset.wholeMs !== undefined);
  await expectAccessible(free);
});
