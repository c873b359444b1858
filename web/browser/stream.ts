// SPDX-License-Identifier: MIT OR Apache-2.0
// Flows that a test makes, in the place of the daemon's live stream.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Page } from "playwright-core";
import { onTestFinished } from "vitest";
import type { FlowRow } from "../src/api";

/** One event of the stream. */
export const frame = (event: string, data: unknown): string => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;

/** Reloads the page on a stream that has these rows and then stays open, as the daemon's does. */
export async function serve(page: Page, rows: FlowRow[]): Promise<void> {
  const server = createServer((_, answer) => {
    answer.writeHead(200, { "content-type": "text/event-stream" });
    answer.write(frame("reset", {}) + frame("flows", rows));
  });
  await new Promise<void>((listens) => server.listen(0, "127.0.0.1", listens));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  await page.route("**/v1/instruments/live", (route) => route.continue({ url: `http://127.0.0.1:${port}/` }));
  await page.reload();
}
