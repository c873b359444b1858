// SPDX-License-Identifier: MIT OR Apache-2.0
import type { LearnedPath } from "../src/api";

/** A path for tests. */
export function learned(prefix: string, more: Partial<LearnedPath> = {}): LearnedPath {
  return {
    local: "192.0.2.1",
    prefix,
    flows: 3,
    epochs: 0,
    evidence: 3,
    seen: "2026-11-24T10:00:00.000Z",
    base_rtt_us: 100_000,
    base_rtt_doubt: 0.02,
    high_rtt_us: 120_000,
    rate_bps: 1e8,
    rate_doubt: 0.1,
    rate_limit: null,
    loss: "queue",
    retransmitted_share: 0.001,
    settings: "",
    reasons: ["the host's settings carry its rate"],
    state: "as_host",
    quarantined_until: null,
    gain: null,
    ...more,
  };
}
