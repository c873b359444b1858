// SPDX-License-Identifier: MIT OR Apache-2.0
// What components share: the store, the address, the size of an element, an answer asked for again and again.

import { useEffect, useReducer, useState } from "preact/hooks";
import type { RefObject } from "preact";
import { get, Refused } from "./api";
import type { Store } from "./store";

/** Draws again when the store has changed. */
export function useStore(store: Store): void {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  useEffect(() => store.subscribe(() => redraw(undefined)), [store]);
}

/** The part of the address after #, which names what is shown. */
export function useHash(): string {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = (): void => setHash(location.hash);
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return hash;
}

export function useSize(element: RefObject<HTMLElement>): { width: number; height: number } {
  const [size, setSize] = useState({ width: 0, height: 0 });
  useEffect(() => {
    if (!element.current) return undefined;
    const observer = new ResizeObserver(([entry]) => {
      if (entry) setSize({ width: entry.contentRect.width, height: entry.contentRect.height });
    });
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [element]);
  return size;
}

export interface Polled<T> {
  value: T | null;
  problem: string | null;
}

/** Asks every `interval_ms` while the page is seen; the next time only after the answer. */
export function usePolled<T>(path: string, interval_ms: number): Polled<T> {
  const [polled, setPolled] = useState<Polled<T>>({ value: null, problem: null });
  useEffect(() => {
    const stop = new AbortController();
    const ask = async (): Promise<void> => {
      while (!stop.signal.aborted) {
        if (!document.hidden) {
          await get<T>(path, stop.signal).then(
            (value) => setPolled({ value, problem: null }),
            (error: unknown) => {
              if (!stop.signal.aborted) setPolled((last) => ({ ...last, problem: said(error) }));
            },
          );
        }
        await new Promise((wake) => setTimeout(wake, interval_ms));
      }
    };
    setPolled({ value: null, problem: null });
    void ask();
    return () => stop.abort();
  }, [path, interval_ms]);
  return polled;
}

function said(error: unknown): string {
  return error instanceof Refused ? error.message : "the daemon does not answer";
}
