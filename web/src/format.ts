// SPDX-License-Identifier: MIT OR Apache-2.0
// Numbers with their units, three digits long.

const UNITS = ["", "k", "M", "G", "T"];

/** 1234567 and "b/s" become 1.23 Mb/s. */
export function si(value: number, unit: string): string {
  let scaled = value;
  let step = 0;
  // 999.5 would be shown as 1000.
  while (Math.abs(scaled) >= 999.5 && step < UNITS.length - 1) {
    scaled /= 1000;
    step += 1;
  }
  return `${digits(scaled)} ${UNITS[step] ?? ""}${unit}`.trimEnd();
}

/** Three digits that say something, without zeros at the end; a whole number stays one. */
export function digits(value: number): string {
  if (!Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const decimals = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return String(Number(value.toFixed(Math.min(decimals, 6))));
}

export const rate = (bps: number): string => si(bps, "b/s");
export const bytes = (count: number): string => si(count, "B");

/** Microseconds, shown in ms as ping does. */
export const milliseconds = (us: number | null): string => (us === null ? "–" : `${digits(us / 1000)} ms`);

export const percent = (share: number): string => `${digits(100 * share)} %`;

/** A factor. */
export const times = (factor: number): string => `×${digits(factor)}`;

export function duration(seconds: number): string {
  if (seconds < 60) return `${digits(seconds)} s`;
  const whole = Math.floor(seconds);
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const [hours, minutes, rest] = parts.map((part) => String(part).padStart(2, "0"));
  return whole < 3600 ? `${minutes}:${rest}` : `${hours}:${minutes}:${rest}`;
}
