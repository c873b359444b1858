// SPDX-License-Identifier: MIT OR Apache-2.0
// The order of rows holds while somebody aims at one: the pointer is over the table, a finger is down on
// it, or the keyboard is in it. Values go on changing, and new rows come last.

import { useEffect, useRef, useState } from "preact/hooks";
import type { RefObject } from "preact";
import type { Identity } from "./columns";

/** A touch is followed by its click: that must still land on the row that was aimed at. */
const AFTER_TOUCH_MS = 500;

/** The present rows in the places of those that are shown; one that is gone keeps its place as it was. */
export function inPlace<Row>(shown: Row[], rows: Row[], identity: Identity<Row>): Row[] {
  const present = new Map(rows.map((row) => [identity(row), row]));
  const kept = shown.map((row) => present.get(identity(row)) ?? row);
  const known = new Set(shown.map(identity));
  return [...kept, ...rows.filter((row) => !known.has(identity(row)))];
}

/** The rows as they are to be shown. What the user chose, `choice`, always takes effect at once. */
export function useHeldOrder<Row>(rows: Row[], identity: Identity<Row>, isHeld: boolean, choice: string): Row[] {
  const last = useRef({ choice, rows });
  const holds = isHeld && last.current.choice === choice;
  last.current = { choice, rows: holds ? inPlace(last.current.rows, rows, identity) : rows };
  return last.current.rows;
}

/** Whether somebody aims at a row of the element. */
export function useAim(element: RefObject<HTMLElement>): boolean {
  const [byPointer, setPointer] = useState(false);
  const [byFinger, setFinger] = useState(false);
  const [byKeys, setKeys] = useState(false);
  useEffect(() => {
    const target = element.current;
    if (!target) return undefined;
    const stop = new AbortController();
    const on = (name: string, listener: (event: Event) => void): void =>
      target.addEventListener(name, listener, { signal: stop.signal, passive: true });
    const isFinger = (event: Event): boolean => (event as PointerEvent).pointerType === "touch";
    let release: ReturnType<typeof setTimeout> | undefined;
    on("pointerover", (event) => isFinger(event) || setPointer(true));
    on("pointerleave", (event) => isFinger(event) || setPointer(false));
    on("touchstart", () => {
      clearTimeout(release);
      setFinger(true);
    });
    for (const end of ["touchend", "touchcancel"]) {
      on(end, () => (release = setTimeout(() => setFinger(false), AFTER_TOUCH_MS)));
    }
    // A click gives focus too, and the pointer goes away without taking it along.
    on("focusin", (event) => setKeys((event.target as Element).matches(":focus-visible")));
    on("keydown", () => setKeys(true));
    on("focusout", () => setKeys(false));
    return () => {
      stop.abort();
      clearTimeout(release);
    };
  }, [element]);
  return byPointer || byFinger || byKeys;
}
