// SPDX-License-Identifier: MIT OR Apache-2.0
// tests/ needs nothing; browser/ a daemon and a browser (tests/page.rs runs it); capture/ a plot and a browser
// (tests/capture_page.rs).
import { defineConfig } from "vitest/config";

export default defineConfig({
  // docs/why.md, which the page explains findings by.
  server: { fs: { allow: [".."] } },
  test: { testTimeout: 90_000, hookTimeout: 60_000, fileParallelism: false, watch: false },
});
