// SPDX-License-Identifier: MIT OR Apache-2.0
// The page end to end, while a transfer runs whose receiver has a window that is too small for the path.

import type { Locator, Page } from "playwright-core";
import { expect, test } from "vitest";
import { expectAccessible } from "./accessible";
import { given, open, ORIGIN, shoot } from "./browser";

/** The peer of the transfer, ADDRESS:PORT, and the finding that it must get. */
const PEER = given("FATPATH_PEER");
const FINDING = given("FATPATH_FINDING");
const ADDRESS_OF_PEER = PEER.slice(0, PEER.lastIndexOf(":"));

/** Of the flows that send to the peer, not of those at its own end; the first is the fastest. */
const row = (page: Page): Locator => {
  const peer = page.getByRole("link", { name: PEER, exact: true });
  return page.getByRole("row").filter({ has: peer }).first();
};

/** What a plot says for those who do not see it, and what it shows for those who do. */
async function seen(plot: Locator): Promise<string> {
  const label = await plot.getAttribute("aria-label");
  const picture = await plot.locator("canvas").evaluate((canvas) => (canvas as HTMLCanvasElement).toDataURL());
  return `${label} ${picture}`;
}

async function openFlow(page: Page): Promise<void> {
  await page.getByRole("searchbox").fill(PEER);
  // iperf3's control connection, to the same port, has no such finding.
  await page.getByLabel("every finding").selectOption(FINDING);
  // The pointer holds the order: what is aimed at is what is opened.
  await row(page).hover();
  await row(page).getByRole("link", { name: PEER, exact: true }).click();
  await page.getByRole("heading", { level: 1 }).getByText(PEER).waitFor();
}

test("a transfer appears in the table, and filters and keys find it", async () => {
  const { page, breaches } = await open();
  expect(page.url(), "the token is not left in the address").toBe(`${ORIGIN}/`);
  await page.getByRole("status").getByText("live").waitFor();
  await row(page).waitFor();
  await row(page).getByText(/[MGk]b\/s/).waitFor();

  await page.keyboard.press("/");
  await page.keyboard.type(`${ADDRESS_OF_PEER}/32`);
  await page.getByRole("link", { name: `path ${ADDRESS_OF_PEER}` }).waitFor();
  await row(page).waitFor();
  await page.getByRole("searchbox").fill("240.0.0.0/4");
  const shown = (): Promise<string[]> => page.locator("tbody tr").allInnerTexts();
  await expect.poll(shown, { timeout: 20_000 }).toEqual([]);
  await page.getByText("No flow is shown.").waitFor();
  await page.getByRole("searchbox").fill(PEER);
  await page.getByLabel("every finding").selectOption(FINDING);
  const badge = row(page).getByRole("link", { name: FINDING.replace("FP-", "") });
  await badge.waitFor();
  expect(await badge.getAttribute("href")).toBe(`#/why/${FINDING}`);
  await expectAccessible(page);
  await shoot(page, "page-flows");

  await page.getByRole("grid").focus();
  await page.keyboard.press("?");
  const keys = page.getByRole("dialog", { name: "Keys" });
  await keys.getByText("into the filter").waitFor();
  await expectAccessible(page);
  await page.keyboard.press("Escape");
  await keys.waitFor({ state: "hidden" });
  const age = page.getByRole("columnheader", { name: "Age" });
  await age.getByRole("button").click();
  expect(await age.getAttribute("aria-sort")).toBe("descending");
  await age.getByRole("button").press("Enter");
  expect(await age.getAttribute("aria-sort")).toBe("ascending");
  await page.getByRole("grid").focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1 }).getByText(PEER).waitFor();
  await page.keyboard.press("Escape");
  await row(page).waitFor();
  expect(breaches).toEqual([]);
});

