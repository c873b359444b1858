// SPDX-License-Identifier: MIT OR Apache-2.0
// Every finding that the diagnosis can give is explained in docs/why.md, in the columns that the page shows.

import { expect, test } from "vitest";
import { explanation } from "../src/explanation";

test("a row of the table becomes cells without links", () => {
  const row = "| `FP-X` | says `a` | seen ([b](b.md#c)) | cured | none |";
  expect(explanation("FP-X", row)).toEqual(["says `a`", "seen (b)", "cured", "none"]);
  expect(explanation("FP-Y", row)).toBeNull();
});

test("what the diagnosis finds is explained", () => {
  for (const id of ["FP-RWND", "FP-SNDBUF", "FP-LOSS-RANDOM", "FP-PMTU-BLACKHOLE"]) {
    const cells = explanation(id);
    expect(cells?.length, id).toBe(4);
    expect(cells?.[0], id).not.toBe("");
  }
});
