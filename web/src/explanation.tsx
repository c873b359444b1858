// SPDX-License-Identifier: MIT OR Apache-2.0
// What a finding means: its row of docs/why.md, the only place where it is explained.

import type { JSX } from "preact";
import why from "../../docs/why.md?raw";

/** The columns of docs/why.md behind the identifier. */
const TITLES = ["What it says", "Evidence", "Cure", "Not to be confused with"];

/** The cells of the row of a finding; null: docs/why.md has none. */
export function explanation(id: string, text: string = why): string[] | null {
  const row = text.split("\n").find((line) => line.startsWith(`| \`${id}\` |`));
  if (row === undefined) return null;
  const cells = row.split("|").slice(2, -1);
  return cells.map((cell) => cell.trim().replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1"));
}

export function ExplanationPage({ id }: { id: string }): JSX.Element {
  const cells = explanation(id);
  return (
    <article>
      <h1>
        <code>{id}</code>
      </h1>
      {cells === null ? (
        <p class="empty">This page does not know the finding: it may be one of a newer daemon.</p>
      ) : (
        <dl class="explanation">
          {TITLES.map((title, i) => (
            <div key={title}>
              <dt>{title}</dt>
              <dd>{withCode(cells[i] ?? "")}</dd>
            </div>
          ))}
        </dl>
      )}
      <p>
        <a href="#/">All flows</a>
      </p>
    </article>
  );
}

/** What stands between backquotes is code. */
function withCode(text: string): (JSX.Element | string)[] {
  return text.split("`").map((part, i) => (i % 2 === 1 ? <code key={i}>{part}</code> : part));
}
