// SPDX-License-Identifier: MIT OR Apache-2.0
// The keys of the page, in a dialog that "?" and a button open.

import type { JSX } from "preact";

const ID = "keys";

const KEYS: [string, string][] = [
  ["/", "into the filter"],
  ["↑ ↓ Page Up Page Down Home End", "choose a row, when the table has the focus"],
  ["Enter", "open the chosen row"],
  ["Escape", "back to the table"],
  ["p", "the learned paths"],
  ["m", "hosts that test one another"],
  ["?", "this help"],
];

export function openKeys(): void {
  const dialog = document.getElementById(ID);
  if (dialog instanceof HTMLDialogElement && !dialog.open) dialog.showModal();
}

export function KeysDialog(): JSX.Element {
  return (
    <dialog id={ID} aria-label="Keys">
      <dl>
        {KEYS.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog">
        <button>close</button>
      </form>
    </dialog>
  );
}
