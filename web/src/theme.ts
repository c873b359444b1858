// SPDX-License-Identifier: MIT OR Apache-2.0
// Light, dark, or as the system has it.

export const THEMES = ["auto", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const KEY = "fatpath-theme";

export function theme(): Theme {
  const kept = localStorage.getItem(KEY);
  return THEMES.find((name) => name === kept) ?? "auto";
}

export function setTheme(next: Theme): void {
  localStorage.setItem(KEY, next);
  applyTheme();
}

/** Plots are drawn on canvases, which no style sheet reaches: they listen to this event. */
export function applyTheme(): void {
  document.documentElement.dataset.theme = theme();
  dispatchEvent(new Event("fatpath-theme"));
}

/** A colour of the style sheet, resolved for a canvas. */
export function colour(name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const resolved = getComputedStyle(probe).color;
  probe.remove();
  return resolved;
}
