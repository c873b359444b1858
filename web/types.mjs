// SPDX-License-Identifier: MIT OR Apache-2.0
// Writes src/api.gen.ts from the API's document; with --check it only fails when the file differs.

import { readFileSync, writeFileSync } from "node:fs";
import openapiTS, { astToString } from "openapi-typescript";

const HEAD = `// SPDX-License-Identifier: MIT OR Apache-2.0
// Generated from crates/api/openapi.json by \`npm run types\`; do not edit.

`;

const document = new URL("../crates/api/openapi.json", import.meta.url);
const file = new URL("src/api.gen.ts", import.meta.url);
const types = HEAD + astToString(await openapiTS(document));
if (!process.argv.includes("--check")) {
  writeFileSync(file, types);
} else if (readFileSync(file, "utf8") !== types) {
  console.error("web/src/api.gen.ts differs from crates/api/openapi.json: npm run types");
  process.exit(1);
}
