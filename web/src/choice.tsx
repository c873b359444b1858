// SPDX-License-Identifier: MIT OR Apache-2.0
// One of a table's values to filter by, or none.

import type { JSX } from "preact";

interface ChoiceProps {
  title: string;
  names: string[];
  chosen: string;
  choose: (name: string) => void;
}

export function Choice({ title, names, chosen, choose }: ChoiceProps): JSX.Element {
  // What is chosen stays a choice when its last row has gone.
  const all = chosen && !names.includes(chosen) ? [...names, chosen] : names;
  return (
    <select aria-label={title} value={chosen} onChange={(event) => choose(event.currentTarget.value)}>
      <option value="">{title}</option>
      {all.map((name) => (
        <option key={name}>{name}</option>
      ))}
    </select>
  );
}
