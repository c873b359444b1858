// SPDX-License-Identifier: MIT OR Apache-2.0
// Two sets: tests/ needs nothing, browser/ a daemon and a browser (tests/page.rs runs it).
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: { testTimeout: 90_000, hookTimeout: 60_000, fileParallelism: false, watch: false },
});
