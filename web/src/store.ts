// SPDX-License-Identifier: MIT OR Apache-2.0
// What the stream has said so far: every flow that the daemon knows, by its cookie.

import { Refused, request, type FlowRow, type LiveFrame, type Lost } from "./api";
import { readFrames, type Frame } from "./sse";

export type Connection =
  | { state: "connecting" }
  | { state: "live" }
  | { state: "broken"; why: string }
  | { state: "token" };

/** Longest pause before the daemon is asked again, ms. */
const MAX_PAUSE_MS = 10_000;

export class Store {
  rows = new Map<number, FlowRow>();
  lost: Lost = { samples_lost: 0, flows_beyond_bounds: 0, flows_without_storage: 0 };
  /** The browser or the way to it is too slow: the stream left out this much, ms. */
  late_ms = 0;
  connection: Connection = { state: "connecting" };
  private listeners = new Set<() => void>();
  private isDue = false;

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  apply({ event, data }: Frame): void {
    const frame = { event, data: JSON.parse(data) as unknown } as LiveFrame;
    if (frame.event === "reset") this.rows = new Map();
    if (frame.event === "flows") for (const row of frame.data) this.rows.set(row.cookie, row);
    if (frame.event === "gone") for (const cookie of frame.data) this.rows.delete(cookie);
    if (frame.event === "lost") this.lost = frame.data;
    if (frame.event === "late") this.late_ms = frame.data.ms;
    if (frame.event === "flows") this.late_ms = 0;
    this.changed();
  }

  /** Follows the daemon for as long as the page is open. */
  async follow(): Promise<void> {
    for (let pause_ms = 500; ; pause_ms = Math.min(2 * pause_ms, MAX_PAUSE_MS)) {
      try {
        const answer = await request("/v1/instruments/live");
        this.set({ state: "live" });
        pause_ms = 250;
        if (answer.body) await readFrames(answer.body, (frame) => this.apply(frame));
        this.set({ state: "broken", why: "the daemon ended" });
      } catch (error) {
        if (error instanceof Refused && error.status === 401) return this.set({ state: "token" });
        this.set({ state: "broken", why: error instanceof Refused ? error.message : "no answer" });
      }
      await new Promise((wake) => setTimeout(wake, pause_ms));
    }
  }

  private set(connection: Connection): void {
    this.connection = connection;
    this.changed();
  }

  /** However many frames came, one drawing. */
  private changed(): void {
    if (this.isDue) return;
    this.isDue = true;
    setTimeout(() => {
      this.isDue = false;
      for (const listener of this.listeners) listener();
    }, 50);
  }
}