test("the plots of a flow move, and the finding stands with its evidence and cure", async () => {
  const { page, breaches } = await open();
  await openFlow(page);
  const plots = page.getByRole("region", { name: "Plots" }).getByRole("img");
  expect(await plots.count()).toBe(4);
  for (const title of ["Window", "Round-trip time", "Rate"]) {
    const plot = page.getByRole("img", { name: new RegExp(`^${title}.*: now`) });
    const before = await seen(plot);
    await expect.poll(() => seen(plot), { timeout: 10_000 }).not.toBe(before);
  }
  const finding = page.getByRole("listitem").filter({ hasText: FINDING });
  await finding.getByRole("link", { name: FINDING }).click();
  await page.getByRole("heading", { level: 1, name: FINDING }).waitFor();
  await page.getByText("Not to be confused with").waitFor();
  await expectAccessible(page);
  await page.goBack();
  await finding.getByText("SndLimTimeRwin").waitFor();
  await finding.getByText(/receive_buffer = /).waitFor();
  await page.getByRole("img", { name: /Held back by: .*receiver/ }).waitFor();
  await page.getByRole("region", { name: "Events" }).getByRole("row").nth(1).waitFor();
  await expectAccessible(page);
  await shoot(page, "page-flow");
  expect(breaches).toEqual([]);
});

test("a path shows the distribution of its flows, what is found on them, and what was archived", async () => {
  const { page, breaches } = await open();
  await openFlow(page);
  await page.getByRole("link", { name: /^path / }).click();
  await page.getByRole("heading", { level: 1, name: /^Path / }).waitFor();
  await page.getByRole("img", { name: /Smoothed RTT of \d+ flows: 10 %: .* ms/ }).waitFor();
  await page.getByRole("img", { name: /Average rate of \d+ flows/ }).waitFor();
  await page.getByRole("listitem").filter({ hasText: FINDING }).getByText(/\d+ flows?/).waitFor();
  await row(page).waitFor();
  const past = page.getByRole("region", { name: "History" });
  const goodput = past.getByRole("img", { name: /^Goodput of flows: now .*median [\d.]+ [kM]b\/s/ });
  await goodput.locator("canvas").waitFor();
  await past.getByRole("link", { name: FINDING }).first().waitFor();
  await past.getByRole("row").filter({ hasText: "policy.applied" }).first().waitFor();
  const ofTheDay = page.waitForResponse((response) => {
    const url = new URL(response.url());
    return url.pathname === "/v1/archive/path" && url.searchParams.get("by") === "minute";
  });
  await past.getByRole("combobox", { name: "Time" }).selectOption("1 day");
  expect((await ofTheDay).ok()).toBe(true);
  await goodput.locator("canvas").waitFor();
  await expectAccessible(page);
  await shoot(page, "page-path");
  expect(breaches).toEqual([]);
});

test("dark and small screens", async () => {
  const { page, breaches } = await open({ width: 375, height: 667, colorScheme: "dark" });
  await row(page).waitFor();
  const ground = (): Promise<string> => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = await ground();
  await page.getByLabel("Colours").selectOption("light");
  expect(await ground()).not.toBe(dark);
  await page.getByLabel("Colours").selectOption("auto");
  expect(await ground()).toBe(dark);
  expect(await page.getByRole("columnheader", { name: "RTT", exact: true }).isVisible()).toBe(true);
  expect(await page.getByRole("columnheader", { name: "cwnd" }).isVisible()).toBe(false);
  await expectAccessible(page);
  await openFlow(page);
  await page.getByRole("img", { name: /^Rate.*: now/ }).waitFor();
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  expect(overflow, "nothing is wider than the screen").toBeLessThanOrEqual(0);
  await expectAccessible(page);
  await shoot(page, "page-small");
  expect(breaches).toEqual([]);
});

test("without the token there is nothing but the question for it", async () => {
  const { page } = await open(undefined, `${ORIGIN}/`);
  await page.getByRole("heading", { name: "Token" }).waitFor();
  expect(await page.getByRole("row").count()).toBe(0);
  await expectAccessible(page);
  await page.getByLabel("Token").fill("0".repeat(64));
  await page.getByRole("button", { name: "Open" }).click();
  await page.getByRole("heading", { name: "Token" }).waitFor();
});

test("a script in the page's way is refused by the browser", async () => {
  const { page, breaches } = await open();
  const ran = await page.evaluate(() => {
    const script = document.createElement("div");
    try {
      script.innerHTML = "<img src=x onerror=alert(1)>";
      return true;
    } catch {
      return false;
    }
  });
  expect(ran, "text that becomes markup").toBe(false);
  expect(breaches.join()).toContain("TrustedHTML");
});
