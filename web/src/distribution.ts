// SPDX-License-Identifier: MIT OR Apache-2.0
// Quantiles, and counts in ranges that grow by a constant factor: times and rates of paths span decades.

export interface Bin {
  from: number;
  to: number;
  count: number;
}

const BINS = 24;

/** Of positive numbers, from a 1, 2 or 5 below the least to one above the greatest. */
export function bins(values: number[]): Bin[] {
  let least = Infinity;
  let most = 0;
  for (const value of values) {
    least = Math.min(least, value);
    most = Math.max(most, value);
  }
  if (values.length === 0) return [];
  const [from, to] = [below(least), above(most)];
  const factor = (to / from) ** (1 / BINS);
  const all = Array.from({ length: BINS }, (_, i) => ({ from: from * factor ** i, to: from * factor ** (i + 1), count: 0 }));
  for (const value of values) {
    const at = Math.min(Math.floor(Math.log(value / from) / Math.log(factor)), BINS - 1);
    const bin = all[Math.max(at, 0)];
    if (bin) bin.count += 1;
  }
  return all;
}

/** Ends of the axis are these times a power of ten. */
const STEPS = [1, 2, 5, 10];

const decade = (value: number): number => 10 ** Math.floor(Math.log10(value));

const below = (value: number): number =>
  decade(value) * (STEPS.filter((step) => step * decade(value) <= value).at(-1) ?? 1);

const above = (value: number): number =>
  decade(value) * (STEPS.find((step) => step * decade(value) > value) ?? 10);

/** The nearest rank. */
export function quantile(values: number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(Math.floor(q * sorted.length), sorted.length - 1)] ?? NaN;
}
