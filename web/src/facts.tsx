// SPDX-License-Identifier: MIT OR Apache-2.0
// A list of names and values.

import type { ComponentChildren, JSX } from "preact";

export function FactList({ facts }: { facts: [string, ComponentChildren][] }): JSX.Element {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
