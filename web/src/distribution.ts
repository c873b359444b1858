// SPDX-License-Identifier: MIT OR Apache-2.0
// Quantiles, and counts in ranges that grow by a constant factor: times and rates of paths span decades.

export interface Bin {
  from: number;
  to: number;
  count: number;
}

const BINS = 24;

/** Of positive numbers; one number alone gets one bin. */
export function bins(values: number[]): Bin[] {
  let least = Infinity;
  let most = 0;
  for (const value of values) {
    least = Math.min(least, value);
    most = Math.max(most, value);
  }
  if (values.length === 0) return [];
  const factor = Math.max(most / least, 1.0001) ** (1 / BINS);
  const all = Array.from({ length: BINS }, (_, i) => ({ from: least * factor ** i, to: least * factor ** (i + 1), count: 0 }));
  for (const value of values) {
    const at = Math.min(Math.floor(Math.log(value / least) / Math.log(factor)), BINS - 1);
    const bin = all[Math.max(at, 0)];
    if (bin) bin.count += 1;
  }
  return all;
}

/** The nearest rank. */
export function quantile(values: number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(Math.floor(q * sorted.length), sorted.length - 1)] ?? NaN;
}
