// SPDX-License-Identifier: MIT OR Apache-2.0
// The page is a few files that the daemon embeds and serves under a strict content security policy: no
// inline script or style, no data: address.
import { defineConfig } from "vite";

export default defineConfig({
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: false,
    reportCompressedSize: false,
  },
});
